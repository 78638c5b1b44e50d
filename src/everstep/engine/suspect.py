"""The one task at a time that may be what kills its worker."""

from collections.abc import Mapping

from everstep.domain.ids import Instant, Millis, TaskId
from everstep.domain.task import TaskState
from everstep.engine.stall import SUSPECT
from everstep.engine.walk import Walk


class Suspect:
    """The last that was taken up; the next one has to wait until it is settled."""

    def __init__(self, lives_ms: Millis) -> None:
        self._lives_ms = lives_ms
        self._last: tuple[TaskId, Instant] | None = None

    @property
    def known(self) -> bool:
        """Whether there was one."""
        return self._last is not None

    def watch(self, state: TaskState, now: Instant) -> Instant | None:
        """A task is taken up: when to look at it again, if it is one."""
        if state.recoveries < SUSPECT:
            return None
        self._last = (state.id, now)
        return Instant(now + self._lives_ms)

    def settled(self, walks: Mapping[TaskId, Walk], now: Instant) -> bool:
        """Whether the last one has recorded an outcome, gone, or lived long enough."""
        if self._last is None:
            return True
        task, since = self._last
        walk = walks.get(task)
        return walk is None or walk.recoveries == 0 or now >= since + self._lives_ms

    def forget(self) -> None:
        """Nothing is carried any more."""
        self._last = None
