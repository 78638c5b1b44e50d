"""What of a task did not go as planned: failed and skipped steps, and calls that nobody can vouch for."""

from dataclasses import replace
from itertools import accumulate, takewhile

from everstep.domain import events as e
from everstep.domain.failure import EffectState
from everstep.domain.ids import split_path
from everstep.domain.plan import Effect
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState

_NOT_AN_ISSUE = frozenset({e.SkipReason.CONDITION, e.SkipReason.GOAL_MET})


ISSUES_BYTES_MAX = 24_000
"""They stand in one line of the journal, with other things."""


def issues_of(state: TaskState) -> list[e.Issue]:
    """As many as fit a line, in the order of the steps; of the rest how many there are."""
    found = [
        issue
        for step in state.steps.values()
        if step.status is not StepStatus.COMPLETED and (issue := _issue_of(state, step)) is not None
    ]
    sizes = accumulate(_size(issue) for issue in found)
    told = sum(1 for _ in takewhile(ISSUES_BYTES_MAX.__ge__, sizes))
    if told == len(found):
        return found
    rest = found[told:]
    status = "failed" if any(issue.status == "failed" for issue in rest) else "skipped"
    return [*found[:told], e.Issue(step=None, status=status, reason=f"and {len(rest)} steps more: look at the steps")]


def _issue_of(state: TaskState, step: StepState) -> e.Issue | None:
    """The same with the name of a tool that was not there."""
    issue = issue_of(step)
    if issue is None or step.skip_reason is not e.SkipReason.TOOL_UNAVAILABLE:
        return issue
    failure = step.error.failure if step.error else None
    return replace(issue, reason=f"{issue.reason}: {state.specs[step.path].tool}", error=failure)


def _size(issue: e.Issue) -> int:
    """How many bytes of a line an issue takes, roughly."""
    failure = issue.error
    words = issue.reason if failure is None else f"{issue.reason}{failure.message}{failure.what_to_do}{failure.details}"
    return 300 + len(words.encode())


def _done_without(step: StepState) -> bool:
    """A read for a call that its client made without it: the step has what it is for."""
    return step.skip_reason is e.SkipReason.COMPLETED_BY_CLIENT and isinstance(split_path(step.path)[1], str)


def issue_of(step: StepState) -> e.Issue | None:
    """What is to be said of one step, if anything."""
    failure = step.error.failure if step.error else None
    if step.status is StepStatus.FAILED:
        return e.Issue(step=step.path, status="failed", reason=failure.message if failure else "", error=failure)
    if step.status is StepStatus.SKIPPED and step.skip_reason not in _NOT_AN_ISSUE and not _done_without(step):
        return e.Issue(step=step.path, status="skipped", reason=str(step.skip_reason))
    unclear = failure is not None and failure.effect_state is EffectState.UNKNOWN
    if not step.ended and unclear and step.last_effect in (Effect.ONCE, Effect.VERIFIABLE):
        return e.Issue(step=step.path, status="uncertain", reason="nobody knows whether it happened", error=failure)
    return None
