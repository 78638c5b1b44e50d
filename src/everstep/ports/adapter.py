"""`ToolAdapter`, to derive from: the contract of a family of tools with the safe answer for all that is optional.

Public as `everstep.ToolAdapter`; the contract itself is `ports/tool.py`. It stands beside it, because built-in
families and those of users start from the same answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, cast

from everstep.domain.failure import Failure
from everstep.domain.plan import Effect
from everstep.domain.values import JsonValue
from everstep.ports.tool import Call, Ctx, Deferred, Health, Impossible, Listening, Prior, Probed, Subplan, ToolSpec


class ToolAdapter(ABC):
    """A family of tools; a subclass says what it serves and how it is called."""

    @abstractmethod
    def tools(self) -> Sequence[ToolSpec]:
        """What it serves; no I/O."""

    @abstractmethod
    async def execute(self, call: Call, ctx: Ctx) -> JsonValue | Deferred | Listening | Subplan:
        """Once per attempt, after the durable intent."""

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        """Nothing beyond the schema."""
        return ()

    def estimate(self, call: Call) -> Prior | None:  # noqa: ARG002
        """No guess."""
        return None

    async def health(self) -> Health:
        """Unknown until someone looks."""
        return Health()

    def classify(self, exc: Exception) -> Failure | None:  # noqa: ARG002
        """The shared table decides."""
        return None

    async def probe(self, call: Call) -> Probed:  # noqa: ARG002
        """Nobody can tell whether the call happened."""
        return Probed(result="unknown")

    async def undo(self, call: Call, output: JsonValue, ctx: Ctx) -> None:  # noqa: ARG002
        """Not undoable."""
        raise Impossible(f"{call.tool} cannot take anything back")

    def effect_of(self, call: Call) -> Effect | None:  # noqa: ARG002
        """The spec's."""
        return None

    def degrade(self, call: Call, level: int, cause: Failure) -> Call | None:  # noqa: ARG002
        """No ladder: what ran out is not tried again."""
        return None

    def target(self, call: Call) -> str:
        """The tool itself."""
        return call.tool

    def counts(self, call: Call) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        """Only its provider's."""
        return ()

    def scruple(self, call: Call) -> str | None:  # noqa: ARG002
        """Every call alike."""
        return None

    async def close(self) -> None:  # noqa: B027 -- most have nothing to let go
        """The engine stops."""


_SAFE: Final = (
    "validate",
    "estimate",
    "health",
    "classify",
    "probe",
    "undo",
    "effect_of",
    "degrade",
    "target",
    "counts",
    "scruple",
    "close",
)
"""What an adapter may say beyond `tools` and `execute`."""


class Completed(ToolAdapter):
    """An object with `tools` and `execute`, completed with the safe answers for what it does not say."""

    def __init__(self, adapter: Any) -> None:  # noqa: ANN401 -- whatever somebody wrote, judged by what it has
        for name in _SAFE:
            if hasattr(adapter, name):
                setattr(self, name, getattr(adapter, name))
        self._adapter = adapter

    def tools(self) -> Sequence[ToolSpec]:
        """As it says."""
        return tuple(self._adapter.tools())

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue | Deferred | Listening | Subplan:
        """As it does."""
        return cast("JsonValue | Deferred | Listening | Subplan", await self._adapter.execute(call, ctx))
