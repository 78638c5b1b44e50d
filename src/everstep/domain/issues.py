"""What of a task did not go as planned: failed and skipped steps, and calls that nobody can vouch for."""

from everstep.domain import events as e
from everstep.domain.failure import EffectState
from everstep.domain.plan import Effect
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState

_NOT_AN_ISSUE = frozenset({e.SkipReason.CONDITION, e.SkipReason.GOAL_MET})


def issues_of(state: TaskState) -> list[e.Issue]:
    """All of them, in the order of the steps."""
    return [
        issue
        for step in state.steps.values()
        if step.status is not StepStatus.COMPLETED and (issue := issue_of(step)) is not None
    ]


def issue_of(step: StepState) -> e.Issue | None:
    """What is to be said of one step, if anything."""
    failure = step.error.failure if step.error else None
    if step.status is StepStatus.FAILED:
        return e.Issue(step=step.path, status="failed", reason=failure.message if failure else "", error=failure)
    if step.status is StepStatus.SKIPPED and step.skip_reason not in _NOT_AN_ISSUE:
        return e.Issue(step=step.path, status="skipped", reason=str(step.skip_reason))
    unclear = failure is not None and failure.effect_state is EffectState.UNKNOWN
    if not step.ended and unclear and step.last_effect in (Effect.ONCE, Effect.VERIFIABLE):
        return e.Issue(step=step.path, status="uncertain", reason="nobody knows whether it happened", error=failure)
    return None
