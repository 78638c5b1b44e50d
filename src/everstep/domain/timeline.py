"""Timeline: where the time of one task went. Every moment from its creation to its end belongs to one phase."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from everstep.domain.events import Recorded
from everstep.domain.fold import fold
from everstep.domain.graph import Graph
from everstep.domain.ids import Instant, StepPath
from everstep.domain.pauses import OF_THE_TASK, PauseType
from everstep.domain.record import record
from everstep.domain.states import TERMINAL, Phase, TaskStatus
from everstep.domain.task import StepState, TaskState

EXECUTING: Final = "executing"
ENGINE: Final = "engine"
"""Nothing is called and nothing is waited for: it is being decided and written down what comes."""
ORDER: Final = (
    EXECUTING, "retry_wait", "waiting_slot", "waiting", "awaiting_approval", "awaiting_person", "paused", "queued",
    "stalled", ENGINE,
)  # fmt: skip
_WAITS: Final = {"slot": "waiting_slot", "rate": "waiting_slot", "breaker": "waiting_slot"}
_IDLE: Final = {TaskStatus.QUEUED: "queued", TaskStatus.STALLED: "stalled"}


@dataclass(slots=True, kw_only=True)
class Timeline:
    """Milliseconds by phase; those of calls also by tool. While several are called, each has its share."""

    phases: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    tools: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def wall_ms(self) -> float:
        """All of it."""
        return sum(self.phases.values())

    def add(self, state: TaskState, length_ms: int) -> None:
        """So long it stood like this; what has ended takes no time."""
        if state.status in TERMINAL or length_ms <= 0:
            return
        phase = phase_of(state)
        self.phases[phase] += length_ms
        if phase == EXECUTING:
            calling = [state.open[path].tool for path in state.in_flight]
            for tool in calling:
                self.tools[tool] += length_ms / len(calling)


def timeline_of(events: Iterable[Recorded], owner: str, now: Instant) -> tuple[Timeline, TaskState]:
    """Of a journal that begins at its beginning; what has not ended goes on until now."""
    timeline = Timeline()
    state: TaskState | None = None
    for event in events:
        if state is not None:
            timeline.add(state, event.at - state.updated_at)
        state = fold(state, owner, event)
    assert state is not None
    timeline.add(state, now - state.updated_at)
    return timeline, state


def phase_of(state: TaskState) -> str:
    """What a task spends its time with, as it stands: work before waiting, waiting before asking."""
    if state.status in _IDLE:
        return _IDLE[state.status]
    if state.in_flight:
        return EXECUTING
    waiting = [_wait_of(step) for step in state.steps.values() if not step.ended and not step.items_open]
    phases = {phase for phase in waiting if phase is not None}
    if state.pauses and (state.status is TaskStatus.PAUSED or not phases):
        types = {pause.type for pause in state.pauses.values()}
        if types & OF_THE_TASK:
            return "paused"
        return "awaiting_approval" if types == {PauseType.APPROVAL_REQUIRED} else "awaiting_person"
    return next((phase for phase in ORDER if phase in phases), ENGINE)


def _wait_of(step: StepState) -> str | None:
    if step.phase is Phase.RETRY_WAIT:
        return "retry_wait"
    return None if step.wait is None else _WAITS.get(step.wait.kind, "waiting")


@record
class Leg:
    """One step of the way that decided when a task ended."""

    step: StepPath
    tool: str | None
    waited_ms: int
    """Since the leg before ended."""
    took_ms: int


def critical_path(state: TaskState, graph: Graph, now: Instant) -> list[Leg]:
    """From the step that ended last, back over whichever of its sources ended last."""
    begun = {path: step for path, step in state.steps.items() if path in graph.by_id and step.started_at is not None}
    way: list[StepState] = []
    step = max(begun.values(), key=lambda one: _end(one, now), default=None)
    while step is not None:
        way.append(step)
        sources = [begun[path] for path in graph.by_id[step.path].waits_for if path in begun]
        step = max(sources, key=lambda one: _end(one, now), default=None)
    return _legs([*reversed(way)], state, now)


def _legs(way: list[StepState], state: TaskState, now: Instant) -> list[Leg]:
    legs, before = [], state.created_at
    for step in way:
        assert step.started_at is not None
        end = _end(step, now)
        tool = step.tool_used or state.specs[step.path].tool
        waited = max(0, step.started_at - before)
        legs.append(Leg(step=step.path, tool=tool, waited_ms=waited, took_ms=max(0, end - step.started_at)))
        before = Instant(end)
    return legs


def _end(step: StepState, now: Instant) -> int:
    return step.ended_at if step.ended_at is not None else now
