"""How a task stands still or ends: paused, completed, failed, cancelled; and its `finally` steps."""

from dataclasses import replace

from everstep.domain import events as e
from everstep.domain.bindings import NeedsPayload, Resolved, Unresolved, resolve, test
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import StepPath
from everstep.domain.issues import issues_of
from everstep.domain.pauses import UserRequested
from everstep.domain.plan import OnError
from everstep.domain.states import StepStatus, TaskStatus
from everstep.domain.task import TaskState, unfinished
from everstep.domain.values import JsonObject
from everstep.engine.lap import Lap
from everstep.engine.ready import begin, go_on

WORDS_MAX = 500


def meet_goal(lap: Lap) -> None:
    """`done_when` is true: the optional rest is skipped."""
    if lap.graph.done_when is None or not lap.state.done:
        return
    met = test(lap.graph.done_when, lap.scope)
    if isinstance(met, NeedsPayload):
        lap.needs.update(met.digests)
    if met is not True:  # a missing value makes it false
        return
    for wired in lap.graph.steps:
        step = lap.state.steps[wired.path]
        optional = lap.state.on_error(wired.spec) is OnError.CONTINUE
        if optional and step.status is StepStatus.PENDING:
            lap.say(e.StepSkipped(reason=e.SkipReason.GOAL_MET), step.path)


def pause_after(lap: Lap) -> None:
    """`--until STEP`: when that step has ended, the task is paused."""
    step = lap.state.pause_after
    begun = lap.state.steps.get(StepPath(step)) if step is not None else None
    if begun is not None and begun.ended:
        reason = UserRequested(by=lap.state.created_by.id, note=f"asked to stop after {step}")
        lap.pause(None, reason, title="Paused", why=f"asked to stop after {step}")


def stand_still(lap: Lap) -> None:
    """Someone asked for a pause: it takes effect when nothing is in flight."""
    state = lap.state
    if state.in_flight:
        return None
    oldest = next((pause for pause in state.pauses.values() if pause.of_the_task), None)
    if oldest is not None and _unannounced(state):
        return hand_over(lap)
    if oldest is not None:
        return lap.say(e.TaskPaused(pause=oldest.id, reason_type=oldest.type))
    # asked to pause, and to go on again before it took effect
    assert state.lifted is not None
    lap.say(e.TaskPaused(pause=state.lifted.id, reason_type=state.lifted.type))
    return lap.say(e.TaskResumed(pause=state.lifted.id, to=TaskStatus.QUEUED))


def rest(lap: Lap) -> None:
    """Nothing more can start now: the task has ended, or waits for someone, or for what is under way."""
    state = lap.state
    if state.failing is not None:
        return fail(lap)
    if lap.proposals or lap.needs:
        return None
    if all(state.steps[wired.path].ended for wired in lap.graph.steps):
        return complete(lap) if finals_ended(lap) else None
    return wait_for_someone(lap)


def wait_for_someone(lap: Lap) -> None:
    """Nothing goes on before a question is answered: the task is paused."""
    state = lap.state
    if state.pauses and any(step.wait is not None for step in state.steps.values()):
        return None  # another step waits for a slot, and is woken when there is one
    if state.pauses and not state.open and not state.timers:
        if _unannounced(state):
            return hand_over(lap)
        oldest = next(iter(state.pauses.values()))
        return lap.say(e.TaskPaused(pause=oldest.id, reason_type=oldest.type))
    return None


def hand_over(lap: Lap) -> None:
    """What would pause a task that nobody was told of ends it: whoever asked goes on from here."""
    lap.say(e.TaskCancelling())
    cancel(lap)


def _unannounced(state: TaskState) -> bool:
    return state.handover is not None and state.handover.unannounced


def finals_ended(lap: Lap) -> bool:
    """Start the next `finally` step; true when none is left. They do not run if no step ever started."""
    if not any(step.attempts for step in lap.state.steps.values()):
        return True
    lap.in_final = True
    if lap.kit.passage.halted is not None:
        return all(lap.state.steps[wired.path].ended for wired in lap.graph.final)
    for wired in lap.graph.final:
        step = lap.state.steps[wired.path]
        if step.status is StepStatus.PENDING:
            begin(lap, wired, step)
        elif not step.ended:
            go_on(lap, wired, step)
        if not step.ended:
            return False
    return True


