"""What built-in families share: specs with closed schemas, and tables of plain functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Deferred, Isolation, Prior, ToolSpec

VERSION: Final = "1.0.0"
QUICK: Final = Prior(p10_s=0.001, p50_s=0.004, p90_s=0.03)
"""What a small inline tool takes: mostly, its step is written down."""


ARTIFACT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
        "media_type": {"type": "string"},
        "bytes": {"type": "integer", "minimum": 0},
    },
    "required": ["name", "digest", "media_type", "bytes"],
    "additionalProperties": False,
}
"""A handle, as the outputs of earlier steps hold it."""


def closed(properties: JsonObject, required: Sequence[str] | None = None) -> JsonObject:
    """An object with these fields and no others; all are required unless said."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def spec_of(
    name: str,
    title: str,
    description: str,
    *,
    takes: JsonObject,
    needs: Sequence[str],
    gives: JsonObject | None,
    effect: Effect = Effect.PURE,
    isolation: Isolation = "inline",
    timeout_ms: Millis | None = None,
    trusted_output: bool = False,
    permissions: tuple[str, ...] = (),
    prior: Prior | None = None,
) -> ToolSpec:
    """A spec: every argument has a kind, and no others are taken."""
    arguments: JsonObject = {}
    for argument, schema in takes.items():
        assert isinstance(schema, dict)
        arguments[argument] = {"x-everstep-kind": "opaque", **schema}
    return ToolSpec(
        name=name,
        version=VERSION,
        title=title,
        description=description,
        input_schema=closed(arguments, needs),
        output_schema=gives,
        effect=effect,
        isolation=isolation,
        timeout_ms=timeout_ms,
        trusted_output=trusted_output,
        permissions=permissions,
        prior=prior,
    )


@record
class Small:
    """A tool that is one function of its arguments."""

    spec: ToolSpec
    does: Callable[..., JsonValue]


class SmallTools(ToolAdapter):
    """A family of them, called inline."""

    def __init__(self, smalls: Sequence[Small]) -> None:
        self._smalls: Mapping[str, Small] = {small.spec.name: small for small in smalls}
        self._specs = [replace(small.spec, prior=QUICK) for small in smalls]

    def tools(self) -> Sequence[ToolSpec]:
        """All of the table."""
        return self._specs

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue | Deferred:  # noqa: ARG002 -- these need no surroundings
        """Call the function with arguments that fit its schema."""
        return self._smalls[call.tool].does(**call.arguments)
