"""What each kind of unit does inside the writer's transaction: guard, events, row, pauses.

A unit never begins or ends a transaction, and never learns whether it has company.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from everstep.adapters.stores import journal
from everstep.adapters.stores.journal import Stamp
from everstep.adapters.stores.sqlite.desk import Desk, Mismatch, lines
from everstep.adapters.stores.sqlite.rows import Guard, figures, stale, steady
from everstep.domain.errors import Conflict, LeaseLost
from everstep.domain.events import TaskCreated
from everstep.domain.ids import Epoch, Instant, Seq, TaskId, WorkerId
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.domain.task import Command, NewTask, StepCommit, Sweep
from everstep.ports.store import Claim, Claimed, Commit, Committed, Created, Creation, KeyTaken
from everstep.wire.event import long_plan

COMMAND_BYTES: Final = 1024
"""What a command is taken for while its events are not encoded."""


class Unit(Protocol):
    """One guarded write."""

    @property
    def areas(self) -> tuple[str, ...]:
        """What the failpoints around its commit are called."""

    @property
    def size_bytes(self) -> int: ...

    def apply(self, desk: Desk) -> object:
        """Write, or answer why not. Raises to be undone alone."""


class StepUnit:
    """A holder's commit. Everything that can be made before the writer's turn is made here."""

    __slots__ = ("answer", "commit", "lines", "pauses", "size_bytes", "steady", "task")

    def __init__(self, commit: StepCommit) -> None:
        journal.check_row(commit.row)
        self.answer = journal.commit_steps(commit)
        self.commit = commit
        self.task = commit.lease.task
        self.steady = steady(commit.row)
        steps = [draft.step for draft in commit.drafts]
        steps.extend([intent.step for intent in self.answer.intents])
        self.lines = lines(commit.at, steps, self.answer.events)
        self.pauses = journal.pause_changes(commit.drafts, commit.at)
        self.size_bytes = 0
        for line in self.lines:
            self.size_bytes += len(line[4])

    @property
    def areas(self) -> tuple[str, ...]:
        """Outcomes and intents share a commit; both names are struck."""
        return (*(("outcome",) if self.commit.drafts else ()), *(("intent",) if self.commit.proposals else ()))

    def stands(self, guard: Guard) -> bool:
        """Epoch, holder and journal are as the holder believes."""
        commit = self.commit
        lease = commit.lease
        return guard.last_seq == commit.last_seq and guard.epoch == lease.epoch and guard.worker == lease.worker

    def update(self, guard: Guard) -> tuple[Any, ...]:
        """What `update_task` and `release_task` take."""
        written = (*figures(self.commit.row), self.answer.last_seq, self.commit.at)
        return (*written, guard.num, guard.status, guard.epoch, guard.worker, guard.last_seq)

    def touch(self, guard: Guard) -> tuple[Any, ...]:
        """What `touch_task` takes."""
        row = self.commit.row
        written = (row.recoveries, row.done, self.answer.last_seq, self.commit.at)
        return (*written, guard.num, guard.epoch, guard.worker, guard.last_seq)

    def after(self, guard: Guard) -> Guard:
        """What stands once this is written."""
        row = self.commit.row
        worker = None if self.commit.release else guard.worker
        return Guard(guard.num, row.status, row.generation, guard.epoch, worker, self.answer.last_seq, self.steady)

    def apply(self, desk: Desk) -> Commit:
        guard = desk.guard(self.task)
        if guard is None or not self.stands(guard) or (self.commit.proposals and desk.halted):
            return stale(guard)
        desk.change_many("insert_event", [(guard.num, *line) for line in self.lines])
        if desk.change("release_task" if self.commit.release else "update_task", self.update(guard)) != 1:
            raise Mismatch(self.task)
        desk.change_pauses(guard.num, self.task, self.pauses)
        desk.guards.put(self.task, self.after(guard))
        return self.answer


class CreateUnit:
    """A new task and its first event."""

    __slots__ = ("answer", "areas", "begun", "events", "plan", "size_bytes", "task")

    def __init__(self, task: NewTask) -> None:
        stamp = Stamp(task=task.id, last_seq=Seq(0), generation=1, at=task.at, actor=task.actor)
        self.task = task
        self.events = journal.commit_drafts(stamp, (task.created,)).events
        self.answer = Created(task=task.id, new=True, events=self.events)
        self.begun = None if task.first is None else _Begun(task.first)
        if self.begun is not None:
            committed = self.begun.commit.answer
            events = (*self.events, *self.begun.claimed.events, *committed.events)
            self.answer = Created(task=task.id, new=True, events=events, committed=committed)
        self.size_bytes = sum(len(event.encoded) for event in self.answer.events)
        assert isinstance(task.created.body, TaskCreated)
        self.plan = long_plan(task.created.body)
        """To be kept before this unit is written, if it is too long for its event."""
        self.areas: tuple[str, ...] = ("create",) if self.begun is None else ("claim", "create", "intent")

    def apply(self, desk: Desk) -> Creation:
        task = self.task
        values: dict[str, str | int | None] = {"id": task.id, "owner": task.owner, "key": task.key}
        for known, owner, *digests in desk.rows("find_same_task", values):
            same = owner == task.owner and digests == [task.plan_digest, task.inputs_digest]
            if same:
                return Created(task=known, new=False)
            if known == task.id:
                raise Conflict(f"the id {task.id} is taken")
            return KeyTaken(task=known)
        values |= {
            "plan_name": task.plan_name,
            "plan_digest": task.plan_digest,
            "inputs_digest": task.inputs_digest,
            "title": task.title,
            "priority": task.priority,
            "steps": task.steps,
            "at": task.at,
            "labels": journal.label_text(task.labels),
            "tools": json.dumps(task.tools),
        }
        desk.admit(task.owner, task.live_max)
        desk.change("insert_task", values)
        num = desk.connection.last_insert_rowid()
        desk.append(num, task.at, (task.created,), self.events)
        if self.begun is not None and desk.halted:
            return Created(task=task.id, new=True, events=self.events)
        if self.begun is not None:
            self.begun.apply(desk, Guard(num, TaskStatus.QUEUED, 1, Epoch(0), None, Seq(1)))
        return self.answer


class _Begun:
    """The claim and the first commit of a task that begins where it is created."""

    __slots__ = ("claimed", "commit")

    def __init__(self, first: StepCommit) -> None:
        lease = first.lease
        stamp = Stamp(
            task=lease.task,
            last_seq=Seq(1),
            generation=1,
            at=first.at,
            actor=journal.engine_actor(lease.worker),
        )
        claim = Claim(worker=lease.worker, at=first.at, limit=1)
        self.claimed = journal.start(claim, stamp, TaskStatus.QUEUED, Epoch(0))
        self.commit = StepUnit(first)

    def apply(self, desk: Desk, guard: Guard) -> None:
        _lease(desk, self.commit.commit.at, [(guard, self.claimed)])
        if not isinstance(self.commit.apply(desk), Committed):
            raise Mismatch(self.commit.task)


def _lease(desk: Desk, at: Instant, started: Sequence[tuple[Guard, Claimed]]) -> None:
    """Write claims down."""
    desk.change_many(
        "insert_event",
        [(guard.num, *line) for guard, one in started for line in lines(at, (None,), one.events)],
    )
    for guard, one in started:
        lease = one.lease
        status = journal.status_once_claimed(guard.status)
        values = (status, lease.worker, at, at, guard.num, guard.epoch, guard.last_seq)
        if desk.change("claim_task", values) != 1:
            raise Mismatch(lease.task)
        after = Guard(guard.num, status, guard.generation, lease.epoch, lease.worker, one.last_seq)
        desk.guards.put(lease.task, after)


@record
class ClaimUnit:
    """Leases for a worker."""

    claim: Claim
    areas: tuple[str, ...] = ("claim",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> list[Claimed]:
        claim = self.claim
        if desk.halted:
            return []
        started: list[tuple[Guard, Claimed]] = []
        for num, task, status, generation, epoch, last_seq in self._candidates(desk):
            guard = Guard(num, TaskStatus(status), generation, epoch, None, last_seq)
            stamp = Stamp(
                task=TaskId(task),
                last_seq=guard.last_seq,
                generation=guard.generation,
                at=claim.at,
                actor=journal.engine_actor(claim.worker),
            )
            started.append((guard, journal.start(claim, stamp, guard.status, guard.epoch)))
        _lease(desk, claim.at, started)
        return [one for _, one in started]

    def _candidates(self, desk: Desk) -> list[tuple[Any, ...]]:
        claim = self.claim
        if claim.only is None:
            found = desk.rows("claim_candidates", {})
        else:
            found = desk.rows("claim_candidates_of", {"ids": json.dumps(sorted(claim.only))})
        return list(islice(self._allowed(found), claim.limit))

    def _allowed(self, found: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Not those to pass over, and of suspects only so many."""
        suspects = self.claim.suspects
        for *row, recoveries in found:
            if row[1] in self.claim.passing_over:
                continue
            if recoveries >= self.claim.suspect_from:
                if suspects == 0:
                    continue
                suspects -= 1
            yield tuple(row)


