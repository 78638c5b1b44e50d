"""What all tasks share, in dictionaries."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from everstep.adapters.stores.kept import Kept
from everstep.adapters.stores.memory_history import MemoryHistory
from everstep.adapters.stores.memory_tail import MemoryTail
from everstep.domain.access import BEARERS, Credential, CredentialKind
from everstep.domain.ids import Instant, TaskId
from everstep.domain.rate import reserve
from everstep.ports.traffic import Halt, Reservation


class MemoryTraffic:
    """Rates, the halt, the history and the line of all events of a store in memory."""

    def __init__(self, tasks: Mapping[TaskId, Kept]) -> None:
        self.history: Final = MemoryHistory(tasks)
        self.tail = MemoryTail()
        self._arrivals: dict[str, int] = {}
        self.halt: Halt | None = None

    async def reserve(self, wishes: Sequence[Reservation]) -> Sequence[Instant]:
        """When each may call; its place is taken."""
        granted = []
        for wish in wishes:
            at, self._arrivals[wish.name] = reserve(wish.rate, self._arrivals.get(wish.name), wish.at)
            granted.append(at)
        return granted

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
