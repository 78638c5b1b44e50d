"""A client's call that is no step of its task: a task of its own, linked, and a line in the journal of the other."""

from hashlib import sha256

from everstep.domain import events as e
from everstep.domain.continuation import answer_needed, takes_calls
from everstep.domain.continued import ClientCall
from everstep.domain.errors import EngineClosed
from everstep.domain.ids import Seq, StepPath, TaskId
from everstep.domain.one_call import CALL, one_call
from everstep.domain.states import StepStatus
from everstep.domain.task import TaskState
from everstep.engine import control
from everstep.facade.accept import Wish
from everstep.facade.desk import STANDS, Desk
from everstep.wire.plan import digest


async def make_extra(desk: Desk, task: TaskId, who: e.Who, call: ClientCall) -> e.TaskContinued:
    """Make the call, and note with the task it was made for what came of it; nothing of that task is cleared."""
    key = None if call.key is None else f"extra-{sha256(f'{task} {call.key}'.encode()).hexdigest()[:32]}"
    plan = one_call(call.tool, call.arguments)
    link = e.Link(task=task, step=None, link="extra_of")
    wish = Wish(plan=plan, digest=digest(plan), inputs={}, trusted=False, key=key, parent=link)
    made = await desk.submit(wish, who)
    if await desk.first(made.id, STANDS, Seq(0)) is None:
        raise EngineClosed("the engine stops; what was begun is recorded")
    ended = await desk.get(made.id, who)
    step = ended.steps[StepPath(CALL)]
    if step.status is StepStatus.PAUSED:
        raise answer_needed(ended, next(iter(ended.pauses.values())))
    failure = None if step.error is None or step.status is StepStatus.COMPLETED else step.error.failure
    said = e.TaskContinued(tool=call.tool, output=step.output, failure=failure, key=call.key)

    def note(state: TaskState) -> tuple[tuple[e.Draft, ...], None]:
        takes_calls(state, halted=False)
        return (e.Draft(body=said),), None

    await control.command(task, who, desk.runtime.kit, note)
    return said
