"""What a task is doing, since when, what it waits for, and what comes next: always an answer, from the state alone.

Sentences are for people: one line each, times as `18:03` in UTC. Which commands are legal now stands here too, since
it is the same question: what can happen next?
"""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from everstep.domain.consequence import spec_of
from everstep.domain.events import ErrorRecord
from everstep.domain.ids import Instant, StepPath
from everstep.domain.pauses import (
    DurableWait,
    LimitReached,
    Pause,
    PauseType,
    ResourcePressure,
    UserRequested,
)
from everstep.domain.plan import StepSpec
from everstep.domain.record import record
from everstep.domain.states import TASK_MOVES, TERMINAL, Phase, StepStatus, TaskStatus
from everstep.domain.task import StepState, TaskRow, TaskState

TEXT_CHARS_MAX: Final = 200
NEXT_SHOWN: Final = 2
DAY_MS: Final = 86_400_000
EPOCH_DAY: Final = 719_163
"""The first of January 1970, as `date` counts days."""


@record
class WaitingOn:
    """What would let it go on: a person, a worker, a time."""

    kind: str
    detail: str
    until: Instant | None = None
    ref: str | None = None


@record
class Standing:
    """What is being done, since when, and what it waits for."""

    doing: str
    since: Instant
    waiting_on: WaitingOn | None = None


@record
class Explanation:
    """The whole answer."""

    doing: str
    since: Instant
    waiting_on: WaitingOn | None
    next: str
    text: str


def explain(state: TaskState) -> Explanation:
    """One task, explained."""
    stands = _STANDINGS[state.status](state)
    oldest = next(iter(state.pauses.values()), None) if state.status is TaskStatus.PAUSED else None
    return _explained(state.status, stands, _next(state), oldest)


def explain_row(row: TaskRow, updated_at: Instant, steps: int, pause: tuple[Pause, Instant] | None) -> Explanation:
    """A task of which only its row is known, and its oldest open pause with the time it was opened."""
    said = _ROWS[row.status]
    words = said.doing.format(done=row.done, steps=steps, error=row.error_code or "")
    stands = Standing(doing=words, since=row.ended_at or updated_at, waiting_on=said.waiting_on)
    if pause is not None and row.status is TaskStatus.PAUSED:
        stands = _asks(*pause)
        return _explained(row.status, stands, said.next, pause[0])
    return _explained(row.status, stands, said.next, None)


def _explained(status: TaskStatus, stands: Standing, then: str, oldest: Pause | None) -> Explanation:
    return Explanation(
        doing=stands.doing,
        since=stands.since,
        waiting_on=stands.waiting_on,
        next=then,
        text=_text(status, stands, oldest),
    )


def explain_step(state: TaskState, step: StepState) -> Standing:
    """One step that is under way, explained."""
    pause = state.pauses.get(step.pause) if step.pause is not None else None
    if pause is not None:
        return _asks(pause, state.opened[pause.id])
    since = step.started_at or state.updated_at
    waits_since = step.waits_since or since
    words = f"step {step.path}"
    match step.phase:
        case Phase.EXECUTING if step.attempt is not None:
            return Standing(doing=f"{words} calls {step.attempt.tool}", since=step.attempt.started_at)
        case Phase.RETRY_WAIT:
            code = step.error.failure.code if step.error else ""
            on = WaitingOn(kind="retry", detail=code, until=step.retry_at)
            return Standing(doing=f"{words} waits {_which_try(step.error)}", since=waits_since, waiting_on=on)
        case Phase.WAITING_SLOT if step.wait is not None:
            wait = step.wait
            on = WaitingOn(kind=wait.kind, detail=wait.detail, until=wait.until, ref=step.child or wait.ref)
            return Standing(doing=f"{words} waits{_for_what(wait)}", since=waits_since, waiting_on=on)
        case Phase.WAITING_SLOT:
            on = WaitingOn(kind="slot", detail=_tool(spec_of(state, step.path)))
            return Standing(doing=f"{words} waits for a place", since=waits_since, waiting_on=on)
        case Phase.AWAITING_APPROVAL:
            on = WaitingOn(kind="person", detail="approvalRequired")
            return Standing(doing=f"{words} waits for approval", since=since, waiting_on=on)
        case Phase.DONE:
            return Standing(doing=f"{words} has ended", since=step.ended_at or since)
        case _:
            return Standing(doing=f"{words} is being prepared", since=since)


def _which_try(error: ErrorRecord | None) -> str:
    """`for try 2 of 4`, as far as it is known."""
    if error is None or not error.retries_max:
        return "to be tried again"
    return f"for try {error.retries + 1} of {error.retries_max + 1}"


