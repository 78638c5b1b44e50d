"""Retry: the same task again from a step, as a new generation. What is kept stands, and is never called again."""

from collections.abc import Collection, Mapping

from everstep.domain import events as e
from everstep.domain.commands import Drafts, illegal
from everstep.domain.errors import Conflict, Validation
from everstep.domain.ids import StepPath, TaskId
from everstep.domain.reopen import (
    RETRIABLE,
    Again,
    Known,
    back_to,
    first_failed,
    named_step,
    require_again,
    require_confirmed,
)
from everstep.domain.reopen_code import back_in_code, last_fault
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.domain.wishes import Retry
from everstep.engine.control import command, load
from everstep.engine.kit import Kit
from everstep.engine.undone import known_of, marks


async def plan_retry(task: TaskId, who: e.Who, wish: Retry, kit: Kit) -> Again:
    """What a retry would keep, do anew and repeat; nothing is changed."""
    state = await load(task, who, kit)
    return _again(state, wish, await known_of(state, kit), kit)


async def retry(task: TaskId, who: e.Who, wish: Retry, kit: Kit) -> TaskState:
    """Open a new generation."""
    seen = await load(task, who, kit)
    known = await known_of(seen, kit)

    def decide(state: TaskState) -> tuple[Drafts, None]:
        if marks(state) != marks(seen):
            raise Conflict("somebody takes outcomes of it back at this moment", what_to_do="look again, then decide")
        again = _again(state, wish, known, kit)
        require_confirmed(again, confirmed=wish.confirm_effects)
        body = e.TaskReopened(
            generation=state.generation + 1,
            from_step=again.from_step,
            kept=(*again.kept, *again.partly),
            superseded=again.superseded,
            arguments=dict(wish.arguments),
            note=wish.note,
        )
        return (e.Draft(body=body),), None

    kit.fault("reopen.decide.before")
    return await command(task, who, kit, decide)


def _again(state: TaskState, wish: Retry, known: Known, kit: Kit) -> Again:
    if state.status not in RETRIABLE:
        raise illegal(state, "retry")
    if state.parent is not None and state.parent.link == "undo_of":
        raise Conflict(
            "an undo is not retried: a compensation must not be made twice",
            what_to_do=f"take back what is left: everstep undo {state.parent.task}",
        )
    named = None if wish.from_step is None else named_step(state, wish.from_step)
    check_arguments(state, wish.arguments, kit)
    again = standing(state, named, wish.arguments.keys(), known, kit=kit)
    require_again(again, wish.arguments)
    return again


def standing(state: TaskState, from_step: StepPath | None, given: Collection[str], known: Known, *, kit: Kit) -> Again:
    """What stands and what is done anew from this step on; without one, from what failed the task."""
    if state.plan.durable is not None:
        return back_in_code(state, from_step or last_fault(state), known=known)
    return back_to(state, kit.graph(state), from_step or first_failed(state), given, known=known)


def check_arguments(state: TaskState, arguments: Mapping[str, JsonObject], kit: Kit) -> None:
    """Other arguments must be ones that the tool takes; all that are wrong are named."""
    wrong = []
    for name, given in arguments.items():
        spec = state.specs[named_step(state, name)]
        entry = kit.catalog.find(spec.tool or "")
        if entry is None:
            raise Validation(f"nothing here serves '{spec.tool}'", code="inputs_invalid")
        schema = {key: value for key, value in entry.spec.input_schema.items() if key != "required"}
        wrong += [f"{name}{pointer}: {message}" for pointer, message in kit.codec.validator(schema)(given)]
    if wrong:
        raise Validation(
            f"the arguments do not fit: {'; '.join(wrong)}", code="inputs_invalid", what_to_do="correct the arguments"
        )
