"""What a binding sees: inputs, recorded outcomes, and the item at hand. Nothing else, so the same journal gives the
same value.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from everstep.domain.bindings import Absent, Found
from everstep.domain.events import ErrorRecord
from everstep.domain.graph import Graph
from everstep.domain.ids import CALL, Instant, StepPath, item_path
from everstep.domain.progress import item_counts
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject, JsonValue

_ABSENT = {StepStatus.FAILED: "failed", StepStatus.SKIPPED: "skipped", StepStatus.PAUSED: "uncertain"}

FOREIGN: Final = frozenset({"item", "error"})
"""Extra values that came from outside …"""
OUR_ITEMS: Final = frozenset({"error"})
"""… and if the list of items stands in the plan itself."""


class StateScope:
    """A task's state as roots of bindings."""

    __slots__ = ("_extra", "_foreign", "_graph", "_state")

    def __init__(
        self,
        state: TaskState,
        graph: Graph,
        extra: Mapping[str, JsonValue] | None = None,
        *,
        foreign: frozenset[str] = FOREIGN,
    ) -> None:
        self._state = state
        self._graph = graph
        self._extra = extra
        self._foreign = foreign

    def root(self, name: str) -> Found | Absent:
        """The value behind the first word of a reference."""
        step_id = self._graph.binds.get(name)
        if step_id is not None:
            return self._output(self._state.steps[StepPath(step_id)])
        if self._extra is not None and name in self._extra:
            return Found(value=self._extra[name], untrusted=name in self._foreign)
        if name == "inputs":
            inputs = self._state.inputs
            if not inputs.present:
                return Absent(why="elsewhere", digest=inputs.digest)
            return Found(value=inputs.value)
        if name == "task":
            return Found(value=self._task())
        if name == "secrets":
            return Found(value=_SecretNames())
        if name == "error" and self._state.failing is not None:
            return Found(value=error_facts(self._state.failing), untrusted=True)
        return Absent(why="unknown")

    def also(self, extra: Mapping[str, JsonValue]) -> "StateScope":
        """The same, and a few values more."""
        return StateScope(self._state, self._graph, {**(self._extra or {}), **extra}, foreign=self._foreign)

    def step(self, id: str) -> Mapping[str, JsonValue] | None:
        """What `steps.<id>` shows."""
        found = self._state.steps.get(StepPath(id))
        return None if found is None else step_facts(self._state, found)

    def _output(self, step: StepState) -> Found | Absent:
        sealed = step.output
        if step.status is StepStatus.COMPLETED and sealed is not None:
            if not sealed.present:
                return Absent(why="elsewhere", producer=step.path, digest=sealed.digest)
            return Found(value=sealed.value, untrusted=sealed.untrusted)
        if step.items is not None and (call := self._state.steps.get(item_path(step.path, CALL))) is not None:
            return self._output(call)  # what is read after a call sees what it gave
        why = _ABSENT.get(step.status, "not_ended")
        return Absent(why=why, producer=step.path)  # type: ignore[arg-type]

    def _task(self) -> JsonObject:
        state = self._state
        return {
            "id": state.id,
            "plan": state.plan.name,
            "created_at": rfc3339(state.created_at),
            "status": state.status.value,
        }


class _SecretNames(dict[str, JsonValue]):
    """What `secrets.<name>` stands for: the name, wherever it is written down; only a call gets the value."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __missing__(self, name: str) -> JsonValue:
        return f"secret:{name}"


def step_facts(state: TaskState, step: StepState) -> JsonObject:
    """A step as bindings and conditions may look at it."""
    counts = item_counts(state, step)
    error = step.error.failure if step.error else None
    duration = (step.ended_at - step.started_at) / 1000 if step.ended_at and step.started_at else None
    return {
        "status": step.status.value,
        "error": None if error is None else {"code": error.code, "message": error.message},
        "attempts": step.attempts,
        "duration": duration,
        "tool_used": step.tool_used,
        "skipped_reason": step.skip_reason.value if step.skip_reason else None,
        "counts": None if counts is None else {**counts},
        "approval": step.decision,
    }


def error_facts(error: ErrorRecord) -> JsonObject:
    """What went wrong, as `finally` and fallbacks see it."""
    failure = error.failure
    return {
        "id": error.id,
        "code": failure.code,
        "category": failure.category.value,
        "message": failure.message,
        "what_to_do": failure.what_to_do,
        "attempt": error.attempt,
        "details": failure.details,
    }


def rfc3339(at: Instant) -> str:
    """RFC 3339 in UTC with milliseconds."""
    text = datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{at % 1000:03d}Z"