def legal_commands(state: TaskState) -> tuple[str, ...]:
    """What someone may ask of the task now, by the table of moves."""
    if state.status in TERMINAL:
        return ("fork", "undo") if state.status is TaskStatus.CANCELLED else ("fork", "retry", "undo")
    moves = TASK_MOVES[state.status]
    cancelling = state.status is TaskStatus.CANCELLING
    asked_of_steps = any(not pause.of_the_task for pause in state.pauses.values())
    legal = {
        "answer": asked_of_steps and not cancelling,
        "cancel": TaskStatus.CANCELLED in moves or TaskStatus.CANCELLING in moves,
        "fork": True,
        "patch": not cancelling,
        "pause": not state.held_back and (state.status is TaskStatus.PAUSED or TaskStatus.PAUSED in moves),
        "resume": state.held_back and not cancelling,
        "undo": state.status is TaskStatus.PAUSED,
    }
    return tuple(command for command, allowed in legal.items() if allowed)


# --- by status ---


def _queued(state: TaskState) -> Standing:
    return Standing(doing="waits for a worker", since=state.updated_at, waiting_on=_QUEUED)


def _stalled(state: TaskState) -> Standing:
    return Standing(doing="waits for an engine that carries it on", since=state.updated_at, waiting_on=_STALLED)


def _running(state: TaskState) -> Standing:
    at_work = _under_way(state)
    if not at_work:
        return Standing(doing="the next step is being chosen", since=state.claimed_at or state.updated_at)
    first, *others = at_work
    stands = explain_step(state, first)
    more = sum(_rank(step) == _rank(first) for step in others)
    doing = f"{stands.doing}, and {more} more" if more else stands.doing
    return Standing(doing=doing, since=stands.since, waiting_on=stands.waiting_on)


def _pausing(state: TaskState) -> Standing:
    waits_for = ", ".join(state.in_flight) or "the next safe point"
    since = min((state.open[path].started_at for path in state.in_flight), default=state.updated_at)
    return Standing(doing=f"lets {waits_for} end, then pauses", since=since)


def _paused(state: TaskState) -> Standing:
    oldest = next(iter(state.pauses.values()), None)
    if oldest is None:
        return Standing(doing="is about to go on", since=state.updated_at)
    return _asks(oldest, state.opened[oldest.id])


def _cancelling(state: TaskState) -> Standing:
    since = state.cancelled_at or state.updated_at
    if state.worker is None:
        on = WaitingOn(kind="worker", detail="somebody has to tidy up")
        return Standing(doing="waits for a worker to be cancelled", since=since, waiting_on=on)
    at_work = [step for step in _under_way(state) if step.status is StepStatus.RUNNING]
    if not at_work:
        return Standing(doing="is being cancelled: nothing is in flight", since=since)
    stands = explain_step(state, at_work[0])
    return Standing(doing=f"is being cancelled: {stands.doing}", since=since, waiting_on=stands.waiting_on)


def _ended(state: TaskState) -> Standing:
    since = state.ended_at or state.updated_at
    if state.error is not None:
        return Standing(doing=f"failed: {state.error.failure.message}", since=since)
    count = len(state.issues)
    issues = f" with {count} issue{'s' if count > 1 else ''}" if count else ""
    return Standing(doing=f"{state.status.value}{issues}", since=since)


_STANDINGS: Final[Mapping[TaskStatus, Callable[[TaskState], Standing]]] = {
    TaskStatus.QUEUED: _queued,
    TaskStatus.RUNNING: _running,
    TaskStatus.PAUSING: _pausing,
    TaskStatus.PAUSED: _paused,
    TaskStatus.STALLED: _stalled,
    TaskStatus.CANCELLING: _cancelling,
    TaskStatus.COMPLETED: _ended,
    TaskStatus.FAILED: _ended,
    TaskStatus.CANCELLED: _ended,
}

# --- by row ---


@record
class RowWords:
    """What a list says of a status."""

    doing: str
    next: str
    waiting_on: WaitingOn | None = None


_QUEUED: Final = WaitingOn(kind="worker", detail="queued")
_STALLED: Final = WaitingOn(kind="recovery", detail="its worker died or lost it")
_ROWS: Final[Mapping[TaskStatus, RowWords]] = {
    TaskStatus.QUEUED: RowWords(doing="waits for a worker", next="its next step", waiting_on=_QUEUED),
    TaskStatus.RUNNING: RowWords(doing="{done} of {steps} steps done", next="its next step"),
    TaskStatus.PAUSING: RowWords(doing="lets its calls end, then pauses", next="pause"),
    TaskStatus.PAUSED: RowWords(doing="is about to go on", next="its next step"),
    TaskStatus.STALLED: RowWords(
        doing="waits for an engine that carries it on", next="its next step", waiting_on=_STALLED
    ),
    TaskStatus.CANCELLING: RowWords(doing="is being cancelled", next="cancelled"),
    TaskStatus.COMPLETED: RowWords(doing="completed", next="nothing"),
    TaskStatus.FAILED: RowWords(doing="failed: {error}", next="nothing"),
    TaskStatus.CANCELLED: RowWords(doing="cancelled", next="nothing"),
}