@record
class CommandUnit:
    """A write from outside the lease."""

    command: Command
    areas: tuple[str, ...] = ("command",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> Commit:
        command, row = self.command, self.command.row
        journal.check_row(row)
        guard = desk.guard(command.task)
        if guard is None or not self._stands(desk, guard):
            return stale(guard)
        stamp = Stamp(
            task=command.task,
            last_seq=guard.last_seq,
            generation=row.generation,
            at=command.at,
            actor=command.actor,
        )
        answer = journal.commit_drafts(stamp, command.drafts)
        desk.append(guard.num, command.at, command.drafts, answer.events)
        values: dict[str, str | int | None] = {
            "status": row.status,
            "generation": row.generation,
            "ended_at": row.ended_at,
            "outcome": row.outcome,
            "error_code": row.error_code,
            "last_seq": answer.last_seq,
            "at": command.at,
            "num": guard.num,
            "old_last_seq": guard.last_seq,
        }
        if guard.worker is None:
            values |= {"recoveries": row.recoveries, "done": row.done, "due_at": row.due_at}
        else:
            values |= journal.figures_added(command)
        if desk.change("command_free_task" if guard.worker is None else "command_held_task", values) != 1:
            raise Mismatch(command.task)
        words = journal.words_changed(command.drafts)
        if words:
            labels = None if words.labels is None else journal.label_text(words.labels)
            named = {"title": words.title, "priority": words.priority, "labels": labels, "num": guard.num}
            desk.change("rename_task", named)
        desk.change_pauses(guard.num, command.task, journal.pause_changes(command.drafts, command.at))
        after = guard._replace(status=row.status, generation=row.generation, last_seq=answer.last_seq, steady=None)
        desk.guards.put(command.task, after)
        return answer

    def _stands(self, desk: Desk, guard: Guard) -> bool:
        command = self.command
        if guard.status is not command.status or guard.generation != command.generation:
            return False
        exact = guard.worker is None or command.ends is not None
        if exact and command.last_seq not in (None, guard.last_seq):
            return False
        return command.pause is None or any(desk.rows("is_pause_open", (command.pause, guard.num)))


@record
class SweepUnit:
    """A dead worker's task."""

    sweep: Sweep
    areas: tuple[str, ...] = ("sweep",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> Commit:
        sweep, row = self.sweep, self.sweep.row
        journal.check_row(row)
        guard = desk.guard(sweep.task)
        if guard is None or (guard.status, guard.epoch, guard.worker) != (sweep.status, sweep.epoch, sweep.worker):
            return stale(guard)
        stamp = Stamp(
            task=sweep.task,
            last_seq=guard.last_seq,
            generation=row.generation,
            at=sweep.at,
            actor=journal.engine_actor(desk.me),
        )
        answer = journal.commit_drafts(stamp, sweep.drafts)
        desk.append(guard.num, sweep.at, sweep.drafts, answer.events)
        expected = (guard.num, guard.status, guard.epoch, guard.worker, guard.last_seq)
        if desk.change("sweep_task", (*figures(row), answer.last_seq, sweep.at, *expected)) != 1:
            raise Mismatch(sweep.task)
        desk.change_pauses(guard.num, sweep.task, journal.pause_changes(sweep.drafts, sweep.at))
        epoch = Epoch(guard.epoch + 1)
        desk.guards.put(sweep.task, Guard(guard.num, row.status, row.generation, epoch, None, answer.last_seq))
        return answer


@record
class BeatUnit:
    """Proof of life."""

    worker: WorkerId
    at: Instant
    areas: tuple[str, ...] = ("renew",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> None:
        if desk.change("beat_worker", {"id": self.worker, "at": self.at}) != 1:
            raise LeaseLost(f"{self.worker} was fenced")


@record
class StatementUnit:
    """A small write that needs no guard."""

    name: str
    values: dict[str, str | int]
    areas: tuple[str, ...] = ()
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> int:
        return desk.change(self.name, self.values)
