"""A store in dictionaries: the same semantics, and nothing is left when the process ends. For tests and trials."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from everstep.adapters.stores import journal
from everstep.adapters.stores.journal import PauseChange, PauseClosed, PauseOpened, PausesWithdrawn, PauseWarned
from everstep.adapters.stores.kept import Kept, fits, line_up, opened_pause, page_of, plan_payload
from everstep.adapters.stores.memory_traffic import MemoryTraffic
from everstep.domain import ids as i
from everstep.domain import task as t
from everstep.domain.errors import Conflict, EngineClosed, LeaseLost, NotFound, StoreRefused
from everstep.domain.fold import fold
from everstep.domain.pauses import BY_ITSELF, PauseStatus
from everstep.domain.states import TaskStatus
from everstep.domain.values import JsonValue
from everstep.domain.words import words_changed
from everstep.ports import store as port
from everstep.wire.event import decode
from everstep.wire.values import loads_strict


class MemoryStore(MemoryTraffic):
    """The verbs of the port on dictionaries. Every verb is one turn of the loop, so it needs no lock."""

    news: Final = None
    """One engine: nobody else writes."""

    def __init__(self) -> None:
        self._tasks: dict[i.TaskId, Kept] = {}
        super().__init__(self._tasks)
        self._payloads = self.housekeeping.payloads
        self._me: i.WorkerId | None = None

    async def open(self, worker: port.Worker) -> None:
        """Whoever had it open before is dead or done."""
        self.housekeeping.join(worker)
        self._me = worker.id

    async def close(self) -> None:
        """Mark the worker released. What was stored stays."""
        if self._me is not None:
            self._workers[self._me] = replace(self._workers[self._me], released=True)
            self._me = None

    # Tasks

    async def create_tasks(self, tasks: Sequence[t.NewTask]) -> Sequence[port.Creation]:
        self._opened()
        return [self._create(task) for task in tasks]

    def _create(self, new: t.NewTask) -> port.Creation:
        known = self._tasks.get(new.id) or self._by_key(new)
        if known is not None:
            digests = (known.new.plan_digest, known.new.inputs_digest)
            if known.new.owner == new.owner and digests == (new.plan_digest, new.inputs_digest):
                return port.Created(task=known.new.id, new=False)
            if known.new.id == new.id:
                raise Conflict(f"the id {new.id} is taken")
            return port.KeyTaken(task=known.new.id)
        if new.key is not None and self.housekeeping.spent.get((new.owner, new.key), 0) > new.at:
            raise journal.key_spent()
        for command in new.commands:
            other = self._tasks.get(command.task)
            if command.task != new.id and (other is None or not self._stands(other, command)):
                return journal.NO_TASK if other is None else other.stale()
        if new.live_max is not None and self._live(new.owner) >= new.live_max:
            raise journal.too_many_tasks(new.live_max)
        plan = plan_payload(new)
        if plan is not None:
            self._payloads.update([plan])
        kept = Kept(
            new=new,
            row=journal.QUEUED,
            num=self._next_num(),
            updated_at=new.at,
            tail=self.tail,
        )
        events = journal.commit_drafts(kept.stamp(new.at, 1, new.actor), (new.created,)).events
        kept.write(events)
        self._tasks[new.id] = kept
        for told in [self._command(command) for command in new.commands]:
            assert isinstance(told, port.Committed)
            events = (*events, *told.events)
        if new.first is None or self.halt is not None:
            return port.Created(task=new.id, new=True, events=events)
        claimed = self._lease(kept, port.Claim(worker=new.first.lease.worker, at=new.first.at, limit=1))
        committed = self._commit(new.first)
        assert isinstance(committed, port.Committed)
        events = (*events, *claimed.events, *committed.events)
        return port.Created(task=new.id, new=True, events=events, committed=committed)

    def _next_num(self) -> int:
        return 1 + max((one.num for one in self._tasks.values()), default=0)

    def _by_key(self, new: t.NewTask) -> Kept | None:
        if new.key is None:
            return None
        mine = (kept for kept in self._tasks.values() if (kept.new.owner, kept.new.key) == (new.owner, new.key))
        return next(mine, None)

    async def load_tasks(self, ids: Sequence[i.TaskId]) -> Sequence[t.TaskState | None]:
        self._opened()
        return [self._load(task) for task in ids]

    def _load(self, task: i.TaskId) -> t.TaskState | None:
        kept = self._tasks.get(task)
        state: t.TaskState | None = None
        for event in kept.events if kept else ():
            try:
                state = fold(state, kept.new.owner if kept else "", decode(event.encoded, self._payloads.__getitem__))
            except Exception as error:
                raise StoreRefused(f"the journal of {task} cannot be read: {error}") from error
        return state

    async def list_tasks(self, which: port.TaskFilter) -> port.Page:
        return page_of([kept for kept in self._tasks.values() if fits(kept, which) and self._asks(kept, which)], which)

    def _asks(self, kept: Kept, which: port.TaskFilter) -> bool:
        pauses = [one.pause for one in self._open_pauses(kept.new.id)]
        asks = any(one.type not in BY_ITSELF and "human" in one.may_answer for one in pauses)
        return (asks or not which.needs_you) and which.reason in (None, *(one.type for one in pauses))

    async def find_task(self, owner: str, name: str) -> Sequence[i.TaskId]:
        mine = [kept.new for kept in self._tasks.values() if kept.new.owner == owner]
        exact = [new.id for new in mine if name in (new.id, new.key)]
        return exact or sorted(new.id for new in mine if new.id.startswith(name))[:10]

    async def list_pauses(self, which: port.PauseFilter) -> Sequence[port.KeptPause]:
        return self.pauses(which)

    def pauses(self, which: port.PauseFilter) -> list[port.KeptPause]:
        """The same, for tests that look in between."""
        found = [
            kept
            for kept in self._pauses.values()
            if which.owner in (None, kept.owner)
            and which.task in (None, kept.task)
            and which.id in (None, kept.pause.id)
            and which.status in (None, kept.status)
            and (kept.due_at is not None or not which.timed)
        ]
        if which.timed:
            found.sort(key=lambda kept: kept.due_at or 0)
        if which.newest:
            found.reverse()
        return found[: which.limit]

    # Leases

    async def claim_tasks(self, claim: port.Claim) -> Sequence[port.Claimed]:
        self._opened()
        claimed: list[port.Claimed] = []
        if self.halt is not None:
            return claimed
        suspects = claim.suspects
        for kept in self._claimable(claim):
            if len(claimed) == claim.limit:
                break
            if kept.row.recoveries >= claim.suspect_from:
                if suspects == 0:
                    continue
                suspects -= 1
            claimed.append(self._lease(kept, claim))
        return claimed

    def _lease(self, kept: Kept, claim: port.Claim) -> port.Claimed:
        stamp = kept.stamp(claim.at, kept.row.generation, journal.engine_actor(claim.worker))
        one = journal.start(claim, stamp, kept.row.status, kept.epoch)
        kept.take(one, claim.at)
        return one

    def _claimable(self, claim: port.Claim) -> Iterator[Kept]:
        for kept in self._queue():
            task = kept.new.id
            if (claim.only is None or task in claim.only) and task not in claim.passing_over:
                yield kept

    def _queue(self) -> list[Kept]:
        return line_up(self._tasks.values())

    async def place_of(self, task: i.TaskId) -> int | None:
        queue = [kept.new.id for kept in self._queue()]
        return queue.index(task) + 1 if task in queue else None

    def beat(self, worker: i.WorkerId, at: i.Instant) -> None:
        known = self._workers.get(worker)
        if known is None or known.released or worker in self._fenced:
            raise LeaseLost(f"{worker} was fenced")
        self._workers[worker] = replace(known, heartbeat_at=at)

    async def find_dead(self, worker: i.WorkerId, before: i.Instant, limit: int) -> Sequence[port.Dead]:
        self._opened()
        self._fenced.update(
            known
            for known, one in self._workers.items()
            if known != worker and not one.released and one.heartbeat_at < before
        )
        return [
            port.Dead(task=kept.new.id, status=kept.row.status, epoch=kept.epoch, worker=holder)
            for kept in self._tasks.values()
            if kept.worker not in (None, worker)
            and not kept.worker.startswith(i.ELSEWHERE)
            and ((holder := self._workers.get(kept.worker)) is None or holder.released or holder.id in self._fenced)
        ][:limit]

    async def sweep(self, sweeps: Sequence[t.Sweep]) -> Sequence[port.Commit]:
        return [self._sweep(sweep) for sweep in sweeps]

    def _sweep(self, sweep: t.Sweep) -> port.Commit:
        journal.check_row(sweep.row)
        kept = self._tasks.get(sweep.task)
        if kept is None:
            return journal.NO_TASK
        expected = (sweep.status, sweep.epoch, sweep.worker)
        if (kept.row.status, kept.epoch, kept.worker) != expected or sweep.last_seq not in (None, kept.last_seq):
            return kept.stale()
        stamp = kept.stamp(sweep.at, sweep.row.generation, journal.engine_actor(self._opened()))
        answer = journal.commit_drafts(stamp, sweep.drafts)
        self._write(kept, sweep.row, sweep.at, answer)
        self._follow(kept, journal.pause_changes(sweep.drafts, sweep.at))
        kept.epoch = i.Epoch(kept.epoch + 1)
        kept.worker = None
        return answer

    async def due(self, worker: i.WorkerId, at: i.Instant, limit: int) -> port.Due:
        timed = sorted(
            (kept.row.due_at, kept.num, kept.new.id)
            for kept in self._tasks.values()
            if kept.row.due_at is not None and kept.worker == worker
        )
        come = tuple(task for due_at, _, task in timed if due_at <= at)
        return port.Due(tasks=come[:limit], next_at=next((due_at for due_at, *_ in timed if due_at > at), None))

    # Commits

    async def commit_steps(self, commits: Sequence[t.StepCommit]) -> Sequence[port.Commit]:
        self._opened()
        return [self._commit(commit) for commit in commits]

    def _commit(self, commit: t.StepCommit) -> port.Commit:
        journal.check_row(commit.row)
        lease = commit.lease
        kept = self._tasks.get(lease.task)
        if kept is None:
            return journal.NO_TASK
        if commit.taken is not None:
            return self._take(kept, commit)
        if (kept.last_seq, kept.epoch, kept.worker) != (commit.last_seq, lease.epoch, lease.worker):
            return kept.stale()
        if commit.proposals and self.halt is not None:
            return kept.stale()
        judged = None if commit.toll is None else self.troubles.judge(commit, self._lives)
        commit = commit if judged is None else judged.commit
        answer = journal.commit_steps(commit)
        self._write(kept, commit.row, commit.at, answer)
        self._follow(kept, journal.pause_changes(commit.drafts, commit.at))
        if commit.release:
            kept.worker = None
        born = [self._create(child) for child in commit.children]
        events = [event for one in born if isinstance(one, port.Created) for event in one.events]
        answer = replace(answer, events=(*answer.events, *events)) if events else answer
        return answer if judged is None else self.troubles.keep(judged, answer)

    def _take(self, kept: Kept, commit: t.StepCommit) -> port.Commit:
        claimed = None if self.halt is not None else kept.taken_by(commit)
        if claimed is None or not isinstance(answer := self._commit(replace(commit, taken=None)), port.Committed):
            return kept.stale()
        return replace(answer, events=(*claimed.events, *answer.events))

    def _lives(self, worker: i.WorkerId) -> bool:
        known = self._workers.get(worker)
        return known is not None and not known.released and worker not in self._fenced

    async def commit_commands(self, commands: Sequence[t.Command]) -> Sequence[port.Commit]:
        self._opened()
        return [self._command(command) for command in commands]

    def _command(self, command: t.Command) -> port.Commit:
        journal.check_row(command.row)
        kept = self._tasks.get(command.task)
        if kept is None or not self._stands(kept, command):
            return journal.NO_TASK if kept is None else kept.stale()
        stamp = kept.stamp(command.at, command.row.generation, command.actor)
        answer = journal.commit_drafts(stamp, command.drafts)
        row = command.row
        if kept.worker is None:
            row = replace(row, started_at=kept.row.started_at)
        else:
            added = journal.figures_added(command)
            row = replace(
                kept.row,
                status=row.status,
                generation=row.generation,
                ended_at=row.ended_at,
                outcome=row.outcome,
                error_code=row.error_code,
                done=kept.row.done + added["ends"],
                recoveries=0 if added["outcomes"] else kept.row.recoveries,
            )
        self._write(kept, row, command.at, answer)
        if command.steps is not None:
            kept.new = replace(kept.new, steps=command.steps)
        words = words_changed(command.drafts)
        if words is not None:
            kept.rename(words)
        self._follow(kept, journal.pause_changes(command.drafts, command.at))
        return answer

    def _stands(self, kept: Kept, command: t.Command) -> bool:
        if (kept.row.status, kept.row.generation) != (command.status, command.generation):
            return False
        exact = kept.worker is None or command.steps is not None or command.ends is not None
        if exact and command.last_seq not in (None, kept.last_seq):
            return False
        if command.pause is None:
            return True
        asked = self._pauses.get(command.pause)
        return asked is not None and asked in self._open_pauses(kept.new.id)

    def _write(self, kept: Kept, row: t.TaskRow, at: i.Instant, answer: port.Committed) -> None:
        kept.row = row
        kept.updated_at = at
        kept.write(answer.events)

    def _follow(self, kept: Kept, changes: Sequence[PauseChange]) -> None:
        """The list of pauses follows the journal."""
        task = kept.new.id
        for change in changes:
            match change:
                case PauseOpened(pause=pause, at=at, due_at=due):
                    self._pauses[pause.id] = opened_pause(kept, pause, at, due)
                case PauseWarned(id=pause_id, expires_at=expires_at, due_at=due):
                    told = self._pauses[pause_id]
                    pause = replace(told.pause, expires_at=expires_at)
                    self._pauses[pause_id] = replace(told, pause=pause, due_at=due)
                case PauseClosed(id=pause_id, status=status):
                    self._pauses[pause_id] = replace(self._pauses[pause_id], status=status)
                case PausesWithdrawn():
                    for one in self._open_pauses(task):
                        self._pauses[one.pause.id] = replace(one, status=PauseStatus.WITHDRAWN)

    def _open_pauses(self, task: i.TaskId) -> list[port.KeptPause]:
        return [one for one in self._pauses.values() if one.task == task and one.status is PauseStatus.OPEN]

    # Journal, payloads, keeping

    async def read_events(self, task: i.TaskId, after: i.Seq, limit: int) -> Sequence[port.Journaled]:
        kept = self._tasks.get(task)
        return [] if kept is None else kept.events[after : after + limit]

    async def put_payloads(self, payloads: Sequence[tuple[i.Digest, bytes]]) -> None:
        for digest, raw in payloads:
            journal.check_payload(digest, raw)
            self._payloads[digest] = raw
            self.housekeeping.fresh.add(digest)

    async def read_payload(self, digest: i.Digest) -> bytes:
        if digest not in self._payloads:
            raise NotFound(f"no payload {digest}")
        return self._payloads[digest]

    async def get_payloads(self, digests: Sequence[i.Digest]) -> Sequence[JsonValue]:
        return [loads_strict(await self.read_payload(digest)) for digest in digests]

    async def info(self, *, whole: bool = False) -> port.Info:  # noqa: ARG002 -- there is no more to say
        tasks = {status.value: 0 for status in TaskStatus}
        for kept in self._tasks.values():
            tasks[kept.row.status.value] += 1
        return port.Info(
            kind="memory",
            location="",
            schema_version=0,
            durability="none",
            tasks=tasks,
            events=sum(len(kept.events) for kept in self._tasks.values()),
            size_bytes=0,
            details={"status": "ok"},
        )

    async def check(self) -> Sequence[port.Flaw]:
        return [line for kept in self._tasks.values() for line in self._problems(kept)]

    def _problems(self, kept: Kept) -> Iterator[port.Flaw]:
        state = self._load(kept.new.id)
        assert state is not None
        if (t.row_of(state), state.epoch, state.worker) != (kept.row, kept.epoch, kept.worker):
            yield port.Flaw(what="the row does not follow from the journal", task=kept.new.id)
        words = (kept.new.title, kept.new.labels, kept.new.priority)
        if (state.title, state.labels, state.priority) != words:
            yield port.Flaw(what="title, labels or priority do not follow from the journal", task=kept.new.id)
        if [one.pause.id for one in self._open_pauses(kept.new.id)] != list(state.pauses):
            yield port.Flaw(what="the open pauses do not follow from the journal", task=kept.new.id)

    def _opened(self) -> i.WorkerId:
        if self._me is None:
            raise EngineClosed("the store is not open")
        return self._me
