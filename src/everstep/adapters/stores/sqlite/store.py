"""The embedded store: the verbs of the port on one SQLite file.

Writes go through one thread (`groupcommit`, `ledger`), reads through a few others (`readers`); the loop waits for
neither. What is returned is durable.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final, cast

from everstep.adapters.stores.sqlite import apply, keeping, questions
from everstep.adapters.stores.sqlite.connect import Durability
from everstep.adapters.stores.sqlite.hold import Hold, open_store
from everstep.adapters.stores.sqlite.opening import Setup
from everstep.adapters.stores.sqlite.toll import SqliteTroubles, unit_of
from everstep.adapters.stores.sqlite.traffic import SqliteTraffic
from everstep.domain import ids as i
from everstep.domain import task as t
from everstep.domain.values import JsonValue
from everstep.ports import store as port
from everstep.ports.clock import Clock
from everstep.ports.fault import Fault, no_fault

BEAT_MAX_S: Final = 10.0


class SqliteStore(SqliteTraffic):
    """One file, one engine."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        fault: Fault = no_fault,
        durability: Durability = "power",
        artifacts: Path | None = None,
        allow_fuse: bool = False,
        audit_key: str = "",
    ) -> None:
        super().__init__()
        self._setup = Setup(
            path=path,
            artifacts=artifacts or path.parent / "artifacts",
            durability=durability,
            allow_fuse=allow_fuse,
            fault=fault,
            audit_key=audit_key,
        )
        self._clock = clock
        self._held: Hold | None = None
        self.troubles: Final = SqliteTroubles(lambda: self._hold)

    async def open(self, worker: port.Worker) -> None:
        """Lock, migrate, verify, register; raises StoreLocked, StoreRefused, Unavailable."""
        assert self._held is None, "open once"
        self._held = await open_store(self._setup, worker, self._clock)

    async def close(self) -> None:
        """Mark the worker released, let go of everything. Closing twice is harmless."""
        held, self._held = self._held, None
        if held is not None:
            await held.close(self._clock)

    def announce(self, *, url: str | None = None, socket: str | None = None) -> None:
        """Say beside the file where this engine can be reached."""
        self._hold.announce(url, socket)

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
        (answer,) = await self._hold.writes.submit((apply.ClaimUnit(claim=claim),))
        return cast("Sequence[port.Claimed]", answer)

    def beat(self, worker: i.WorkerId, at: i.Instant) -> None:
        """Renew the worker's lease; raises LeaseLost when it was fenced."""
        self._hold.writes.submit_blocking(apply.BeatUnit(worker=worker, at=at), BEAT_MAX_S)

    async def find_dead(self, worker: i.WorkerId, before: i.Instant, limit: int) -> Sequence[port.Dead]:
        """Fence who was silent, then list what the fenced, the released and the unknown hold."""
        hold = self._hold
        if await hold.readers.read(lambda reader: questions.workers_silent(reader, worker, before)):
            values: dict[str, str | int] = {"at": self._clock.now(), "me": worker, "before": before}
            await hold.writes.submit((apply.StatementUnit(name="fence_workers", values=values),))
        return await hold.readers.read(lambda reader: questions.find_dead(reader, worker, limit))

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

    async def get_payloads(self, digests: Sequence[i.Digest]) -> Sequence[JsonValue]:
        """Payloads by content; raises NotFound."""
        return await self._hold.artifacts.get(digests)

    # Keeping

    async def info(self, *, whole: bool = False) -> port.Info:
        """Figures for health and doctor; a store in trouble says so instead of counting."""
        hold = self._hold
        trouble, tally = hold.ledger.trouble, hold.writes.tally
        tasks: dict[str, int] = {}
        events = size_bytes = 0
        copied_at = None
        if trouble is None:
            tasks, events, size_bytes = await hold.readers.read(questions.counts)
            copied_at = await hold.readers.read(lambda reader: questions.meta(reader, keeping.MARK))
        head = await hold.readers.read(keeping.head) if whole and trouble is None else None
        return port.Info(
            kind="sqlite",
            location=str(hold.path),
            schema_version=hold.schema_version,
            durability=self._setup.durability,
            tasks=tasks,
            events=events,
            size_bytes=size_bytes,
            details=questions.facts(
                status="ok" if trouble is None else "down",
                reason=None if trouble is None else trouble.message,
                copied_at=copied_at,
                audit_head=head,
                flushes=tally.flushes,
                units=tally.units,
                largest_group=tally.largest,
            ),
            commits=tally.seconds,
        )

    async def check(self) -> Sequence[port.Flaw]:
        """Integrity of the file and of every journal; one line per problem."""
        hold = self._hold
        return await hold.readers.read(lambda reader: keeping.check(reader, hold.artifacts.read, hold.seal))

    async def backup(self, target: Path) -> None:
        """A verified copy, consistent as of one moment, marked as a copy."""
        hold, at = self._hold, self._clock.now()
        await asyncio.to_thread(keeping.backup, hold.path, target, at, self._setup.fault)
