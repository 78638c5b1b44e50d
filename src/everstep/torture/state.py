"""What the judge keeps of a task while it reads the journal. Standard library only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everstep.torture.history import Event, Violation
from everstep.torture.moves import ENDED


@dataclass(slots=True)
class Attempt:
    """One intent, and the event that closed it."""

    number: int
    begun: Event
    epoch: int
    worker: str | None
    effect: str
    key: str
    end: Event | None = None
    cut: bool = False
    """Cut off for a pause: it is called again, and uses up no retry."""
    waiting: bool = False
    """A durable wait: nothing is in flight."""


@dataclass(slots=True)
class Step:
    """One step path; `outcome` is the event of its standing outcome."""

    path: str
    status: str = "pending"
    attempts: list[Attempt] = field(default_factory=list)
    open: Attempt | None = None
    outcome: Event | None = None
    of_items: bool = False
    """It goes over a list: its calls are those of its items."""


@dataclass(slots=True)
class Pause:
    """A question of the task."""

    id: str
    step: str | None
    type: str
    producer: str | None
    status: str = "open"
    call: Mapping[str, Any] | None = None
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What an approval allows; `shown` is what was asked about."""

    given: Event
    step: str
    tool: str
    version: str
    digest: str | None
    of_items: bool
    shown: Any
    expires_at: int | None


@dataclass(slots=True)
class State:
    """A task as its journal tells it, and what was wrong in the telling."""

    task: str
    events: Sequence[Event]
    max_recoveries: int
    status: str = ""
    generation: int = 1
    epoch: int = 0
    worker: str | None = None
    recoverer: str | None = None
    """Who recovered it last, until somebody claims it: it may close what it gives up."""
    recoveries: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    outcome: str | None = None
    plan: Mapping[str, Any] = field(default_factory=dict)
    finals: frozenset[str] = frozenset()
    steps: dict[str, Step] = field(default_factory=dict)
    pauses: dict[str, Pause] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    continue_by: str | None = None
    alone: str | None = None
    """The step that a client has taken the task up for; nothing else starts then."""
    expirer: tuple[str | None, str | None] = (None, None)
    """Who let a pause run out, and of which step: it may write what follows for that step."""
    off_schedule: dict[str, int] = field(default_factory=dict)
    """What was said about its schedule, and in which generation."""
    still: list[tuple[int, int | None]] = field(default_factory=list)
    """When the task was paused: from, until."""
    problems: list[Violation] = field(default_factory=list)

    def blame(self, check: str, seq: int, what: str) -> None:
        self.problems.append(Violation(check, self.task, seq, what))

    def paused_during(self, attempt: Attempt) -> bool:
        """Whether somebody asked for a pause while it was open; a cancel may have come since."""
        assert attempt.end is not None
        between = range(attempt.begun.seq, attempt.end.seq)
        return any(one.type == "task.pausing" and one.seq in between for one in self.events)

    @property
    def done(self) -> int:
        """Ended steps of the plan; sub-steps are not counted."""
        return sum(step.status in ENDED for step in self.steps.values() if base(step.path) == step.path)


def base(path: str) -> str:
    """The step of the plan that a path belongs to."""
    return path.partition("[")[0]