# --- pauses ---

_WAITS_FOR: Final[Mapping[PauseType, str]] = {
    PauseType.UNRESOLVABLE_PARAMS: "an argument",
    PauseType.SCHEMA_MISMATCH: "arguments",
    PauseType.TOOL_ERROR: "a decision after its failure",
    PauseType.UNRESOLVED_DEPENDENCY: "a result it needs",
    PauseType.APPROVAL_REQUIRED: "approval",
    PauseType.INPUT_REQUIRED: "an answer",
    PauseType.UNCERTAIN_OUTCOME: "word whether its call happened",
}
"""What a step in this pause waits for."""


def _asks(pause: Pause, since: Instant) -> Standing:
    on = WaitingOn(kind="person", detail=pause.type.value, until=pause.expires_at, ref=pause.id)
    match pause.reason:
        case UserRequested(by=by):
            doing = f"paused by {by}"
        case LimitReached(limit=limit, used=used, max=most):
            doing = f"has used up its {limit}: {used:g} of {most:g}"
        case ResourcePressure(what=what):
            doing = f"stands still because too little {what} is left"
            on = WaitingOn(kind="pressure", detail=what, until=None, ref=pause.id)
        case _ if pause.step is None:
            doing = f"waits for a decision ({pause.title})"
        case _:
            doing = f"step {pause.step} waits for {_WAITS_FOR[pause.type]}"
    return Standing(doing=doing, since=since, waiting_on=on)


# --- what is under way, and what comes next ---


def _under_way(state: TaskState) -> list[StepState]:
    """Steps and items begun and not ended, calls in flight first; a `for_each` is told by its items."""
    begun = (StepStatus.RUNNING, StepStatus.PAUSED)
    steps = [step for step in state.steps.values() if step.status in begun and not step.items_open]
    return sorted(steps, key=lambda step: (_rank(step), step.started_at or 0))


def _rank(step: StepState) -> int:
    return 0 if step.in_flight else 1 if step.status is StepStatus.RUNNING else 2


def _next(state: TaskState) -> str:
    if state.terminal:
        return "nothing"
    if state.status is TaskStatus.PAUSING:
        return "pause"
    tidies_up = state.failing is not None or state.status is TaskStatus.CANCELLING
    end = "cancelled" if state.status is TaskStatus.CANCELLING else "failed" if state.failing else "complete"
    specs = state.plan.finally_steps if tidies_up else (*state.plan.steps, *state.plan.finally_steps)
    tools = [_tool(spec) for spec in specs if _comes(state, spec)]
    shown, rest = tools[:NEXT_SHOWN], len(tools) - NEXT_SHOWN
    return ", then ".join([*shown, f"{rest} more steps" if rest > 1 else "1 more step" if rest == 1 else end])


def _comes(state: TaskState, spec: StepSpec) -> bool:
    """Whether its call is still to come; one that was made is what is being done, unless its worker is gone."""
    step = state.steps[StepPath(spec.id)]
    under_way = step.in_flight or bool(step.items_open)
    called = step.wait is not None and step.attempt is not None
    return not step.ended and not called and (not under_way or state.status is TaskStatus.STALLED)


def _tool(spec: StepSpec) -> str:
    return spec.tool or spec.id


# --- one line ---


def _text(status: TaskStatus, stands: Standing, oldest: Pause | None) -> str:
    if status in TERMINAL:
        text = f"{stands.doing} at {clock(stands.since)}"
    elif oldest is not None and not oldest.of_the_task:
        text = f"{oldest.title} waits for a person since {clock(stands.since)}"
    else:
        text = f"{stands.doing} since {clock(stands.since)}"
    until = stands.waiting_on.until if stands.waiting_on else None
    return one_line(text if until is None else f"{text}, until {_moment(until, stands.since)}")


def one_line(text: str) -> str:
    """Text that fits a line, whatever was in it."""
    joined = " ".join(text.split())
    return joined if len(joined) <= TEXT_CHARS_MAX else f"{joined[: TEXT_CHARS_MAX - 1]}…"


def clock(at: Instant) -> str:
    """`18:03`, in UTC."""
    minutes = at // 60_000 % 1440
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _moment(at: Instant, since: Instant) -> str:
    """A time of day; of another day than `since`, with its date."""
    days = at // DAY_MS
    return clock(at) if days == since // DAY_MS else f"{date.fromordinal(EPOCH_DAY + days)} {clock(at)}"


_WAIT_WORDS: Final = {
    "time": "",
    "event": " for event {}",
    "child": " for task {}",
    "slot": " for a slot of {}",
    "rate": " for its turn at {}",
    "breaker": " for the breaker of {}",
}
"""What a wait is for, by its kind."""


def _for_what(wait: DurableWait) -> str:
    return _WAIT_WORDS.get(wait.kind, " for {}").format(wait.detail)
