"""`ToolAdapter`, to derive from: the contract of a family of tools with the safe answer for all that is optional.

Public as `everstep.ToolAdapter`; the contract itself is `ports/tool.py`. It stands beside it, because built-in
families and those of users start from the same answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from everstep.domain.failure import Failure
from everstep.domain.outcome import Probe
from everstep.domain.plan import Effect
from everstep.domain.values import JsonValue
from everstep.ports.tool import Call, Ctx, Deferred, Health, Prior, ToolSpec


class ToolAdapter(ABC):
    """A family of tools; a subclass says what it serves and how it is called."""

    @abstractmethod
    def tools(self) -> Sequence[ToolSpec]:
        """What it serves; no I/O."""

    @abstractmethod
    async def execute(self, call: Call, ctx: Ctx) -> JsonValue | Deferred:
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

    async def probe(self, call: Call) -> Probe:  # noqa: ARG002
        """Nobody can tell whether the call happened."""
        return Probe(result="unknown")

    def effect_of(self, call: Call) -> Effect | None:  # noqa: ARG002
        """The spec's."""
        return None
