"""Handing: what a client that takes a task over can do. One call at a time, or the word that it is done."""

from typing import Final

from everstep.domain import events as e
from everstep.domain.continuation import CameOf, came_of, not_made
from everstep.domain.continued import ClientCall, Done, may_keep
from everstep.domain.errors import EngineClosed, Validation
from everstep.domain.ids import Seq, TaskId
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.engine import complete_task, continue_task, control
from everstep.facade.desk import Desk
from everstep.facade.extra import make_extra

ENDS: Final = frozenset({"task.completed", "task.failed", "task.cancelled"})
_HEARD: Final = ENDS | {"task.continued", "task.paused"}
"""How names of variables begin that only the engine gives."""


class Handing:
    """The desk's operations of whoever takes over."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._runtime = desk.runtime
        self._kit = desk.runtime.kit

    async def call(self, task: TaskId, who: e.Who, call: ClientCall) -> CameOf:
        """Make a client's call for a paused task, and wait for what comes of it; raises if the task takes none."""
        self._runtime.require_ready()
        if self._kit.catalog.find(call.tool) is None:
            raise Validation(f"there is no tool '{call.tool}'")
        made = await self._runtime.see_through(
            continue_task.make_call(task, who, call, kit=self._kit, loop=self._runtime.loop)
        )
        if isinstance(made, continue_task.Again):
            return CameOf(step=made.step, said=made.reply, task=await control.load(task, who, self._kit))
        if isinstance(made, continue_task.NoStep):
            said = await make_extra(self._desk, task, who, call)
            return CameOf(step=None, said=said, task=await control.load(task, who, self._kit))
        if made.under_way and await self._desk.first(task, _HEARD, Seq(made.after)) is None:
            raise EngineClosed("the engine stops; what was begun is recorded")
        state = await control.load(task, who, self._kit)
        came = came_of(state, made.step, call)
        if came is None:
            raise not_made(state)
        return CameOf(step=made.step, said=came, task=state)

    async def complete(self, task: TaskId, who: e.Who, done: Done) -> TaskState:
        """The client's word that a paused task is done, and with what."""
        self._runtime.require_ready()
        return await self._runtime.see_through(self._complete(task, who, done))

    async def _complete(self, task: TaskId, who: e.Who, done: Done) -> TaskState:
        state = await complete_task.complete(task, who, done, kit=self._kit, loop=self._runtime.loop)
        self._runtime.loop.tell_parent(state)
        return state

    async def set_variables(self, task: TaskId, who: e.Who, changes: JsonObject, *, bytes_max: int) -> TaskState:
        """Keep values for the client; null deletes. Raises for names of ours, and beyond `bytes_max` in all."""
        self._runtime.require_ready()
        draft = e.Draft(body=e.TaskUpdated(changes={"variables": changes}))

        def change(state: TaskState) -> tuple[tuple[e.Draft, ...], None]:
            may_keep({} if state.handover is None else state.handover.variables, changes, bytes_max)
            return ((draft,) if changes else ()), None

        return await self._runtime.see_through(control.command(task, who, self._kit, change))
