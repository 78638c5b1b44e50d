"""Rework: the desk's operations that take a task up again, or change what comes."""

from everstep.domain.events import Who
from everstep.domain.ids import TaskId
from everstep.domain.reopen import Again
from everstep.domain.task import TaskState
from everstep.domain.wishes import Fork, Patch, Retry
from everstep.engine import fork, reopen, revise
from everstep.engine.runtime import whole
from everstep.facade.revisions import PlanAt, plan_at
from everstep.facade.undoing import Undoing
from everstep.wire.plan import digest


class Rework(Undoing):
    """Retry, fork, patch. Each is one guarded write, then a nudge."""

    async def plan_retry(self, task: TaskId, who: Who, wish: Retry) -> Again:
        """What a retry would mean."""
        return await reopen.plan_retry(task, who, wish, self._kit)

    @whole
    async def retry(self, task: TaskId, who: Who, wish: Retry) -> TaskState:
        """The same task again, from a step."""
        self._runtime.require_ready()
        return self._told(await reopen.retry(task, who, wish, self._kit))

    async def plan_fork(self, task: TaskId, who: Who, wish: Fork) -> Again:
        """What a fork would mean."""
        return await fork.plan_fork(await self._load(task, who), wish, self._kit)

    @whole
    async def fork(self, task: TaskId, who: Who, wish: Fork) -> TaskState:
        """A new task with the outcomes of this one."""
        self._runtime.require_ready()
        state = await self._load(task, who)
        made = await fork.fork(state, who, wish, self._kit)
        if made.asked is not None:
            await self._require_same_fork(made.task, made.asked, wish)
        return await self._made(made.task, who)

    async def plan_at(self, state: TaskState, revision: int) -> PlanAt:
        """The plan of a task as one of its revisions had it."""
        return await plan_at(state, revision, self._kit)

    async def plan_patch(self, task: TaskId, who: Who, wish: Patch) -> revise.Revised:
        """What a patch would make of the plan."""
        return await revise.plan_patch(task, who, wish, self._kit, name=digest)

    @whole
    async def patch(self, task: TaskId, who: Who, wish: Patch) -> revise.Revised:
        """Change what has not begun."""
        self._runtime.require_ready()
        done = await revise.patch(task, who, wish, self._kit, name=digest)
        self._told(done.task)
        return done
