"""The verbs of the port on a database: units for its writer, questions for its readers. What is returned is durable."""

from collections.abc import Awaitable, Sequence
from typing import Final, cast

from everstep.adapters.stores.sql import apply, questions
from everstep.adapters.stores.sql.claim import ClaimUnit
from everstep.adapters.stores.sql.toll import SqlTroubles, unit_of
from everstep.adapters.stores.sql.traffic import SqlTraffic
from everstep.domain import ids as i
from everstep.domain import task as t
from everstep.domain.values import JsonValue
from everstep.ports import store as port
from everstep.ports.clock import Clock

BEAT_MAX_S: Final = 10.0


class SqlStore(SqlTraffic):
    """What does not depend on the database."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.troubles: Final = SqlTroubles(lambda: self._hold)

    @property
    def waiting_writes(self) -> tuple[int, int]:
        """How many wait, and how many may."""
        return self._hold.writes.waiting

    # Tasks

    async def create_tasks(self, tasks: Sequence[t.NewTask]) -> Sequence[port.Creation]:
        """Task and first event in one transaction; same owner and key, same task."""
        units = [apply.CreateUnit(task) for task in tasks]
        await self.put_payloads([unit.plan for unit in units if unit.plan is not None])
        answers = await self._hold.writes.submit(units)
        return cast("Sequence[port.Creation]", answers)

    async def load_tasks(self, ids: Sequence[i.TaskId]) -> Sequence[t.TaskState | None]:
        """States as the fold of their journals; None for an unknown id."""
        hold = self._hold
        return await hold.readers.read(lambda reader: questions.load_tasks(reader, ids, hold.artifacts.read))

    async def list_tasks(self, which: port.TaskFilter) -> port.Page:
        """Summaries, newest first; keyset order."""
        return await self._hold.readers.read(lambda reader: questions.list_tasks(reader, which))

    async def find_task(self, owner: str, name: str) -> Sequence[i.TaskId]:
        """Tasks of this owner whose id or key is `name`, or whose id starts with it."""
        return await self._hold.readers.read(lambda reader: questions.find_task(reader, owner, name))

    async def list_pauses(self, which: port.PauseFilter) -> Sequence[port.KeptPause]:
        """Pauses, oldest first."""
        return await self._hold.readers.read(lambda reader: questions.list_pauses(reader, which))

    # Leases

    async def claim_tasks(self, claim: port.Claim) -> Sequence[port.Claimed]:
        """Take claimable tasks by priority and age."""
        (answer,) = await self._hold.writes.submit((ClaimUnit(claim=claim),))
        return cast("Sequence[port.Claimed]", answer)

    def beat(self, worker: i.WorkerId, at: i.Instant) -> None:
        """Renew the worker's lease; raises LeaseLost when it was fenced."""
        self._hold.writes.submit_blocking(apply.BeatUnit(worker=worker, at=at), BEAT_MAX_S)

    async def find_dead(self, worker: i.WorkerId, before: i.Instant, limit: int) -> Sequence[port.Dead]:
        """Fence who was silent, then list what the fenced, the released and the unknown hold."""
        hold = self._hold
        values = self._silence(worker, before)
        if await hold.readers.read(lambda reader: reader.rows("are_workers_silent", values)):
            await hold.writes.submit((apply.StatementUnit(name="fence_workers", values=values),))
            await self._end_fenced()
        return await hold.readers.read(lambda reader: questions.find_dead(reader, worker, limit))

    async def _end_fenced(self) -> None:
        """Whatever those who were fenced may have left open."""

    def _silence(self, me: i.WorkerId, before: i.Instant) -> dict[str, str | int]:
        """Who is to be fenced: everybody else who was silent since then."""
        return {"at": self._clock.now(), "me": me, "before": before}

    async def sweep(self, sweeps: Sequence[t.Sweep]) -> Sequence[port.Commit]:
        """Move dead workers' tasks; epoch + 1, worker none."""
        answers = await self._hold.writes.submit([apply.SweepUnit(sweep=sweep) for sweep in sweeps])
        return cast("Sequence[port.Commit]", answers)

    async def due(self, worker: i.WorkerId, at: i.Instant, limit: int) -> port.Due:
        """This worker's tasks whose `due_at` has come."""
        return await self._hold.readers.read(lambda reader: questions.due(reader, worker, at, limit))

    # Commits

    def commit_steps(self, commits: Sequence[t.StepCommit]) -> Awaitable[Sequence[port.Commit]]:
        """Outcomes and next intents, guarded by (epoch, worker, last_seq)."""
        for commit in commits:
            if commit.children:
                return self._commit_with_children(commits)
        answers = self._hold.writes.submit([unit_of(commit) for commit in commits])
        return cast("Awaitable[Sequence[port.Commit]]", answers)

    async def _commit_with_children(self, commits: Sequence[t.StepCommit]) -> Sequence[port.Commit]:
        """The same, where a plan of a task that is made may have to be kept first."""
        plans = [apply.CreateUnit(child).plan for commit in commits for child in commit.children]
        await self.put_payloads([plan for plan in plans if plan is not None])
        answers = await self._hold.writes.submit([unit_of(commit) for commit in commits])
        return cast("Sequence[port.Commit]", answers)

    async def commit_commands(self, commands: Sequence[t.Command]) -> Sequence[port.Commit]:
        """Commands and answers, guarded by (status, generation, open pause)."""
        answers = await self._hold.writes.submit([apply.CommandUnit(command=command) for command in commands])
        return cast("Sequence[port.Commit]", answers)

    # Journal and payloads

    async def read_events(self, task: i.TaskId, after: i.Seq, limit: int) -> Sequence[port.Journaled]:
        """The journal from `after + 1` on."""
        return await self._hold.readers.read(lambda reader: questions.read_events(reader, task, after, limit))

    async def put_payloads(self, payloads: Sequence[tuple[i.Digest, bytes]]) -> None:
        """Keep payloads by content, durably, before the commit that refers to them."""
        if payloads:
            await self._hold.artifacts.put(payloads)

    async def read_payload(self, digest: i.Digest) -> bytes:
        """The bytes of one; raises NotFound."""
        return await self._hold.artifacts.raw(digest)

    async def get_payloads(self, digests: Sequence[i.Digest]) -> Sequence[JsonValue]:
        """Payloads by content; raises NotFound."""
        return await self._hold.artifacts.get(digests)
