"""What each kind of unit does inside the writer's transaction: guard, events, row, pauses.

A unit never begins or ends a transaction, and never learns whether it has company.
"""

import json
from dataclasses import replace
from typing import Any, Final, Protocol

from everstep.adapters.stores import journal
from everstep.adapters.stores.journal import Stamp
from everstep.adapters.stores.sql.desk import Desk, Mismatch, last_link
from everstep.adapters.stores.sql.rows import Guard, figures, newborn, stale, steady
from everstep.domain.errors import Conflict, LeaseLost
from everstep.domain.events import Draft, TaskCreated, TaskStarted
from everstep.domain.ids import Epoch, Instant, Seq, WorkerId
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.domain.task import Command, NewTask, StepCommit, Sweep
from everstep.domain.words import words_changed
from everstep.ports.store import Commit, Committed, Created, Creation, KeyTaken
from everstep.wire.event import long_plan

COMMAND_BYTES: Final = 1024
"""What an event is taken for while it is not encoded: the writer does that, for a whole batch at once."""


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
    """A holder's commit."""

    __slots__ = ("answer", "children", "commit", "pauses", "size_bytes", "steady", "task")
    answer: Committed

    def __init__(self, commit: StepCommit) -> None:
        self.commit = commit
        self.task = commit.lease.task
        self.size_bytes = COMMAND_BYTES * (len(commit.drafts) + len(commit.proposals))
        self.children: list[CreateUnit] = [CreateUnit(child) for child in commit.children] if commit.children else []

    def write(self) -> None:
        """Everything that follows from the commit alone. Raises what refuses it."""
        commit = self.commit
        journal.check_row(commit.row)
        self.answer = journal.commit_steps(commit)
        self.steady = steady(commit.row)
        self.pauses = journal.pause_changes(commit.drafts, commit.at)

    @property
    def areas(self) -> tuple[str, ...]:
        """Outcomes and intents share a commit; both names are struck."""
        born = ("create",) if self.children else ()
        return (*born, *(("outcome",) if self.commit.drafts else ()), *(("intent",) if self.commit.proposals else ()))

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

    def after(self, guard: Guard, head: bytes) -> Guard:
        """What stands once this is written."""
        row = self.commit.row
        worker = None if self.commit.release else guard.worker
        last_seq = self.answer.last_seq
        return Guard(guard.num, row.status, row.generation, guard.epoch, worker, last_seq, head, self.steady)

    def apply(self, desk: Desk) -> Commit:
        self.write()
        guard = desk.guard(self.task)
        if guard is None or not self.stands(guard) or (self.commit.proposals and desk.halted):
            return stale(guard)
        rows = desk.linked(guard, self.commit.at, self.answer.events)
        desk.insert_events(rows)
        if desk.change("release_task" if self.commit.release else "update_task", self.update(guard)) != 1:
            raise Mismatch(self.task)
        desk.change_pauses(guard.num, self.task, self.pauses)
        desk.guards.put(self.task, self.after(guard, last_link(rows, guard.head)))
        if self.children:
            made = [child.apply(desk) for child in self.children]
            born = [event for one in made if isinstance(one, Created) for event in one.events]
            return replace(self.answer, events=(*self.answer.events, *born))
        return self.answer


class CreateUnit:
    """A new task and its first event."""

    __slots__ = ("answer", "areas", "begun", "plan", "size_bytes", "task")
    answer: Created

    def __init__(self, task: NewTask) -> None:
        self.task = task
        self.begun = None if task.first is None else _Begun(task.first)
        self.size_bytes = COMMAND_BYTES if self.begun is None else 2 * COMMAND_BYTES + self.begun.commit.size_bytes
        assert isinstance(task.created.body, TaskCreated)
        self.plan = long_plan(task.created.body)
        """To be kept before this unit is written, if it is too long for its event."""
        self.areas: tuple[str, ...] = ("create",) if self.begun is None else ("claim", "create", "intent")
        if task.commands:
            self.areas = ("command", *self.areas)

    @property
    def simple(self) -> bool:
        """Whether nothing but its own id can be in its way."""
        return self.begun is not None and self.task.key is None and not self.task.commands

    def write(self) -> None:
        """Everything that follows from the task alone. Raises what refuses it."""
        task = self.task
        stamp = Stamp(task=task.id, last_seq=Seq(0), generation=1, at=task.at, actor=task.actor)
        events = journal.commit_drafts(stamp, (task.created,)).events
        committed = None
        if self.begun is not None:
            self.begun.write()
            committed = self.begun.commit.answer
            events = (*events, *self.begun.claimed.events, *committed.events)
        self.answer = Created(task=task.id, new=True, events=events, committed=committed)

    def apply(self, desk: Desk) -> Creation:
        task = self.task
        self.write()
        for known, owner, *digests in desk.rows("find_same_task", (task.id, task.owner, task.key)):
            same = owner == task.owner and digests == [task.plan_digest, task.inputs_digest]
            if same:
                return Created(task=known, new=False)
            if known == task.id:
                raise Conflict(f"the id {task.id} is taken")
            return KeyTaken(task=known)
        if task.key is not None and any(desk.rows("is_key_spent", (task.owner, task.key, task.at))):
            raise journal.key_spent()
        for command in task.commands:
            guard = desk.guard(command.task)
            if command.task != task.id and (guard is None or not stands(desk, guard, command)):
                return stale(guard)
        if task.live_max is not None:
            desk.admit(task.owner, task.live_max)
        begun = None if desk.halted else self.begun
        new = self.guard(desk.number())
        desk.change("insert_task", self.row(new.num, begun))
        if begun is not None:
            head = desk.append(new, task.at, self.answer.events)
            desk.change_pauses(new.num, task.id, begun.commit.pauses)
            desk.guards.put(task.id, begun.after(new, head))
            return self.answer
        head = desk.append(new, task.at, self.answer.events[:1])
        if task.commands:
            desk.guards.put(task.id, new._replace(head=head))
            told = [CommandUnit(command=command).apply(desk) for command in task.commands]
            events = [event for one in told if isinstance(one, Committed) for event in one.events]
            return replace(self.answer, events=(*self.answer.events, *events))
        return Created(task=task.id, new=True, events=self.answer.events[:1])

    def guard(self, num: int) -> Guard:
        """What stands before its first line."""
        return newborn(num, self.task.owner)

    def row(self, num: int, begun: "_Begun | None") -> tuple[str | int | None, ...]:
        """What `insert_task` takes."""
        task = self.task
        said = (task.plan_name, task.plan_digest, task.inputs_digest, task.title, task.priority, task.steps, task.at)
        labels = journal.label_text(task.labels) if task.labels else "{}"
        lists = (labels, json.dumps(task.tools), journal.parent_of(task))
        return (num, task.id, task.owner, task.key, *said, *self._stands(begun), *lists)

    def _stands(self, begun: "_Begun | None") -> tuple[str | int | None, ...]:
        """The figures, last seq, time, epoch and worker that the task is created with."""
        if begun is None:
            return (*figures(journal.QUEUED), Seq(1), self.task.at, Epoch(0), None)
        commit = begun.commit.commit
        worker = None if commit.release else commit.lease.worker
        return (*figures(commit.row), begun.commit.answer.last_seq, commit.at, commit.lease.epoch, worker)


