"""Limits of a whole task: what is counted, when it is nearly used up, and when it is.

Part of a task's state, changed by `fold` only. Counting a call costs an addition and a comparison; whoever wants to
know more looks when `alarm` is set, or when `look_at` has come.
"""

import sys
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeVar

from everstep.domain.ids import Instant, Millis
from everstep.domain.plan import LimitsSpec
from everstep.domain.record import record
from everstep.domain.usage import Usage
from everstep.domain.values import INTEGER_MAX

NEAR: Final = 0.8
"""The share of a limit at which somebody is told."""
COUNTED: Final = ("calls", "cost", "wall_time", "output", "cpu_time", "disk")
NAMES: Final = (*COUNTED, "memory")
"""Memory is what live attempts have together: nothing of it is used up."""
_FIELDS: Final = {
    "calls": "calls",
    "cost": "cost",
    "output": "output_bytes",
    "cpu_time": "cpu_ms",
    "disk": "disk_bytes",
}
"""Where a budget counts what is used; time follows from the clock, and memory is given back."""
SHOWN_PER: Final = {"wall_time": 1000, "cpu_time": 1000}
"""Kept in milliseconds, shown in seconds."""
NEVER: Final = Instant(sys.maxsize)
PAUSE_TIMEOUT_MAX_MS: Final = 365 * 86_400_000
"""Nobody is waited for longer than a year, unless for ever."""

DISK: Final = "disk_bytes"
"""The count in which calls report what they wrote."""

T = TypeVar("T", int, float)


@record
class TaskLimits:
    """The most a task may use; None: unbounded. `on_reached`: ask (`pause`), or `fail`."""

    calls: int | None = None
    cost: float | None = None
    wall_time_ms: int | None = None
    output_bytes: int | None = None
    cpu_time_ms: int | None = None
    disk_bytes: int | None = None
    memory_bytes: int | None = None
    on_reached: str = "pause"

    def lowered(self, other: "TaskLimits") -> "TaskLimits":
        """The lower of both, limit by limit; what is to be done is the other's to say."""
        return TaskLimits(
            calls=lower(self.calls, other.calls),
            cost=lower(self.cost, other.cost),
            wall_time_ms=lower(self.wall_time_ms, other.wall_time_ms),
            output_bytes=lower(self.output_bytes, other.output_bytes),
            cpu_time_ms=lower(self.cpu_time_ms, other.cpu_time_ms),
            disk_bytes=lower(self.disk_bytes, other.disk_bytes),
            memory_bytes=lower(self.memory_bytes, other.memory_bytes),
            on_reached=other.on_reached,
        )

    def above(self, other: "TaskLimits") -> list[tuple[str, float, float]]:
        """Limits that are higher here than there: name, this, the other."""
        found = []
        for name, mine, most in zip(NAMES, self.all(), other.all(), strict=True):
            if mine is not None and most is not None and mine > most:
                found.append((name, mine, most))
        return found

    def all(self) -> tuple[float | None, ...]:
        """In the order of NAMES; times in milliseconds, sizes in bytes."""
        counted = (self.calls, self.cost, self.wall_time_ms, self.output_bytes, self.cpu_time_ms, self.disk_bytes)
        return (*counted, self.memory_bytes)


def lower(one: T | None, other: T | None) -> T | None:
    """The lower of two limits; None is none."""
    return other if one is None else one if other is None else min(one, other)


@record
class Level:
    """How much of a limit is used, as it is shown: times in seconds, sizes in bytes."""

    limit: str
    used: float
    max: float


