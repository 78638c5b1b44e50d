"""Durable functions: code whose calls are journaled steps. Made by `authoring`, performed by `engine/perform`."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from everstep.domain.failure import Failure
from everstep.domain.ids import Digest, StepPath
from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import ToolError

T = TypeVar("T")


@record
class Ask:
    """A call that the code wants made: how, and with which arguments."""

    spec: StepSpec
    arguments: JsonObject


class Stage(Protocol):
    """Where the code is performed: it asks, and hears what came of it."""

    def name(self, word: str) -> str:
        """The next id of this kind, counted in the branch that asks."""

    def ask(self, ask: Ask) -> Awaitable[JsonValue]:
        """What came of this call, once that is durable; raises CallFailed."""

    def gather(self, branches: Sequence[Awaitable[T]], limit: int | None) -> Awaitable[list[T]]:
        """All of them at the same time, or so many; what they gave, in their order."""

    def expect(self, stages: Sequence[str]) -> None:
        """What the code will come by, for whoever watches."""


@record
class Script:
    """A durable function, ready to be performed."""

    plan: PlanSpec
    """Its name, version and inputs; no steps."""
    digest: Digest
    perform: Callable[[Stage, JsonObject], Coroutine[Any, Any, JsonValue]]


class CallFailed(ToolError):
    """A call of a durable function has failed for good; uncaught, it fails the task with the same error."""

    def __init__(self, step: StepPath, failure: Failure) -> None:
        super().__init__(
            failure.message,
            code=failure.code,
            what_to_do=failure.what_to_do,
            details=failure.details,
            effect_state=failure.effect_state,
        )
        self.category = failure.category.value
        self.step = step
        self.failure = failure
