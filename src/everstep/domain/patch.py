"""Changing the remaining steps of a task: what is asked, whether it is allowed, and what becomes of the plan. Pure.

All or nothing. What has begun is never touched; no change makes a call riskier or a question easier to pass.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from everstep.domain.changes import Change, changed
from everstep.domain.errors import Conflict, Validation
from everstep.domain.ids import StepPath
from everstep.domain.pauses import PauseType
from everstep.domain.plan import ApproveSpec, Effect, PlanSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.states import StepStatus
from everstep.domain.suggest import did_you_mean, suggest
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject

EffectOf: TypeAlias = Callable[[StepSpec], Effect]
"""The effect in force for a step: the more careful of the tool's and the plan's."""


@record
class Op:
    """One change as it is asked for."""

    op: Literal["append", "replace", "set", "skip"]
    id: str
    step: StepSpec | None = None
    after: str | None = None
    arguments: JsonObject | None = None
    note: str | None = None


@record
class Revision:
    """A plan with its changes made."""

    plan: PlanSpec
    diff: tuple[Change, ...]


def revise(state: TaskState, ops: Sequence[Op], effect_of: EffectOf) -> Revision:
    """The changed plan, or the typed refusal of the first change that is not allowed."""
    plan, diff = state.plan, []
    for op in ops:
        change = _append(plan, op) if op.op == "append" else _change(state, plan, op)
        if change.step is not None and op.op != "append":
            _no_looser(_step_of(plan, op.id), change.step, effect_of)
        plan = changed(plan, (change,))
        diff.append(change)
    return Revision(plan=plan, diff=tuple(diff))


def by_stranger(revision: Revision) -> Revision:
    """The same changes, with a note that nobody vouches for the steps in them."""
    return replace(revision, diff=tuple(replace(one, untrusted=one.step is not None) for one in revision.diff))


def _append(plan: PlanSpec, op: Op) -> Change:
    assert op.step is not None
    ids = [step.id for step in plan.steps]
    if op.after is not None and op.after not in ids:
        guess = did_you_mean(f"there is no step '{op.after}' to append after", suggest(op.after, ids))
        raise Validation(guess, code="plan_invalid", what_to_do="name a step of `steps`")
    if any(op.step.id == step.id for step in (*plan.steps, *plan.finally_steps)):
        raise Validation(
            f"'{op.step.id}' is already the id of a step", code="plan_invalid", what_to_do="use another id"
        )
    return Change(op="append", id=op.step.id, step=op.step, after=op.after, note=op.note)


def _change(state: TaskState, plan: PlanSpec, op: Op) -> Change:
    step = _step_of(plan, op.id)
    _not_begun(state, op)
    match op.op:
        case "replace":
            assert op.step is not None
            if op.step.id != op.id:
                raise Validation(
                    f"the replacement of '{op.id}' has the id '{op.step.id}'",
                    code="plan_invalid",
                    what_to_do="keep the id; it is the step's name in the journal",
                )
            new: StepSpec | None = op.step
        case "set":
            given = op.arguments or {}
            removed = {name for name, value in given.items() if value is None}
            merged = {**step.arguments, **given}
            new = replace(step, arguments={name: merged[name] for name in merged if name not in removed})
        case _:
            new = None
    return Change(op=op.op, id=op.id, step=new, note=op.note)


def _step_of(plan: PlanSpec, name: str) -> StepSpec:
    steps = {step.id: step for step in (*plan.steps, *plan.finally_steps)}
    if name not in steps:
        message = did_you_mean(f"the plan has no step '{name}'", suggest(name, steps))
        raise Validation(message, code="plan_invalid", what_to_do="name a step of the plan")
    return steps[name]


def _not_begun(state: TaskState, op: Op) -> None:
    """Only what is pending; `set` and `skip` also the step that waits for someone, unless nobody knows how it ended."""
    step = state.steps.get(StepPath(op.id))
    if step is None or step.status is StepStatus.PENDING:  # None: appended by a change before this one
        return
    if step.status is StepStatus.PAUSED and op.op != "replace":
        pause = state.pauses.get(step.pause) if step.pause is not None else None
        if op.op == "skip" or pause is None or pause.type is not PauseType.UNCERTAIN_OUTCOME:
            return
    raise Conflict(
        f"step '{op.id}' is {step.status.value}: only what has not begun can be changed",
        code="patch.step_started",
        what_to_do="change a later step, or retry or fork the task from this one",
        details={"step": op.id, "status": step.status.value},
    )


def _no_looser(old: StepSpec, new: StepSpec, effect_of: EffectOf) -> None:
    before, after = effect_of(old), effect_of(new)
    if after.care > before.care:
        raise Validation(
            f"step '{old.id}' would be `{after.value}` instead of `{before.value}`",
            code="patch.effect_raised",
            what_to_do="append it as a step of its own, so that it meets every check of a new step",
            details={"step": old.id, "effect": before.value, "wanted": after.value},
        )
    loosened = _loosened(old.approve, new.approve)
    if loosened is not None:
        raise Validation(
            f"step '{old.id}' would be easier to approve: {loosened}",
            code="patch.approval_loosened",
            what_to_do="keep its `approve` at least as strict, or skip the step",
            details={"step": old.id},
        )


_BY: Final = ("human", "llm", "anyone")
_ON_TIMEOUT: Final = ("reject", "wait", "approve")


def _loosened(old: ApproveSpec | None, new: ApproveSpec | None) -> str | None:
    """What of a question became easier; None if nothing did."""
    if old is None:
        return None
    if new is None:
        return "`approve` is gone"
    if _BY.index(new.by) > _BY.index(old.by):
        return f"`by: {new.by}` instead of `{old.by}`"
    if old.edit is not True and (new.edit is True or not set(new.edit or ()) <= set(old.edit or ())):
        return "`edit` allows more"
    if _rank(new.on_timeout) > _rank(old.on_timeout):
        return f"`on_timeout: {new.on_timeout}` instead of `{old.on_timeout}`"
    if old.within_ms is not None and (new.within_ms is None or new.within_ms > old.within_ms):
        return "`within` is longer"
    if new.on_timeout == "approve" and new.within_ms != old.within_ms:
        return "`within` is another, and then it is approved"
    return None


def _rank(on_timeout: str | None) -> int:
    return _ON_TIMEOUT.index(on_timeout or "wait")
