"""What a state alone does not tell: outcomes that were or may have been taken back, and effects made elsewhere."""

from everstep.domain.failure import EffectState
from everstep.domain.ids import StepPath, TaskId
from everstep.domain.plan import Effect
from everstep.domain.reopen import Known
from everstep.domain.states import StepStatus
from everstep.domain.task import TaskState
from everstep.engine.kit import Kit


async def undone_steps(state: TaskState, kit: Kit) -> dict[StepPath, str]:
    """Those steps, each with why it cannot be taken back again."""
    marked = marks(state)
    if not marked:
        return {}
    tasks = sorted({task for task, _ in marked.values()})
    states = dict(zip(tasks, await kit.store.load_tasks(tasks), strict=True))
    found = {path: _standing(states[task], task, step) for path, (task, step) in marked.items()}
    return {path: why for path, why in found.items() if why is not None}


def marks(state: TaskState) -> dict[StepPath, tuple[TaskId, StepPath]]:
    """Which outcome was given to which task, and to which step of it."""
    return {path: step.undone_by for path, step in state.steps.items() if step.undone_by is not None}


def _standing(undo: TaskState | None, task: TaskId, path: StepPath) -> str | None:
    """How far an undo task has come with one compensation; None: it certainly did not, and will not, make it."""
    if undo is None:
        return f"{task} may have taken it back"
    steps = [step for name, step in undo.steps.items() if name == path or name.startswith(f"{path}[")]
    if undo.steps[path].status is StepStatus.COMPLETED:
        return f"{task} has taken it back"
    if not undo.terminal:
        return f"{task} is taking it back"
    acted = any(
        step.status is StepStatus.COMPLETED
        or (step.error is not None and step.error.failure.effect_state is not EffectState.NONE)
        for step in steps
    )
    return f"{task} may have taken it back" if acted else None


async def known_of(state: TaskState, kit: Kit) -> Known:
    """Effects behind outcomes that no attempt of this task made, and outcomes that were taken back."""
    effects: dict[StepPath, Effect] = {}
    for path, step in state.steps.items():
        if step.via == "copied" and path in state.specs:
            effects[path] = kit.catalog.effect_of(state.specs[path])
        if step.child is not None:
            effects[path] = await _worst_inside(step.child, kit)
    return Known(effects=effects, undone=frozenset(await undone_steps(state, kit)))


async def _worst_inside(child: TaskId, kit: Kit) -> Effect:
    """A step that made a task counts with the most careful effect of that task's plan."""
    (state,) = await kit.store.load_tasks((child,))
    specs = () if state is None else state.specs.values()
    return max((kit.catalog.effect_of(spec) for spec in specs), key=lambda effect: effect.care, default=Effect.PURE)
