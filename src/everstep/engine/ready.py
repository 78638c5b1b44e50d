"""Which steps can start, in plan order; those that never will are skipped here."""

from itertools import islice

from everstep.domain import events as e
from everstep.domain.bindings import NeedsPayload, Unresolved, test
from everstep.domain.graph import Blocked, Wired, blocked, lent_places, places, ready
from everstep.domain.states import ENDED, StepStatus
from everstep.domain.task import StepState
from everstep.engine import fanout, parts
from everstep.engine.approve_items import allowed_for_all
from everstep.engine.asked import calls_asked_for
from everstep.engine.hinder import hold, lacks, unresolved
from everstep.engine.lap import Lap
from everstep.engine.propose import callable_now, propose_call


def start_steps(lap: Lap) -> None:
    """Everything that can start, in plan order; a skip may free what stands above it, so look until nothing moves."""
    if lap.state.plan.durable is not None:
        for path in calls_asked_for(lap):
            step = lap.state.steps[path]
            (begin if step.status is StepStatus.PENDING else go_on)(lap, lap.graph.by_id[path], step)
        return
    while _pass(lap):
        pass


def _pass(lap: Lap) -> bool:
    """One look along the plan; whether a step ended by it. It stops where nothing more can start."""
    state, steps = lap.state, lap.graph.steps
    while state.ended_first < len(steps) and state.steps[steps[state.ended_first].path].status in ENDED:
        state.ended_first += 1
    waiting = state.under_way
    room = places(state.plan) - waiting - lap.begun
    if state.awaiting:
        room += lent_places(state)
    moved = False
    for wired in islice(steps, state.ended_first, None):
        if (waiting <= 0 and room <= 0) or state.failing is not None:
            break
        step = state.steps[wired.path]
        status = step.status
        if status in ENDED or wired.path in lap.proposed:
            continue
        if status is not StepStatus.PENDING:
            waiting -= 1
            room += 1
            go_on(lap, wired, step)
        elif room > 0 and ready(wired, state):
            begin(lap, wired, step)
        else:
            continue
        if step.status in ENDED:
            moved = True
        else:
            room -= 1
    return moved and state.failing is None


def begin(lap: Lap, wired: Wired, step: StepState) -> None:
    """A pending step whose time has come: skip it, ask about it, or go on with it."""
    by = blocked(wired, lap.state)
    if by is not None:
        return hindered(lap, step, by)
    if wired.spec.when is not True and not wired.when_uses_item:
        match test(wired.when, lap.scope):
            case Unresolved() as gap:
                return unresolved(lap, step, gap, "when")
            case NeedsPayload() as needs:
                return lap.needs.update(needs.digests)
            case False:
                return lap.say(e.StepSkipped(reason=e.SkipReason.CONDITION), step.path)
            case True:
                pass
    if wired.for_each is not None:
        fanout.open_items(lap, wired, step)
        return go_on(lap, wired, step)
    if wired.parts:
        parts.open_parts(lap, wired, step)
        return go_on(lap, wired, step)
    return propose_call(lap, wired, step, lap.scope)


def go_on(lap: Lap, wired: Wired, step: StepState) -> None:
    """A step that is under way and has nothing in flight: its retry may be due, or it was interrupted."""
    if wired.parts:
        parts.start_parts(lap, wired, step)
    elif step.items is not None:
        if allowed_for_all(lap, wired, step):
            fanout.start_items(lap, wired, step)
    elif not callable_now(lap, step):
        return
    elif step.path in lap.state.awaiting:  # what it lacked has come, or has not again: look as at the beginning
        begin(lap, wired, step)
    else:
        propose_call(lap, wired, step, lap.scope)


def hindered(lap: Lap, step: StepState, by: Blocked) -> None:
    """A required producer gave nothing: skip, unless somebody decided so, who may now decide on."""
    if not by.ask:
        return lap.say(e.StepSkipped(reason=e.SkipReason.UPSTREAM, upstream=by.upstream), step.path)
    return hold(lap, step, lacks(lap, step.path, by.upstream), f"{by.upstream} was skipped by an answer")
