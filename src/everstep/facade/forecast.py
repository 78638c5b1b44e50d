"""Forecast: the desk's answers about what is to come: of a task, of a plan that nobody has started, of the queue."""

from everstep.domain.events import Who
from everstep.domain.ids import Digest
from everstep.domain.plan import PlanSpec
from everstep.domain.simulate import Outlook
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.engine.accept import with_defaults
from everstep.engine.request import Request
from everstep.engine.runtime import Runtime
from everstep.engine.submit import new_task, queued


class Forecast:
    """What tasks and plans will take, as far as anybody knows."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._outlooks = runtime.duties.schedule.outlooks

    async def of(self, state: TaskState) -> Outlook:
        """What is left of a task."""
        return await self._outlooks.of(state)

    def now(self, state: TaskState) -> Outlook:
        """The same without waiting, by the history that was read last."""
        return self._outlooks.now(state)

    async def of_plan(self, plan: PlanSpec, digest: Digest, inputs: JsonObject, who: Who) -> Outlook:
        """What a task of this plan would take; inputs that are not given are not known."""
        request = Request(
            plan=plan,
            digest=digest,
            inputs=with_defaults(plan, inputs),
            actor=who.actor,
            owner=who.owner,
            trusted=False,
            workspace="",
            title=plan.name,
        )
        made, _ = new_task(request, self._runtime.kit)
        return await self.of(queued(made))

    async def wait_s(self, position: int) -> float | None:
        """How long a task at this place of the queue will wait; None if nobody can know."""
        return await self._outlooks.wait_s(position, self._runtime.loop.carried)
