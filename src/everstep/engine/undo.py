"""Undo: a new task that takes back what another one did. No compensation is made twice."""

from dataclasses import replace

from everstep.domain.errors import Conflict
from everstep.domain.events import Draft, Link, TaskUpdated, Who
from everstep.domain.task import Command, row_of
from everstep.domain.undo import undo_plan
from everstep.domain.values import JsonObject
from everstep.domain.wishes import Undo
from everstep.engine.accept import Naming, accept_plan
from everstep.engine.kit import Kit
from everstep.engine.request import Request
from everstep.engine.submit import Submitted, create, new_task
from everstep.engine.undoable import Told, plan_undo


async def undo(told: Told, who: Who, wish: Undo, kit: Kit, *, name: Naming) -> Submitted | None:
    """Make the task that takes back, and say so in the journal of the other: both or neither.

    None: somebody wrote into that journal meanwhile.
    """
    state = told.state
    found = await plan_undo(told, wish, kit)
    if not found.steps:
        why = "; ".join(f"{one.step}: {one.why}" for one in found.stays[:5]) or "no step has completed"
        raise Conflict(
            f"there is nothing to take back: {why}",
            code="nothing_to_undo",
            what_to_do=f"look: everstep undo {state.id} --dry-run",
            details={"not_undoable": [{"step": one.step, "why": one.why} for one in found.stays]},
        )
    plan = undo_plan(state, kit.graph(state), found)
    accept_plan(plan, kit, trusted=state.trusted, owner=state.owner)
    request = Request(
        plan=plan,
        digest=name(plan),
        inputs={},
        actor=who.actor,
        owner=who.owner,
        trusted=state.trusted,
        workspace=state.workspace,
        key=wish.key,
        labels=state.labels,
        priority=state.priority,
        parent=Link(task=state.id, step=None, link="undo_of"),
    )
    new, _ = new_task(request, kit)
    steps: JsonObject = {str(path): taken_by for path, taken_by in found.undo.items()}
    note: JsonObject = {"note": wish.note} if wish.note else {}
    mark = TaskUpdated(changes={"undone": {"by": new.id, "steps": steps}, **note})
    beside = Command(
        task=state.id,
        status=state.status,
        generation=state.generation,
        pause=None,
        actor=who.actor,
        at=new.at,
        drafts=(Draft(body=mark),),
        row=row_of(state),
        last_seq=state.seq,
    )
    kit.fault("undo.create.before")
    made = await create(replace(new, commands=(beside,)), kit)
    kit.fault("undo.create.after")
    return made
