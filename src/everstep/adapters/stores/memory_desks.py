"""What can be asked of a store in memory beyond its tasks: their troubles, and housekeeping."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from everstep.adapters.stores import permits
from everstep.adapters.stores.kept import Kept
from everstep.adapters.stores.memory_marks import MemoryMarks
from everstep.adapters.stores.one_kind import kept_kind
from everstep.domain import ids as i
from everstep.domain import task as t
from everstep.domain.breaker import Breaker, BreakerKey
from everstep.domain.events import AttemptStarted, TaskCreated
from everstep.domain.states import TaskStatus
from everstep.ports import store as port
from everstep.ports.housekeeping import KeptWorker
from everstep.wire.event import decode


class MemoryTroubles:
    """The verbs of `Troubles` on dictionaries that belong to the store."""

    def __init__(self, tasks: Mapping[i.TaskId, Kept]) -> None:
        self._tasks = tasks
        self._breakers: dict[BreakerKey, Breaker] = {}

    async def breakers(self, owner: str | None = None) -> Sequence[Breaker]:
        """All that are kept."""
        return [one for one in self._breakers.values() if owner in (None, one.key.owner)]

    async def reset(self, owner: str, id: str) -> Breaker | None:
        """Forget a breaker of this owner."""
        found = next((key for key in self._breakers if (key.owner, key.id) == (owner, id)), None)
        return None if found is None else self._breakers.pop(found)

    def judge(self, commit: t.StepCommit, lives: Callable[[i.WorkerId], bool]) -> permits.Judged:
        """What breakers make of a commit."""
        return permits.judge_toll(commit, self._breakers.get, lives)

    def keep(self, judged: permits.Judged, answer: port.Committed) -> port.Committed:
        """The breakers after a commit, which then tells of them."""
        for key, breaker in judged.breakers.items():
            if permits.worth_keeping(breaker):
                self._breakers[key] = breaker
            else:
                self._breakers.pop(key, None)
        refused = (*answer.refused, *judged.refused)
        return replace(answer, refused=refused, breakers=tuple(judged.breakers.values()))

    async def errors(self, which: port.ErrorFilter) -> Sequence[port.KeptError]:
        """Errors, newest first. Numbers follow time: there is no one order of commits to count by."""
        every = [one for kept in self._tasks.values() if which.owner in (None, kept.new.owner) for one in _errors(kept)]
        every.sort(key=lambda one: (one.at, one.task))
        numbered = [replace(one, number=number) for number, one in enumerate(every, start=1)]
        found = [one for one in reversed(numbered) if _wanted(one, which)]
        return found[: which.limit]


def _errors(kept: Kept) -> Iterator[port.KeptError]:
    assert isinstance(kept.new.created.body, TaskCreated)
    tools: dict[str | None, str | None] = {spec.id: spec.tool for spec in kept.new.created.body.plan.steps}
    for event in (decode(one.encoded) for one in kept.events if one.type in permits.TELLING):
        if isinstance(event.body, AttemptStarted):
            tools[event.step] = event.body.tool
        error = permits.error_in(event.body)
        if error is not None:
            tool = tools.get(event.step)
            yield port.KeptError(number=0, task=event.task, step=event.step, tool=tool, at=event.at, error=error)


def _wanted(one: port.KeptError, which: port.ErrorFilter) -> bool:
    return (
        which.category in (None, one.error.failure.category)
        and which.code in (None, one.error.failure.code)
        and which.tool in (None, one.tool)
        and which.task in (None, one.task)
        and (which.since is None or one.at >= which.since)
        and (which.cursor is None or one.number < which.cursor)
    )


class MemoryHousekeeping:
    """Tasks that go and workers that came, in the dictionaries of a store."""

    def __init__(
        self,
        tasks: dict[i.TaskId, Kept],
        pauses: dict[i.PauseId, port.KeptPause],
        workers: dict[i.WorkerId, port.Worker],
        fenced: set[i.WorkerId],
    ) -> None:
        self._tasks = tasks
        self.marks = MemoryMarks(tasks)
        self._pauses = pauses
        self._workers = workers
        self._fenced = fenced
        self._kind = ""
        self.payloads: dict[i.Digest, bytes] = {}
        self.fresh: set[i.Digest] = set()
        """Payloads that were kept a moment ago."""
        self.spent: dict[tuple[str, str], i.Instant] = {}

    def join(self, worker: port.Worker) -> None:
        """One more incarnation; raises StoreRefused."""
        self._kind = kept_kind(self._kind, worker)
        self._fenced.update(known for known, one in self._workers.items() if not one.released)
        self._workers[worker.id] = worker

    async def delete(self, owner: str, task: i.TaskId, key_until: i.Instant) -> bool:
        """Gone."""
        kept = self._tasks.get(task)
        if kept is None or kept.new.owner != owner or kept.row.ended_at is None or kept.worker is not None:
            return False
        del self._tasks[task]
        kept.tail.forget(task)
        self.marks.forget(task)
        for pause in [one.pause.id for one in self._pauses.values() if one.task == task]:
            del self._pauses[pause]
        if kept.new.key is not None:
            self.spent[owner, kept.new.key] = key_until
        return True

    async def collect(self, before: i.Instant) -> int:  # noqa: ARG002 -- there is no time here
        """What no journal names, and nobody has kept since this was asked last."""
        lines = b"".join(event.encoded for kept in self._tasks.values() for event in kept.events)
        gone = [digest for digest in self.payloads if digest.encode() not in lines and digest not in self.fresh]
        for digest in gone:
            del self.payloads[digest]
        self.fresh.clear()
        return len(gone)

    async def ended(self, status: TaskStatus, before: i.Instant, limit: int) -> Sequence[tuple[str, i.TaskId]]:
        """Whose tasks may go."""
        found = [
            (kept.row.ended_at, kept.num, kept.new.owner, task)
            for task, kept in self._tasks.items()
            if kept.row.status is status and (kept.row.ended_at or before) < before and kept.worker is None
        ]
        return [(owner, task) for *_, owner, task in sorted(found)[:limit]]

    async def copied_at(self) -> i.Instant | None:
        """Memory is not copied."""
        return None

    async def forget_copy(self) -> None:
        """There is nothing to forget."""

    async def workers(self) -> Sequence[KeptWorker]:
        """The newest first."""
        held = Counter(kept.worker for kept in self._tasks.values())
        return [
            KeptWorker(
                id=one.id,
                name=one.name,
                host=one.host,
                version=one.version,
                heartbeat_at=one.heartbeat_at,
                gone=one.released or one.id in self._fenced,
                tasks=held[one.id],
            )
            for one in reversed(self._workers.values())
        ]