def complete(lap: Lap, returned: JsonObject | None = None) -> None:
    """Resolve the outputs; a missing source is null and an issue."""
    outputs: JsonObject = returned or {}
    issues = issues_of(lap.state)
    for name, compiled in lap.graph.outputs.items():
        match resolve(compiled, lap.scope):
            case Resolved(value=value):
                outputs[name] = value
            case Unresolved() as gap:
                outputs[name] = None
                issues.append(e.Issue(step=None, status="missing", reason=f"output {name}: {gap.message}"))
            case NeedsPayload(digests=digests):
                lap.needs.update(digests)
    if lap.needs:
        return
    between = lap.state.handover
    if between is not None and between.continue_by is not None and not lap.graph.outputs:
        outputs = {"completed": True, "steps_completed": len(lap.graph.steps)}
    if lap.kit.promised and lap.state.id in lap.kit.promised:
        _say_if_early(lap)
    body = e.TaskCompleted(
        outcome="partial" if issues else "success",
        outputs=lap.kit.codec.seal(outputs),
        issues=tuple(issues),
        duration_s=_duration_s(lap),
        work_s=lap.state.work_ms / 1000,
    )
    lap.say(body)


def _say_if_early(lap: Lap) -> None:
    """Somebody was told what the task would take."""
    said = lap.kit.promised[lap.state.id]
    worked_s = lap.state.budget.used("wall_time", lap.at) / 1000
    late = lap.state.announced.get(e.TaskLate.TYPE) == lap.state.generation
    if worked_s < said.p10 and not late:
        lap.say(e.TaskEarlyCompletion(estimate=said, actual_s=worked_s))


def fail(lap: Lap, why: e.ErrorRecord | None = None, because_of: StepPath | None = None) -> None:
    """A critical step failed, or `why`: the rest is skipped once nothing is in flight and `finally` is done."""
    state = lap.state
    if state.in_flight or not finals_ended(lap) or lap.proposals or lap.needs:
        return
    error = state.failing or why
    assert error is not None
    _withdraw_pauses(lap, "the task failed")
    body = e.TaskFailed(
        error=error,
        step=state.failing_step or because_of,
        skipped=unfinished(lap.state),
        duration_s=_duration_s(lap),
        work_s=state.work_ms / 1000,
        issues=tuple(issues_of(lap.state)),
    )
    lap.say(body)


def break_off(lap: Lap, why: str) -> None:
    """The task cannot go on as it is: calls in flight were let go, and nobody knows what came of them."""
    state = lap.state
    failure = Failure(
        code="not_recordable",
        category=Category.INTERNAL,
        message=f"the task cannot be written down any further: {why[:WORDS_MAX]}",
        what_to_do="let its steps give less at a time, then retry the task",
        effect_state=EffectState.UNKNOWN if state.in_flight else EffectState.NONE,
    )
    error = e.ErrorRecord(id=lap.kit.entropy.new_id("e"), failure=failure, task_continues=False)
    for path in state.in_flight:
        number = state.open[path].number
        said = replace(error, attempt=number)
        lap.say(_given_up(number, said), path)
    _withdraw_pauses(lap, "the task was broken off")
    skipped, issues = unfinished(state), tuple(issues_of(lap.state))
    if state.status is TaskStatus.CANCELLING:
        return lap.say(e.TaskCancelled(reason=state.cancel_reason, skipped=skipped, issues=issues))
    work_s = state.work_ms / 1000
    body = e.TaskFailed(
        error=error, step=None, skipped=skipped, duration_s=_duration_s(lap), work_s=work_s, issues=issues
    )
    return lap.say(body)


def _given_up(number: int, error: e.ErrorRecord) -> e.AttemptAbandoned:
    return e.AttemptAbandoned(
        attempt=number, error=error, effect_state=error.failure.effect_state, called=True, duration_s=0.0
    )


def cancel(lap: Lap) -> None:
    """Asked to cancel: attempts and child tasks are being ended; then `finally`, while its time lasts; then the end."""
    state = lap.state
    if state.in_flight or state.children or not (_finals_given_up(lap) or finals_ended(lap)):
        return
    if lap.proposals or lap.needs:
        return
    reason = state.cancel_reason
    if _unannounced(state):
        reason = "handed_over" if state.pauses else "request_gone"
    _withdraw_pauses(lap, "the task was cancelled")
    lap.say(e.TaskCancelled(reason=reason, skipped=unfinished(lap.state), issues=tuple(issues_of(lap.state))))


def _finals_given_up(lap: Lap) -> bool:
    """Their time is up, somebody asked twice, or the task kills its worker."""
    until = lap.kit.finals_until(lap.state)
    return (until is not None and lap.at >= until) or lap.state.recoveries > lap.kit.limits.max_recoveries


def _withdraw_pauses(lap: Lap, why: str) -> None:
    for pause in list(lap.state.pauses.values()):
        lap.say(e.PauseWithdrawn(pause=pause.id, why=why), pause.step)


def _duration_s(lap: Lap) -> float:
    return (lap.at - lap.state.created_at) / 1000
