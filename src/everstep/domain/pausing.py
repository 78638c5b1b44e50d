"""How a pause is asked for: gracefully, or at once, which cuts off what may be called again. Pure."""

from typing import Final

from everstep.domain import events as e
from everstep.domain.commands import Drafts, illegal, lift
from everstep.domain.errors import Validation
from everstep.domain.ids import PauseId, StepPath
from everstep.domain.pauses import Pause, PauseType, ResourcePressure, UserRequested
from everstep.domain.pressure import Reading
from everstep.domain.record import record
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import LISTED_MAX

GRACEFUL: Final = "graceful"
IMMEDIATE: Final = "immediate"
MODES: Final = (GRACEFUL, IMMEDIATE)


@record
class PauseWish:
    """A pause somebody asks for: `graceful`, or `immediate`, which cuts off what may be called again."""

    id: PauseId
    by: str
    note: str | None = None
    mode: str = GRACEFUL


def pause_task(state: TaskState, wish: PauseWish) -> Drafts:
    """Ask for a pause: at once where nothing is in flight, else at the next safe point. Asking twice is asking once."""
    if wish.mode not in MODES:
        raise Validation(f"'mode' must be one of {', '.join(MODES)}")
    if state.status in TERMINAL or state.status is TaskStatus.CANCELLING:
        raise illegal(state, "pause")
    asked = next((pause for pause in state.pauses.values() if pause.type is PauseType.USER_REQUESTED), None)
    opened: Drafts = ()
    if asked is None:
        reason = UserRequested(by=wish.by, note=wish.note)
        asked = Pause(id=wish.id, step=None, reason=reason, title="Paused", why=wish.note or f"{wish.by} asked for it")
        opened = (e.Draft(body=e.PauseOpened(pause=asked)),)
    return _held(state, asked, opened, wish.mode)


def pause_for_pressure(state: TaskState, id: PauseId, short: Reading) -> Drafts:
    """The machine has too little left: the task stands still, unless it does or ends already."""
    if state.status in TERMINAL or state.status is TaskStatus.CANCELLING or state.held_back:
        return ()
    reason = ResourcePressure(what=short.what, level=short.level)
    why = f"too little {short.what} is left: {short.level:.1%} are in use"
    asked = Pause(id=id, step=None, reason=reason, title=f"Waits for {short.what}", why=why)
    return _held(state, asked, (e.Draft(body=e.PauseOpened(pause=asked)),), GRACEFUL)


def go_on_after_pressure(state: TaskState) -> Drafts:
    """There is enough again."""
    pressed = next((one for one in state.pauses.values() if one.type is PauseType.RESOURCE_PRESSURE), None)
    if pressed is None or state.status in TERMINAL or state.status is TaskStatus.CANCELLING:
        return ()
    note = "there is enough again"
    return lift(state, pressed, e.Draft(body=e.PauseAnswered(pause=pressed.id, answer="resume", note=note)), note)


def _held(state: TaskState, asked: Pause, opened: Drafts, mode: str) -> Drafts:
    """How the pause takes effect from where the task stands."""
    match state.status:
        case TaskStatus.RUNNING if opened or (mode == IMMEDIATE and state.in_flight):
            return (*opened, _pausing(state, asked.id, mode))
        case TaskStatus.PAUSING if mode == IMMEDIATE and not (state.pausing and state.pausing.mode == mode):
            return (*opened, _pausing(state, asked.id, mode))
        case TaskStatus.QUEUED | TaskStatus.STALLED if opened and not state.in_flight:
            return (*opened, e.Draft(body=e.TaskPaused(pause=asked.id, reason_type=asked.type)))
        case _:  # paused, or on its way there; or stalled in a call, which has to be judged first
            return opened


def _pausing(state: TaskState, pause: PauseId, mode: str) -> e.Draft:
    """What has to be waited for, and so in which way the pause really comes."""
    ends = () if mode == GRACEFUL else repeatable(state)
    waits_for = tuple(path for path in state.in_flight if path not in ends)
    mode_used = GRACEFUL if waits_for else mode
    return e.Draft(body=e.TaskPausing(pause=pause, mode=mode, mode_used=mode_used, waits_for=waits_for[:LISTED_MAX]))


def repeatable(state: TaskState) -> tuple[StepPath, ...]:
    """Steps in flight whose call may be cut off and made again."""
    return tuple(path for path in state.in_flight if state.open[path].effect.repeatable)
