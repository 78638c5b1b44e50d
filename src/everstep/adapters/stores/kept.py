"""What the store in memory keeps of one task, and what it tells of troubles over all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from everstep.adapters.stores import journal, permits
from everstep.adapters.stores.journal import Stamp
from everstep.adapters.stores.memory_tail import MemoryTail
from everstep.domain import ids as i
from everstep.domain import task as t
from everstep.domain.breaker import Breaker, BreakerKey
from everstep.domain.events import Actor, AttemptStarted, TaskCreated
from everstep.domain.queue import rank
from everstep.domain.states import CLAIMABLE
from everstep.domain.words import Words
from everstep.ports import store as port
from everstep.wire.event import decode, long_plan


@dataclass(slots=True, kw_only=True)
class Kept:
    """One task."""

    new: t.NewTask
    row: t.TaskRow
    num: int
    epoch: i.Epoch = i.Epoch(0)
    worker: i.WorkerId | None = None
    updated_at: i.Instant
    tail: MemoryTail
    events: list[port.Journaled] = field(default_factory=list)

    def write(self, events: Sequence[port.Journaled]) -> None:
        """Into its journal, and into the line of all."""
        self.events.extend(events)
        self.tail.add(self.new.owner, events)

    @property
    def last_seq(self) -> i.Seq:
        return i.Seq(len(self.events))

    def stale(self) -> port.Stale:
        return port.Stale(status=self.row.status, epoch=self.epoch, worker=self.worker, last_seq=self.last_seq)

    def stamp(self, at: i.Instant, generation: int, actor: Actor) -> Stamp:
        return Stamp(task=self.new.id, last_seq=self.last_seq, generation=generation, at=at, actor=actor)

    def taken_by(self, commit: t.StepCommit) -> port.Claimed | None:
        """Held from now on by whoever takes it with a commit, if nobody does and it stands as the commit believes."""
        taken = commit.taken
        known = self.worker is None and self.last_seq + 1 == commit.last_seq
        claimed = journal.take(commit, self.epoch) if known else None
        if claimed is None or taken is None or self.row.status is not taken.from_status:
            return None
        self.take(claimed, commit.at)
        return claimed

    def take(self, claimed: port.Claimed, at: i.Instant) -> None:
        """A worker holds it from now on."""
        started_at = at if self.row.started_at is None else self.row.started_at
        status = journal.status_once_claimed(self.row.status)
        self.row = replace(self.row, status=status, started_at=started_at)
        self.epoch, self.worker, self.updated_at = claimed.lease.epoch, claimed.lease.worker, at
        self.write(claimed.events)

    def rename(self, words: Words) -> None:
        """What is said is so from now on."""
        new = self.new
        self.new = replace(
            new,
            title=new.title if words.title is None else words.title,
            labels=new.labels if words.labels is None else words.labels,
            priority=new.priority if words.priority is None else words.priority,
        )

    def summary(self) -> port.TaskSummary:
        new = self.new
        return port.TaskSummary(
            id=new.id,
            owner=new.owner,
            key=new.key,
            title=new.title,
            plan_name=new.plan_name,
            plan_digest=new.plan_digest,
            priority=new.priority,
            created_at=new.at,
            updated_at=self.updated_at,
            epoch=self.epoch,
            worker=self.worker,
            seq=self.last_seq,
            steps=new.steps,
            row=self.row,
        )


def fits(kept: Kept, which: port.TaskFilter) -> bool:
    """Whether a list shows it."""
    new = kept.new
    text = (which.text or "").lower()
    return (
        which.owner in (None, new.owner)
        and (which.statuses is None or kept.row.status in which.statuses)
        and which.plan_name in (None, new.plan_name)
        and which.plan_digest in (None, new.plan_digest)
        and which.inputs_digest in (None, new.inputs_digest)
        and (which.since is None or new.at >= which.since)
        and (which.tool is None or which.tool in new.tools)
        and (which.label is None or new.labels.get(which.label[0]) == which.label[1])
        and any(text in word for word in (new.title.lower(), new.id, (kept.row.error_code or "").lower()))
    )


def line_up(tasks: Iterable[Kept]) -> list[Kept]:
    """Those that can be claimed, in the order in which they are."""
    waiting = [kept for kept in tasks if kept.worker is None and kept.row.status in CLAIMABLE]
    return sorted(waiting, key=lambda kept: (rank(kept.new.priority, kept.new.at), kept.num))


def plan_payload(new: t.NewTask) -> tuple[i.Digest, bytes] | None:
    """The plan of a new task, if it is too long to stand in its first event."""
    assert isinstance(new.created.body, TaskCreated)
    return long_plan(new.created.body)


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