@dataclass(slots=True)
class Budget:
    """Limits of a task, and what it has used of them."""

    max: dict[str, float] = field(default_factory=dict)
    on_reached: str = "pause"
    deadline: Instant | None = None
    """By when it must have ended; it stands still while the task is paused."""
    calls: int = 0
    cost: float = 0.0
    output_bytes: int = 0
    cpu_ms: float = 0.0
    disk_bytes: float = 0.0
    ran_ms: int = 0
    since: Instant | None = None
    """Since when it runs."""
    near: set[str] = field(default_factory=set)
    """Limits that somebody was told about."""
    alarm: bool = False
    """Something is nearly used up and nobody was told, or something is used up."""
    calls_max: float = sys.maxsize
    look_at: Instant = NEVER
    """When time may have become short."""

    def __post_init__(self) -> None:
        self._look()

    def called(self) -> None:
        """One more call."""
        self.calls += 1
        if self.calls >= self.calls_max * NEAR and "calls" not in self.near:
            self.alarm = True

    def paid(self, usage: Usage | None, output_bytes: int) -> None:
        """A call ended, well or not."""
        self.output_bytes += output_bytes
        if usage is not None:
            self.cost += usage.cost
            self.cpu_ms += 0.0 if usage.measured is None else usage.measured.cpu_s * 1000
            self.disk_bytes += usage.counts.get(DISK, 0.0)
        if usage is not None or self.output_bytes >= self.max.get("output", NEVER) * NEAR:
            self._look()

    def begin(self, at: Instant) -> None:
        """Somebody carries the task."""
        self.since = at
        self._look()

    def rest(self, at: Instant) -> None:
        """Nobody does: time stands still."""
        if self.since is not None:
            self.ran_ms += at - self.since
            self.since = None
        self.look_at = NEVER

    def announced(self, limit: str) -> None:
        """Somebody was told."""
        self.near.add(limit)
        self._look()

    def raised(self, limit: str, most: float) -> None:
        """Somebody allowed more, in the unit that is shown."""
        self.max[limit] = min(most * SHOWN_PER.get(limit, 1), INTEGER_MAX)
        self._look()

    def renewed(self, at: Instant) -> None:
        """A new generation: nothing is used yet, what was raised stands, and a deadline that has passed is over."""
        self.calls = self.output_bytes = self.ran_ms = 0
        self.cost = self.cpu_ms = self.disk_bytes = 0.0
        self.since = None
        self.near.clear()
        if self.overdue(at):
            self.deadline = None
        self._look()

    def postponed(self, length_ms: int) -> None:
        """The task was paused for so long."""
        if self.deadline is not None:
            self.deadline = Instant(self.deadline + length_ms)

    def used(self, limit: str, at: Instant) -> float:
        """As of this moment; times in milliseconds."""
        counted = _FIELDS.get(limit)
        if counted is None:
            return self.ran_ms + (0 if self.since is None else max(0, at - self.since))
        used: float = getattr(self, counted)
        return used

    def levels(self, at: Instant) -> list[Level]:
        """All limits there are."""
        return [
            Level(limit=name, used=self.used(name, at) / unit, max=self.max[name] / unit)
            if (unit := SHOWN_PER.get(name, 0))
            else Level(limit=name, used=self.used(name, at), max=self.max[name])
            for name in COUNTED
            if name in self.max
        ]

    def nearing(self, at: Instant) -> list[Level]:
        """What is nearly used up, and nobody was told."""
        return [one for one in self.levels(at) if one.used >= NEAR * one.max and one.limit not in self.near]

    def spent(self, at: Instant, calls: int = 0) -> Level | None:
        """The first limit that is used up, if so many more calls are about to begin."""
        return next((one for one in self.levels(at) if one.used + calls * (one.limit == "calls") >= one.max), None)

    def left(self) -> LimitsSpec:
        """What calls may still use of what is counted while they run; at least a little, so that they can say why."""
        most = {name: round(value) for name, value in self.max.items()}
        return LimitsSpec(
            memory_bytes=most.get("memory"),
            cpu_time_ms=Millis(max(1, most["cpu_time"] - round(self.cpu_ms))) if "cpu_time" in most else None,
            disk_bytes=max(1, most["disk"] - round(self.disk_bytes)) if "disk" in most else None,
        )

    def overdue(self, at: Instant) -> bool:
        """Whether it should have ended by now."""
        return self.deadline is not None and at >= self.deadline

    def _look(self) -> None:
        self.calls_max = self.max.get("calls", sys.maxsize)
        self.alarm = False
        for limit, counted in _FIELDS.items():
            most = self.max.get(limit)
            if most is None:
                continue
            used = getattr(self, counted)
            if used >= most * NEAR and (limit not in self.near or (used >= most and limit != "calls")):
                self.alarm = True
        self.look_at = NEVER
        if self.since is None:
            return
        if "wall_time" in self.max:
            share = 1 if "wall_time" in self.near else NEAR
            self.look_at = Instant(round(self.since + share * self.max["wall_time"] - self.ran_ms))
        if self.deadline is not None:
            self.look_at = min(self.look_at, self.deadline)


def budget_of(limits: TaskLimits | None, deadline: Instant | None) -> Budget:
    """What a new task may use."""
    if limits is None:
        return Budget(deadline=deadline)
    most = {name: value for name, value in zip(NAMES, limits.all(), strict=True) if value is not None}
    return Budget(max=most, on_reached=limits.on_reached, deadline=deadline)


@record
class TaskLimitNear:
    TYPE: ClassVar = "task.limit_near"
    limit: str
    used: float
    max: float
