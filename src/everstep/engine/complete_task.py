"""A client's word that a paused task is done, and with what."""

import asyncio
from collections.abc import Sequence

from everstep.domain import events as e
from everstep.domain.continued import Done, TaskStarted
from everstep.domain.errors import Conflict
from everstep.domain.ids import Epoch, TaskId
from everstep.domain.issues import issue_of
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject
from everstep.engine.commit import take_up
from everstep.engine.control import TRIES, load, too_fast
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop


async def complete(task: TaskId, who: e.Who, done: Done, *, kit: Kit, loop: Loop) -> TaskState:
    """The client says that the task is done, and with what: `paused -> running -> completed`, one transaction."""
    await loop.left(task)
    async with kit.commanding.setdefault(task, asyncio.Lock()):
        for _ in range(TRIES):
            state = await load(task, who, kit)
            if state.status in TERMINAL:
                raise Conflict(f"the task is {state.status}", code="task_terminal", what_to_do="start another one")
            if state.status is not TaskStatus.PAUSED:
                raise Conflict(
                    f"a task that is {state.status} cannot be completed from outside",
                    code="task_busy",
                    what_to_do="pause it first, and wait until nothing is in flight",
                )
            if await take_up(state, _completion(state, done, kit), who.actor, kit) is not None:
                return await load(task, who, kit)
    raise too_fast(task)


def _completion(state: TaskState, done: Done, kit: Kit) -> Sequence[e.Draft]:
    at = kit.clock.now()
    result: JsonObject = done.result if isinstance(done.result, dict) else {"result": done.result}
    taken = TaskStarted(from_status=state.status, worker=kit.worker, epoch=Epoch(state.epoch + 1))
    why = done.note or "completed by the client"
    withdrawn = [e.Draft(body=e.PauseWithdrawn(pause=one.id, why=why), step=one.step) for one in state.pauses.values()]
    left = [step for step in state.steps.values() if not step.ended]
    items_first = sorted(left, key=lambda step: step.path[-1] != "]")
    skipped = [
        e.Draft(body=e.StepSkipped(reason=e.SkipReason.COMPLETED_BY_CLIENT), step=step.path) for step in items_first
    ]
    issues = [issue for step in state.steps.values() if (issue := _issue(step)) is not None]
    completed = e.TaskCompleted(
        outcome="partial" if issues else "success",
        outputs=kit.codec.seal(result, untrusted=True),
        issues=tuple(issues),
        duration_s=(at - state.created_at) / 1000,
        work_s=state.work_ms / 1000,
    )
    return [e.Draft(body=taken), *withdrawn, *skipped, e.Draft(body=completed)]


def _issue(step: StepState) -> e.Issue | None:
    known = issue_of(step)
    if step.ended or known is not None:
        return known
    return e.Issue(step=step.path, status="skipped", reason=e.SkipReason.COMPLETED_BY_CLIENT.value)
