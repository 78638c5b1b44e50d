"""What a durable function may want to know that is not in its journal yet: the time, chance, somebody's leave."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from everstep.adapters.tools.family import closed
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.entropy import Entropy
from everstep.ports.tool import Call, Ctx, ToolSpec
from everstep.wire.times import to_text

UUID_BYTES: Final = 16
_ANYTHING: Final[JsonObject] = {"type": "object"}


def _spec(name: str, title: str, description: str, gives: str, *, takes: JsonObject | None = None) -> ToolSpec:
    return ToolSpec(
        name=name,
        version="1.0.0",
        title=title,
        description=description,
        input_schema=takes or closed({}),
        output_schema={"type": gives},
        effect=Effect.PURE,
        trusted_output=True,
    )


_SPECS: Final = (
    _spec("code.now", "The time", "The time as RFC 3339 text. Behind `ctx.now()`.", "string"),
    _spec("code.random", "A number", "A number from 0 to 1. Behind `ctx.random()`.", "number"),
    _spec("code.uuid", "A UUID", "An id nobody else has. Behind `ctx.uuid()`.", "string"),
    _spec("code.approve", "Leave", "Gives back what was approved. Behind `ctx.approve()`.", "object", takes=_ANYTHING),
)


class CodeTools(ToolAdapter):
    """Answers that are journaled, so that code which runs again meets the same ones."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def tools(self) -> Sequence[ToolSpec]:
        """All four."""
        return _SPECS

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Drawn or read now; recorded once."""
        match call.tool:
            case "code.now":
                return to_text(ctx.now())
            case "code.random":
                return self._entropy.draw()
            case "code.uuid":
                return str(UUID(bytes=self._entropy.secret()[:UUID_BYTES], version=4))
            case _:
                return call.arguments
