"""Breakers for people: which are in trouble, which steps they hold back, and how one is reset."""

from collections.abc import Sequence
from typing import Final

from everstep.domain.breaker import Breaker, BreakerState
from everstep.domain.errors import NotFound
from everstep.domain.events import Who
from everstep.domain.ids import StepPath, TaskId
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.domain.values import JsonObject
from everstep.engine.feed import Notice
from everstep.engine.kit import Kit
from everstep.ports.store import ErrorFilter, KeptError, TaskFilter

WAITING_MAX: Final = 500
"""As many tasks are looked at for steps that wait."""


@record
class ShownBreaker:
    """A breaker, and the steps that wait for it."""

    breaker: Breaker
    held: tuple[tuple[TaskId, StepPath], ...] = ()


class TroubleDesk:
    """What people ask about troubles."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        kit.breakers.moved = self._moved

    def _moved(self, breaker: Breaker) -> None:
        key = breaker.key
        data: JsonObject = {"id": key.id, "tool": key.tool, "target": key.target, "state": breaker.state.value}
        self._kit.feed.notice(Notice(topic="breaker", data=data, owner=key.owner))

    async def errors(self, which: ErrorFilter) -> Sequence[KeptError]:
        """Every recorded error, newest first."""
        return await self._kit.store.troubles.errors(which)

    async def breakers(self, who: Who) -> Sequence[ShownBreaker]:
        """All of this owner that are in trouble, with whom they hold back."""
        kept = await self._kit.store.troubles.breakers(who.owner)
        held = await self._held(who) if any(one.state is not BreakerState.CLOSED for one in kept) else []
        return [
            ShownBreaker(breaker=one, held=tuple((task, step) for ref, task, step in held if ref == one.key.id))
            for one in kept
        ]

    async def _held(self, who: Who) -> list[tuple[str | None, TaskId, StepPath]]:
        """Steps that wait for a breaker: they have a time, so their tasks are due some time."""
        running = frozenset({TaskStatus.RUNNING})
        page = await self._kit.store.list_tasks(TaskFilter(owner=who.owner, statuses=running, limit=WAITING_MAX))
        states = await self._kit.store.load_tasks([item.id for item in page.items if item.row.due_at is not None])
        return [
            (step.wait.ref, state.id, step.path)
            for state in states
            if state is not None
            for step in state.steps.values()
            if step.wait is not None and step.wait.kind == "breaker"
        ]

    async def reset(self, id: str, who: Who) -> ShownBreaker:
        """Calls pass again, and those who waited are woken; raises NotFound."""
        before = await self._kit.store.troubles.reset(who.owner, id)
        if before is None:
            raise NotFound("no such breaker is in trouble", what_to_do="list them: everstep breakers")
        self._kit.breakers.forget(before.key)
        return ShownBreaker(breaker=Breaker(key=before.key))
