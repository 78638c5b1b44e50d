"""A step with resources beside its call: read before it, call, read after it. Each part has its own attempts and
outcome, so a read that fails never repeats the call.
"""

from everstep.domain import events as e
from everstep.domain.bindings import render
from everstep.domain.consequence import final_error, goes_without
from everstep.domain.graph import Wired, items_of
from everstep.domain.ids import CALL, StepPath, item_path, split_path
from everstep.domain.moves import step_of
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState
from everstep.engine.judge import dependants
from everstep.engine.lap import Lap
from everstep.engine.propose import callable_now, propose_call


def open_parts(lap: Lap, wired: Wired, step: StepState) -> None:
    """Write down what the step consists of."""
    title = render(wired.title, lap.scope) or step.path
    items = step.items or lap.kit.codec.seal([*wired.parts])
    lap.say(e.StepStarted(title=title, items=items), step.path)


def start_parts(lap: Lap, wired: Wired, step: StepState) -> None:
    """Go on with the part at hand; the step ends with its last one, or with the first that gives nothing it needs."""
    for name, part in wired.parts.items():
        one = step_of(lap.state, item_path(step.path, name))
        if one.path in lap.proposed:
            return
        if one.status is StepStatus.PENDING or callable_now(lap, one):
            propose_call(lap, part, one, lap.scope)
        if not one.ended:
            return
        if one.status is StepStatus.FAILED or (name == CALL and one.status is StepStatus.SKIPPED):
            break
    _end(lap, wired, step)


def _end(lap: Lap, wired: Wired, step: StepState) -> None:
    """What came of the call came of the step; a read that failed fails it."""
    state = lap.state
    duration_s = (lap.at - (step.started_at or lap.at)) / 1000
    last = items_of(state, step.path)[-1]
    call = state.steps.get(item_path(step.path, CALL))
    if last.status is StepStatus.FAILED:
        assert last.error is not None
        if goes_without(state, step.path, last.error.failure):
            return lap.say(e.StepSkipped(reason=e.SkipReason.TOOL_UNAVAILABLE), step.path)
        error = final_error(state, step.path, last.error, dependants(lap.graph, step.path))
        return lap.say(e.StepFailed(attempt=None, error=error, duration_s=duration_s), step.path)
    assert call is not None
    if call.status is StepStatus.SKIPPED:
        assert call.skip_reason is not None
        return lap.say(e.StepSkipped(reason=call.skip_reason, upstream=call.upstream), step.path)
    assert call.output is not None
    body = e.StepCompleted(
        attempt=None,
        output=call.output,
        summary=None,
        via=call.via or "tool",
        tool_used=call.tool_used or wired.spec.tool,
        duration_s=duration_s,
    )
    return lap.say(body, step.path)


def for_the_client(lap: Lap, path: StepPath) -> Wired:
    """What a client calls; if it is a part of a step, it does without what should have been read before."""
    name, part = split_path(path)
    wired = lap.graph.by_id[name]
    if not isinstance(part, str):
        return wired
    step = lap.state.steps[StepPath(name)]
    if step.status is StepStatus.PENDING:
        open_parts(lap, wired, step)
    for other in wired.parts:
        if other == part:
            break
        _do_without(lap, item_path(name, other))
    return wired.parts[part]


def end_for_the_client(lap: Lap, path: StepPath) -> None:
    """The client's part has ended, and with it the step: what should be read after it, the client reads by itself."""
    name, part = split_path(path)
    wired, step = lap.graph.by_id[name], lap.state.steps[StepPath(name)]
    if not isinstance(part, str) or step.ended or not lap.state.steps[path].ended:
        return
    if lap.state.steps[path].status is StepStatus.COMPLETED:
        for other in wired.parts:
            _do_without(lap, item_path(name, other))
    _end(lap, wired, step)


def _do_without(lap: Lap, path: StepPath) -> None:
    if not step_of(lap.state, path).ended:
        lap.say(e.StepSkipped(reason=e.SkipReason.COMPLETED_BY_CLIENT), path)
