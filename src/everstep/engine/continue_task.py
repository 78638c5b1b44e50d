"""A client's call for a paused task: taken up for it, and the intent written down, in one guarded write."""

import asyncio
from collections.abc import Sequence

from everstep.domain import events as e
from everstep.domain.continuation import match_step, takes_calls
from everstep.domain.continued import ClientCall, Continued, TaskStarted
from everstep.domain.ids import Epoch, Seq, StepPath, TaskId, split_path
from everstep.domain.record import record
from everstep.domain.states import HELD, TaskStatus
from everstep.domain.task import TaskState
from everstep.engine.commit import granted, take_up
from everstep.engine.control import TRIES, load, too_fast
from everstep.engine.given import given_arguments
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop


@record
class Taken:
    """The call is under way, or waits for somebody; what came of it follows in the journal."""

    step: StepPath
    after: Seq
    under_way: bool


@record
class Again:
    """The same call was made before, and this came of it."""

    reply: e.TaskContinued
    step: StepPath | None


@record
class NoStep:
    """The task takes the call, but it is no step's."""


async def make_call(task: TaskId, who: e.Who, call: ClientCall, *, kit: Kit, loop: Loop) -> Taken | Again | NoStep:
    """Take the task up for this call: resume and intent in one transaction; raises if it takes no calls."""
    await loop.left(task)
    async with kit.commanding.setdefault(task, asyncio.Lock()):
        for _ in range(TRIES):
            state = await load(task, who, kit)
            known = _known(state, call)
            if known is not None:
                return known
            takes_calls(state, halted=kit.passage.halted is not None)
            path = match_step(state, call.tool)
            if path is None:
                return NoStep()
            arguments = await given_arguments(state, path, call, kit)
            began = Seq(state.seq + 1)
            made = Continued(step=path, arguments=kit.codec.seal(arguments, untrusted=True), key=call.key)
            taken = await take_up(state, _taking(state, made, kit), who.actor, kit)
            if taken is not None:
                held, done = taken
                loop.go_on(held, granted(held, done))
                return Taken(step=path, after=began, under_way=held.state.status in HELD)
    raise too_fast(task)


def _known(state: TaskState, call: ClientCall) -> Taken | Again | None:
    """What is known of a call that its client has named."""
    between = state.handover
    if between is None or call.key is None:
        return None
    reply = between.replies.get(call.key)
    if reply is not None:
        return Again(reply=reply, step=_step_of(state, reply))
    if between.key == call.key and between.continuing is not None:
        return Taken(step=between.continuing, after=state.seq, under_way=state.status is not TaskStatus.PAUSED)
    return None


def _step_of(state: TaskState, reply: e.TaskContinued) -> StepPath | None:
    tools = (spec.id for spec in state.plan.steps if state.specs[spec.id].tool == reply.tool)
    return next((StepPath(name) for name in tools), None)


def _taking(state: TaskState, call: Continued, kit: Kit) -> Sequence[e.Draft]:
    """The first events of the call: taken up for it; the step's own question is no longer asked."""
    taken = TaskStarted(from_status=state.status, worker=kit.worker, epoch=Epoch(state.epoch + 1), continued=call)
    name = split_path(call.step)[0]
    waiting = [one for one in state.pauses.values() if one.step is None or split_path(one.step)[0] == name]
    withdrawn = [e.Draft(body=e.PauseWithdrawn(pause=one.id, why="continued"), step=one.step) for one in waiting]
    return [e.Draft(body=taken), *withdrawn]
