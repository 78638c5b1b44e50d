"""What can be taken back of a task: looked up in its state, its journal and the tasks that took something back."""

from everstep.domain.attempts import History
from everstep.domain.errors import Conflict
from everstep.domain.ids import Digest
from everstep.domain.record import record
from everstep.domain.reopen import named_step
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.undo import Abilities, Outlook, outlook
from everstep.domain.wishes import Undo
from everstep.engine.kit import Kit
from everstep.engine.undone import undone_steps


@record
class Told:
    """A task, and what its journal tells beyond its state."""

    state: TaskState
    history: History


async def plan_undo(told: Told, wish: Undo, kit: Kit) -> Outlook:
    """What would be taken back, and what would stay."""
    state, history = told.state, told.history
    if not state.terminal and state.status is not TaskStatus.PAUSED:
        raise Conflict(
            f"cannot undo a task that is {state.status.value}",
            what_to_do="pause or cancel it first",
            details={"status": state.status.value},
        )
    wanted = None if wish.steps is None else frozenset(named_step(state, name) for name in wish.steps)
    abilities = Abilities(effect_of=kit.catalog.effect_of, undoes=kit.catalog.undoes)
    undone = await undone_steps(state, kit)
    while True:
        found = outlook(state, kit.graph(state), history, abilities, undone=undone, wanted=wanted)
        if not found.needs:
            return found
        await _fetch(state, history, found.needs, kit)


async def _fetch(state: TaskState, history: History, digests: frozenset[Digest], kit: Kit) -> None:
    """Bring values that live in artifacts into what we hold."""
    wanted = sorted(digests)
    values = dict(zip(wanted, await kit.store.get_payloads(wanted), strict=True))
    kept = [sealed for step in state.steps.values() for sealed in (step.output, step.items)]
    kept += [attempt.input for tries in history.attempts.values() for attempt in tries]
    for sealed in (*kept, state.inputs):
        if sealed is not None and sealed.digest in values:
            sealed.value, sealed.present = values[sealed.digest], True
