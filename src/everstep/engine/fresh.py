"""States of tasks that were made or moved here a moment ago: whoever claims one need not read it again."""

from collections.abc import Collection
from typing import Final

from everstep.domain.fold import fold
from everstep.domain.ids import TaskId
from everstep.domain.task import TaskState
from everstep.ports.store import Claimed, Store

MOST: Final = 1000


class Fresh:
    """One engine's."""

    def __init__(self) -> None:
        self._states: dict[TaskId, TaskState] = {}

    def keep(self, state: TaskState) -> None:
        """As it stands, with its last seq; beyond so many, all of them are read instead."""
        if len(self._states) >= MOST:
            self.forget()
        self._states[state.id] = state

    def forget(self) -> None:
        """None of them holds any more, or can be claimed here."""
        self._states.clear()

    async def states(self, claimed: Collection[Claimed], store: Store) -> dict[TaskId, TaskState]:
        """States as of the claim."""
        states: dict[TaskId, TaskState] = {}
        for one in claimed:
            fresh = self._states.pop(one.lease.task, None)
            if fresh is not None and fresh.seq + len(one.recorded) == one.last_seq:
                for recorded in one.recorded:
                    fold(fresh, fresh.owner, recorded)
                states[fresh.id] = fresh
        unread = [one.lease.task for one in claimed if one.lease.task not in states]
        if unread:
            read = await store.load_tasks(unread)
            states.update((state.id, state) for state in read if state is not None)
        return states
