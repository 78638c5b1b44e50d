"""Outcomes of one task as the first events of another."""

from collections.abc import Iterator

from everstep.domain import events as e
from everstep.domain.changes import Change
from everstep.domain.fold import apply
from everstep.domain.graph import items_of
from everstep.domain.ids import StepPath
from everstep.domain.reopen import Again
from everstep.domain.states import StepStatus
from everstep.domain.task import Command, NewTask, StepState, TaskState, row_of
from everstep.domain.values import JsonObject
from everstep.domain.wishes import Fork


def copied(state: TaskState, again: Again, wish: Fork) -> tuple[e.Draft, ...]:
    """What a fork begins with: what was said of it, and the outcomes that are kept."""
    return (*_said(wish), *(_copied_calls if state.plan.durable is not None else _copied_steps)(state, again))


def _said(wish: Fork) -> Iterator[e.Draft]:
    """Other arguments for what is done anew, and why it is done."""
    changes: JsonObject = {}
    if wish.arguments:
        changes["arguments"] = {name: dict(value) for name, value in wish.arguments.items()}
    if wish.note:
        changes["note"] = wish.note
    if changes:
        yield e.Draft(body=e.TaskUpdated(changes=changes))


def _copied_steps(state: TaskState, again: Again) -> tuple[e.Draft, ...]:
    drafts = [_outcome(state.steps[path]) for path in again.kept]
    for path in again.partly:
        started = e.StepStarted(title=state.specs[path].title or path, items=state.steps[path].items)
        standing = [item for item in items_of(state, path) if item.status is StepStatus.COMPLETED]
        drafts += [e.Draft(body=started, step=path), *(_outcome(item) for item in standing)]
    return tuple(drafts)


def _copied_calls(state: TaskState, again: Again) -> tuple[e.Draft, ...]:
    """Of a durable function: calls that stand, asked for and ended in the order in which they were."""
    kept = frozenset(again.kept)
    drafts: list[e.Draft] = []
    revision = 1
    for heard in range(len(state.ends) + 1):
        for change in _asked(state, kept, heard):
            revision += 1
            drafts.append(_revised(state, change, revision))
        if heard < len(state.ends) and state.ends[heard] in kept:
            drafts.append(_outcome(state.steps[state.ends[heard]]))
    return tuple(drafts)


def _asked(state: TaskState, kept: frozenset[StepPath], heard: int) -> Iterator[Change]:
    for name, spec in state.specs.items():
        step = state.steps[StepPath(name)]
        if step.path in kept and step.asked_after == heard:
            yield Change(op="append", id=name, step=spec, asked=step.asked)


def _revised(state: TaskState, change: Change, revision: int) -> e.Draft:
    body = e.PlanRevised(revision=revision, digest=state.plan_digest, base_digest=state.plan_digest, diff=(change,))
    return e.Draft(body=body)


def _outcome(step: StepState) -> e.Draft:
    duration_s = 0.0 if step.ended_at is None or step.started_at is None else (step.ended_at - step.started_at) / 1000
    match step.status:
        case StepStatus.COMPLETED:
            assert step.output is not None
            done = e.StepCompleted(
                attempt=None,
                output=step.output,
                summary=None,
                via="copied",
                tool_used=step.tool_used,
                duration_s=duration_s,
            )
            return e.Draft(body=done, step=step.path)
        case StepStatus.FAILED:
            assert step.error is not None
            return e.Draft(body=e.StepFailed(attempt=None, error=step.error, duration_s=duration_s), step=step.path)
        case _:
            assert step.skip_reason is not None
            skipped = e.StepSkipped(reason=step.skip_reason, upstream=step.upstream)
            return e.Draft(body=skipped, step=step.path)


def beginning(state: TaskState, new: NewTask, drafts: tuple[e.Draft, ...]) -> Command:
    """These events as one command on a task that is being made; `state` is that task, just created."""
    status = state.status
    for draft in drafts:
        apply(state, draft.body, draft.step, new.at)
    return Command(
        task=new.id,
        status=status,
        generation=1,
        pause=None,
        actor=new.actor,
        at=new.at,
        drafts=drafts,
        row=row_of(state),
    )
