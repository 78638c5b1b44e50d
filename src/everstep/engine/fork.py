"""Fork: a new task that begins with the outcomes another one has. The other task is not touched."""

from dataclasses import replace

from everstep.domain.copied import beginning, copied
from everstep.domain.errors import Conflict
from everstep.domain.events import Link, Who
from everstep.domain.reopen import Again, busy_step, named_step, require_again
from everstep.domain.task import TaskState
from everstep.domain.wishes import Fork
from everstep.engine.accept import accept_inputs, accept_plan, with_defaults
from everstep.engine.kit import Kit
from everstep.engine.reopen import check_arguments, standing
from everstep.engine.request import Request
from everstep.engine.submit import Submitted, create, new_task, queued
from everstep.engine.undone import known_of


async def plan_fork(state: TaskState, wish: Fork, kit: Kit) -> Again:
    """What a fork would keep and do anew; raises if a step it would keep has no certain end."""
    if state.parent is not None and state.parent.link == "undo_of":
        raise Conflict("an undo is not forked: a compensation must not be made twice")
    from_step = named_step(state, wish.from_step)
    if state.plan.durable is not None and wish.arguments:
        raise Conflict("a durable function gives its calls their arguments", what_to_do="change its code, or an input")
    check_arguments(state, wish.arguments, kit)
    known = await known_of(state, kit)
    again = standing(state, from_step, wish.arguments.keys(), known, kit=kit)
    require_again(again, wish.arguments)
    busy = busy_step(state, again, kit.graph(state))
    if busy is not None:
        raise Conflict(
            f"step '{busy}' would be kept, but nobody knows yet how it ends",
            code="task_busy",
            what_to_do="wait for it, answer its question, or fork from it or from before it",
            details={"step": busy},
        )
    return again


async def fork(state: TaskState, who: Who, wish: Fork, kit: Kit) -> Submitted:
    """Make the new task. Its copied outcomes stand in its first transaction."""
    again = await plan_fork(state, wish, kit)
    request = await _request(state, who, wish, kit)
    new, created = new_task(replace(request, parent=Link(task=state.id, step=again.from_step, link="fork_of")), kit)
    if created.inputs.digest != state.inputs.digest:  # items may be others
        again = replace(again, partly=())
    drafts = copied(state, again, wish)
    kit.fault("fork.create.before")
    made = await create(replace(new, commands=(beginning(queued(new), new, drafts),) if drafts else ()), kit)
    kit.fault("fork.create.after")
    assert made is not None, "nothing but the new task is written"
    return made


async def _request(state: TaskState, who: Who, wish: Fork, kit: Kit) -> Request:
    """The other task's plan, its inputs with what is given now."""
    if not state.inputs.present:
        (state.inputs.value,) = await kit.store.get_payloads((state.inputs.digest,))
    assert isinstance(state.inputs.value, dict)
    inputs = with_defaults(state.plan, {**state.inputs.value, **wish.inputs})
    trusted = state.trusted and not state.holds_strange_steps
    if state.plan.durable is None:
        accept_plan(state.plan, kit, trusted=trusted, owner=state.owner)
    accept_inputs(state.plan, inputs, kit)
    return Request(
        plan=state.plan if state.plan.durable is None else replace(state.plan, steps=()),
        digest=state.plan_digest,
        inputs=inputs,
        actor=who.actor,
        owner=who.owner,
        trusted=trusted,
        workspace=state.workspace,
        key=wish.key,
        title=wish.title or (None if wish.inputs else state.title),
        labels=state.labels,
        priority=state.priority,
    )
