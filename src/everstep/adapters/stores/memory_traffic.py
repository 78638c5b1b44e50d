"""What all tasks share, in dictionaries."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from everstep.adapters.stores.kept import Kept
from everstep.adapters.stores.memory_desks import MemoryHousekeeping, MemoryTroubles
from everstep.adapters.stores.memory_handles import MemoryHandles
from everstep.adapters.stores.memory_history import MemoryHistory
from everstep.adapters.stores.memory_signals import MemorySignals
from everstep.adapters.stores.memory_tail import MemoryTail
from everstep.domain.access import BEARERS, Credential, CredentialKind
from everstep.domain.ids import Instant, PauseId, TaskId, WorkerId
from everstep.domain.rate import MICROS, Spent, count, reserve
from everstep.domain.states import CLAIMABLE
from everstep.ports import store as port
from everstep.ports.traffic import Halt, Reservation, Waiting


class MemoryTraffic:
    """Rates, signals, the halt, the history and the line of all events of a store in memory."""

    def __init__(self, tasks: dict[TaskId, Kept]) -> None:
        self._tasks = tasks
        self._pauses: dict[PauseId, port.KeptPause] = {}
        self._workers: dict[WorkerId, port.Worker] = {}
        self._fenced: set[WorkerId] = set()
        self.troubles: Final = MemoryTroubles(tasks)
        self.housekeeping: Final = MemoryHousekeeping(tasks, self._pauses, self._workers, self._fenced)
        self.marks: Final = self.housekeeping.marks
        self.keyring: Final = MemoryKeyring()
        self.history: Final = MemoryHistory(tasks)
        self.signals: Final = MemorySignals()
        self.tail = MemoryTail()
        self._arrivals: dict[str, int] = {}
        self._spent: dict[str, Spent] = {}
        self.halt: Halt | None = None
        self.handles = MemoryHandles()

    def _live(self, owner: str) -> int:
        return sum(one.new.owner == owner and one.row.ended_at is None for one in self._tasks.values())

    async def live_tasks(self, owner: str) -> int:
        """How many unfinished tasks an owner has."""
        return self._live(owner)

    async def waiting(self) -> Waiting:
        """What could be claimed, looked at one by one."""
        free = [kept for kept in self._tasks.values() if kept.worker is None and kept.row.status in CLAIMABLE]
        return Waiting(tasks=len(free), since=min((kept.updated_at for kept in free), default=None))

    async def reserve(self, wishes: Sequence[Reservation]) -> Sequence[Instant | None]:
        """When each may call; its place is taken."""
        return [self._place(wish) for wish in wishes]

    def _place(self, wish: Reservation) -> Instant | None:
        if wish.quota is not None:
            spent = count(wish.quota, self._spent.get(wish.name), wish.at)
            if spent is None:
                return None
            self._spent[wish.name] = spent
        if wish.rate is None:
            return wish.at
        at, self._arrivals[wish.name] = reserve(wish.rate, self._arrivals.get(wish.name), wish.at)
        return at

    async def push(self, name: str, until: Instant) -> None:
        """No place of its rate comes before."""
        self._arrivals[name] = max(self._arrivals.get(name, 0), until * MICROS)

    async def set_halt(self, halt: Halt | None) -> None:
        """Halt, or go on."""
        self.halt = halt

    async def get_halt(self) -> Halt | None:
        """Whether everything is halted."""
        return self.halt


class MemoryKeyring:
    """Credentials of a store in memory."""

    def __init__(self) -> None:
        self._kept: dict[bytes, Credential] = {}

    async def add(self, credential: Credential) -> None:
        """Kept."""
        self._kept[credential.hash] = credential

    async def find(self, hash: bytes) -> Credential | None:
        """By its digest."""
        return self._kept.get(hash)

    async def take(self, hash: bytes, kind: CredentialKind) -> Credential | None:
        """It is gone."""
        found = self._kept.get(hash)
        return self._kept.pop(hash) if found is not None and found.kind is kind else None

    async def bearers(self) -> Sequence[Credential]:
        """In the order they came."""
        return [one for one in self._kept.values() if one.kind in BEARERS]

    async def change(self, id: str, scopes: frozenset[str]) -> bool:
        """With what was made with it."""
        for one in self._of(id):
            self._kept[one.hash] = replace(one, scopes=scopes)
        return any(one.id == id for one in self._kept.values())

    async def revoke(self, id: str) -> bool:
        """With what was made with it."""
        gone = self._of(id)
        for one in gone:
            del self._kept[one.hash]
        return any(one.id == id for one in gone)

    async def use(self, id: str, at: Instant) -> None:
        """Noted."""
        for one in [*self._kept.values()]:
            if one.id == id:
                self._kept[one.hash] = replace(one, last_used_at=at)

    async def forget(self, before: Instant) -> None:
        """Dropped."""
        kept = [one for one in self._kept.values() if one.expires_at is None or one.expires_at >= before]
        self._kept = {one.hash: one for one in kept}

    def _of(self, id: str) -> list[Credential]:
        return [one for one in self._kept.values() if id in (one.id, one.parent)]
