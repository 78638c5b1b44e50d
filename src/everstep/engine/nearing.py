"""`task.limit_near` of what running calls have at this moment, not of what ended ones have used."""

from everstep.domain.commands import Drafts
from everstep.domain.errors import EverstepError
from everstep.domain.events import Draft, Who
from everstep.domain.ids import TaskId
from everstep.domain.limits import TaskLimitNear
from everstep.domain.task import TaskState
from everstep.engine.control import command
from everstep.engine.kit import Kit


async def tell_near(near: TaskLimitNear, task: TaskId, owner: str, kit: Kit) -> None:
    """Once per limit and generation of a task; nothing depends on it, so trouble is only noted."""

    def decide(state: TaskState) -> tuple[Drafts, None]:
        known = state.terminal or near.limit in state.budget.near
        return () if known else (Draft(body=near),), None

    try:
        await command(task, Who(owner=owner, actor=kit.actor), kit, decide)
        kit.carry(task)
    except EverstepError as error:
        kit.sink.trouble("cannot say that a limit is near", error, task=task)
