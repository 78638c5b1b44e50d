"""Failures as the Error object (interfaces, 5.6), the same in the journal and at every door.

`effect_state` and `retry_after_s` stand beside the fields of 5.6, so that a failure read back is the failure that was
written. Suggestions are requests that can be sent now: doors fill them in, the journal keeps none.
"""

from typing import Any, cast

from msgspec import Struct, to_builtins

from everstep.domain.events import ErrorRecord, Issue
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import StepPath
from everstep.domain.values import JsonObject
from everstep.wire.times import maybe_instant, maybe_text


class Retry(Struct):
    """Where a failure stands in its retries."""

    count: int
    max: int
    next_at: str | None


class Impact(Struct):
    """What a failure means for the rest of the task."""

    task_continues: bool
    skipped_steps: tuple[str, ...]
    lost_outputs: tuple[str, ...]


class Error(Struct, kw_only=True):
    """The Error object; what is not known is null."""

    id: str | None
    code: str
    category: Category
    message: str
    what_to_do: str
    step: str | None = None
    attempt: int | None = None
    retry: Retry | None = None
    impact: Impact | None = None
    suggestions: tuple[dict[str, Any], ...] = ()  # any JSON: msgspec has no recursive type for it
    details: dict[str, Any] | None = None
    cause: "Error | None" = None
    effect_state: EffectState
    retry_after_s: float | None = None


class IssueData(Struct):
    """One issue of a task that ended."""

    step: StepPath | None
    status: str
    reason: str
    error: Error | None


def write_error(kept: ErrorRecord, step: StepPath | None, *, final: bool = False) -> Error:
    """The Error of a step or task. `final`: the step's output will never come."""
    error = write_failure(kept.failure, step)
    error.id = kept.id
    error.attempt = kept.attempt
    error.retry = Retry(kept.retries, kept.retries_max, maybe_text(kept.retry_at))
    error.impact = Impact(kept.task_continues, kept.skipped_steps, (step,) if final and step else ())
    return error


def read_error(error: Error) -> ErrorRecord:
    """The failure as it was kept."""
    assert error.id is not None
    assert error.retry is not None
    assert error.impact is not None
    return ErrorRecord(
        id=error.id,
        failure=read_failure(error),
        attempt=error.attempt,
        retries=error.retry.count,
        retries_max=error.retry.max,
        retry_at=maybe_instant(error.retry.next_at),
        skipped_steps=error.impact.skipped_steps,
        task_continues=error.impact.task_continues,
    )


def write_failure(failure: Failure, step: StepPath | None) -> Error:
    """The Error of a failure that is kept without its place in the retries."""
    return Error(
        id=None,
        code=failure.code,
        category=failure.category,
        message=failure.message,
        what_to_do=failure.what_to_do,
        effect_state=failure.effect_state,
        retry_after_s=None if failure.retry_after_ms is None else failure.retry_after_ms / 1000,
        step=step,
        details=failure.details,
        cause=None if failure.cause is None else write_failure(failure.cause, None),
    )


def read_failure(error: Error) -> Failure:
    """The failure alone."""
    return Failure(
        code=error.code,
        category=error.category,
        message=error.message,
        what_to_do=error.what_to_do,
        effect_state=error.effect_state,
        retry_after_ms=None if error.retry_after_s is None else round(error.retry_after_s * 1000),
        details=error.details,
        cause=None if error.cause is None else read_failure(error.cause),
    )


def write_issues(issues: tuple[Issue, ...]) -> tuple[IssueData, ...]:
    """Issues of a task that ended."""
    return tuple(
        IssueData(
            step=issue.step,
            status=issue.status,
            reason=issue.reason,
            error=None if issue.error is None else write_failure(issue.error, issue.step),
        )
        for issue in issues
    )


def read_issues(issues: tuple[IssueData, ...]) -> tuple[Issue, ...]:
    """The issues again."""
    return tuple(
        Issue(
            step=issue.step,
            status=issue.status,
            reason=issue.reason,
            error=None if issue.error is None else read_failure(issue.error),
        )
        for issue in issues
    )


def error_json(kept: ErrorRecord, step: StepPath | None, *, final: bool = False) -> JsonObject:
    """The Error object as plain JSON."""
    return cast("JsonObject", to_builtins(write_error(kept, step, final=final)))
