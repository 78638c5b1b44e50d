"""News: what other engines do to the same store. Hints where to look, never the truth; a hint may be lost.

A store that has one engine has none (`Beside.news` is None), and nobody looks.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from everstep.domain.ids import Instant, Seq, StepPath, TaskId, WorkerId
from everstep.domain.record import record
from everstep.ports.worker import Worker


@record
class Heard:
    """What was heard while one waited: tasks that somebody should look at; `listening`: whether hints come at all."""

    tasks: frozenset[TaskId] = frozenset()
    listening: bool = False


@record
class Unclaimed:
    """A task that waits although no worker that lives can carry it; `missing`: tools that none of them has."""

    task: TaskId
    owner: str
    missing: tuple[str, ...]


@record
class Slot:
    """A slot of a pool that all engines share: for this step, if not more than `size` have one."""

    pool: str
    task: TaskId
    step: StepPath
    size: int


class Slots(Protocol):
    """Slots count while their worker holds the task."""

    async def take(self, worker: WorkerId, slots: Sequence[Slot]) -> Sequence[bool]:
        """Which of them it has now; durable."""

    async def free(self, worker: WorkerId, slots: Sequence[Slot]) -> None:
        """Their calls have ended."""


class News(Protocol):
    """The verbs."""

    @property
    def slots(self) -> Slots:
        """Pools that all engines share."""

    def tell(self, task: TaskId) -> None:
        """Have whoever holds this task look at it, or whoever has room claim it. Returns at once."""

    async def wait(self, within_s: float) -> Heard:
        """Until something is heard, but no longer than about that: not all engines look at the same moment."""

    async def told(self, worker: WorkerId | None) -> Mapping[TaskId, int]:
        """Tasks of this worker that somebody else has written or spoken of, and how often.

        None: of all holders that are no process.
        """

    async def heads(self, tasks: Collection[TaskId]) -> Mapping[TaskId, Seq]:
        """How far these journals go."""

    async def unclaimed(self, before: Instant) -> Sequence[Unclaimed]:
        """What has waited since then for a worker that has its tools, the oldest first; not more than a hundred."""

    @property
    def refused(self) -> int:
        """Commits of ours that came after their task had become somebody else's, since the start."""

    async def rejoin(self, worker: Worker) -> None:
        """Go on as a new incarnation: the old one was fenced, or takes itself for dead, and never returns."""
