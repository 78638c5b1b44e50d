"""Handing: what a client that takes a task over can do. One call at a time, or the word that it is done."""

from typing import Final

from everstep.domain import events as e
from everstep.domain.commands import Drafts
from everstep.domain.continuation import CameOf, came_of, not_made
from everstep.domain.continued import ClientCall, Done
from everstep.domain.errors import EngineClosed, Validation
from everstep.domain.ids import PauseId, Seq, TaskId
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.engine import complete_task, continue_task, control
from everstep.facade.desk import Desk
from everstep.facade.extra import make_extra
from everstep.wire.handoff import DEPTH_MAX, STRING_BYTES_MAX, is_shown

ENDS: Final = frozenset({"task.completed", "task.failed", "task.cancelled"})
_HEARD: Final = ENDS | {"task.continued", "task.paused"}
OWN: Final = "_workflow."
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
        made = await continue_task.make_call(task, who, call, kit=self._kit, loop=self._runtime.loop)
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
        state = await complete_task.complete(task, who, done, kit=self._kit, loop=self._runtime.loop)
        self._runtime.loop.tell_parent(state)
        return state

    async def set_variables(self, task: TaskId, who: e.Who, changes: JsonObject, *, bytes_max: int) -> TaskState:
        """Keep values for the client; null deletes. Raises Validation if it would be more than `bytes_max` in all."""
        self._runtime.require_ready()
        wrong = [name for name in changes if name.startswith(OWN)]
        if wrong:
            raise Validation(f"'{wrong[0]}' is not the client's to set", what_to_do=f"use names without {OWN}")
        deep = [name for name, value in changes.items() if not is_shown(value)]
        if deep:
            message = f"'{deep[0]}' is nested too deeply, or has a text that is too long"
            raise Validation(message, what_to_do=f"at most {DEPTH_MAX} levels, and texts of {STRING_BYTES_MAX} bytes")
        draft = e.Draft(body=e.TaskUpdated(changes={"variables": changes}))

        def decided(state: TaskState) -> tuple[Drafts, PauseId | None]:
            kept = {} if state.handover is None else state.handover.variables
            whole: JsonObject = {name: value for name, value in {**kept, **changes}.items() if value is not None}
            size = self._kit.codec.seal(whole).size_bytes
            if size > bytes_max:
                message = f"the variables would have {size} bytes, {bytes_max} are allowed"
                raise Validation(message, what_to_do="delete some with null, or raise `mcp.variables`")
            return (draft,) if changes else (), None

        return await control.command(task, who, self._kit, decided)
