"""Undoing: the desk's operation that takes back what a task did, and what all of its kind share."""

from dataclasses import replace

from everstep.domain.events import TaskCreated, Who
from everstep.domain.ids import TaskId
from everstep.domain.task import TaskState
from everstep.domain.undo import Outlook
from everstep.domain.wishes import Fork, Undo
from everstep.engine import control
from everstep.engine.child import pass_on_pause
from everstep.engine.runtime import Runtime, whole
from everstep.engine.undo import undo
from everstep.engine.undoable import plan_undo
from everstep.facade.telling import other_words, require_same, require_same_fork, same_undo, told_of
from everstep.wire.plan import digest


class Undoing:
    """Undo: a task made of another one, in one guarded write; then it is carried."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kit = runtime.kit

    @property
    def runtime(self) -> Runtime:
        """The engine behind it."""
        return self._runtime

    async def _require_same(self, task: TaskId, asked: TaskCreated, *, titled: bool) -> None:
        """What was asked for under a key that has a task is what that task was asked for."""
        await require_same(task, asked, self._kit, titled=titled)

    async def _require_same_fork(self, task: TaskId, asked: TaskCreated, wish: Fork) -> None:
        """The same for a fork."""
        await require_same_fork(task, asked, wish, self._kit)

    async def plan_undo(self, task: TaskId, who: Who, wish: Undo) -> Outlook:
        """What an undo would take back, and what would stay."""
        return await plan_undo(await told_of(task, who, self._kit), wish, self._kit)

    @whole
    async def undo(self, task: TaskId, who: Who, wish: Undo) -> TaskState:
        """A new task that takes back what this one did."""
        self._runtime.require_ready()
        for known in await self._kit.store.find_task(who.owner, wish.key) if wish.key is not None else ():
            made = await self._load(known, who)
            if made.key == wish.key and made.parent is not None and made.parent.task == task:
                told = await told_of(task, who, self._kit)
                everything = await plan_undo(told, replace(wish, steps=None), self._kit)
                if not same_undo(made, told.state, wish, everything):
                    raise other_words(made.id)
                return made
        for _ in range(control.TRIES):
            done = await undo(await told_of(task, who, self._kit), who, wish, self._kit, name=digest)
            if done is not None:
                return await self._made(done.task, who)
        raise control.too_fast(task)

    async def _load(self, task: TaskId, who: Who) -> TaskState:
        """A task of this owner."""
        return await control.load(task, who, self._kit)

    async def _made(self, task: TaskId, who: Who) -> TaskState:
        """A task that was made of another one: carried like any other."""
        self._runtime.loop.carry_too(task)
        return await self._load(task, who)

    async def _passed_on(self, state: TaskState) -> TaskState:
        """Tasks that it waits for stand still and go on with it."""
        if state.children:
            await pass_on_pause(state, self._kit)
        return state

    def _told(self, state: TaskState) -> TaskState:
        self._runtime.loop.nudge(state.id)
        self._runtime.loop.tell_parent(state)
        return state