class _Begun:
    """The claim and the first commit of a task that begins where, and when, it is created."""

    __slots__ = ("claimed", "commit")
    claimed: Committed

    def __init__(self, first: StepCommit) -> None:
        self.commit = StepUnit(first)

    def write(self) -> None:
        """The events, but for the first."""
        first = self.commit.commit
        lease = first.lease
        actor = journal.engine_actor(lease.worker)
        stamp = Stamp(task=lease.task, last_seq=Seq(1), generation=1, at=first.at, actor=actor)
        body = TaskStarted(from_status=TaskStatus.QUEUED, worker=lease.worker, epoch=lease.epoch)
        self.claimed = journal.commit_drafts(stamp, (Draft(body),))
        self.commit.write()

    def after(self, new: Guard, head: bytes) -> Guard:
        """What stands once all its lines are written. Raises Mismatch."""
        unit, worker = self.commit, self.commit.commit.lease.worker
        claimed = Guard(new.num, TaskStatus.RUNNING, 1, Epoch(1), worker, self.claimed.last_seq, None)
        if not unit.stands(claimed):
            raise Mismatch(unit.task)
        return unit.after(claimed, head)


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
        if guard is None or not stands(desk, guard, command):
            return stale(guard)
        stamp = Stamp(
            task=command.task, last_seq=guard.last_seq, generation=row.generation, at=command.at, actor=command.actor
        )
        answer = journal.commit_drafts(stamp, command.drafts)
        head = desk.append(guard, command.at, answer.events)
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
        if command.steps is not None:
            desk.change("revise_task", (command.steps, guard.num))
        words = words_changed(command.drafts)
        if words:
            labels = None if words.labels is None else journal.label_text(words.labels)
            named = {"title": words.title, "priority": words.priority, "labels": labels, "num": guard.num}
            desk.change("rename_task", named)
        desk.change_pauses(guard.num, command.task, journal.pause_changes(command.drafts, command.at))
        after = guard._replace(
            status=row.status, generation=row.generation, last_seq=answer.last_seq, head=head, steady=None
        )
        desk.guards.put(command.task, after)
        return answer


def stands(desk: Desk, guard: Guard, command: Command) -> bool:
    """Whether the task is as the command believes."""
    if guard.status is not command.status or guard.generation != command.generation:
        return False
    exact = guard.worker is None or command.steps is not None or command.ends is not None
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
        guard = desk.free_guard(sweep.task)
        if guard is None or (guard.status, guard.epoch, guard.worker) != (sweep.status, sweep.epoch, sweep.worker):
            return stale(guard)
        if sweep.last_seq not in (None, guard.last_seq):
            return stale(guard)
        actor = journal.engine_actor(desk.me)
        stamp = Stamp(task=sweep.task, last_seq=guard.last_seq, generation=row.generation, at=sweep.at, actor=actor)
        answer = journal.commit_drafts(stamp, sweep.drafts)
        head = desk.append(guard, sweep.at, answer.events)
        expected = (guard.num, guard.status, guard.epoch, guard.worker, guard.last_seq)
        if desk.change("sweep_task", (*figures(row), answer.last_seq, sweep.at, *expected)) != 1:
            raise Mismatch(sweep.task)
        desk.change_pauses(guard.num, sweep.task, journal.pause_changes(sweep.drafts, sweep.at))
        epoch = Epoch(guard.epoch + 1)
        desk.guards.put(sweep.task, Guard(guard.num, row.status, row.generation, epoch, None, answer.last_seq, head))
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
    areas: tuple[str, ...] = ("worker",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> int:
        return desk.change(self.name, self.values)
