"""What a journal means, written a second time, by hand, from the specification.

Standard library only. The fold goes on after a broken event as if it had been legal: one mistake is one violation,
not a flood.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from everstep.torture.history import Event, millis
from everstep.torture.moves import AGAIN, ATTEMPT_MOVES, ENDED, PUT_BACK, STEP_MOVES, TASK_MOVES, TERMINAL
from everstep.torture.rework import left_bytes, revised, superseded
from everstep.torture.state import Attempt, Grant, Pause, State, Step, base


def fold(task: str, events: Sequence[Event], max_recoveries: int) -> State:
    """Read one journal from its beginning, judging each line by what stood before it."""
    state = State(task, events, max_recoveries)
    for expected, event in enumerate(events, start=1):
        if event.seq != expected:
            state.blame("C6", event.seq, f"seq {event.seq} stands at place {expected} in commit order")
        if (expected == 1) != (event.type == "task.created"):
            state.blame("C5", event.seq, f"{event.type} is event number {expected} of its task")
        if change := _CHANGES.get(event.type):
            _check_writer(state, event)
            change(state, event)
    return state


def _check_writer(state: State, event: Event) -> None:
    """What happens to steps is written by the task's holder, or by somebody who asked for it."""
    writer = event.actor.get("id")
    by_engine = event.actor.get("kind") == "system" and event.actor.get("via") == "engine"
    giving_up = event.type == "attempt.abandoned" and writer == state.recoverer
    ran_out = event.type in {"step.failed", "step.skipped"} and (writer, base(event.step or "")) == state.expirer
    follows = giving_up or ran_out
    if by_engine and event.type.startswith(("step.", "attempt.")) and writer != state.worker and not follows:
        state.blame("C4", event.seq, f"{event.type} by {writer}, but {state.worker} holds epoch {state.epoch}")


def _move(state: State, event: Event, to: str) -> None:
    if to not in TASK_MOVES:
        state.blame("C5", event.seq, f"unknown status {to!r}")
    elif to != state.status and to not in TASK_MOVES.get(state.status, frozenset()):
        state.blame("C5", event.seq, f"the task moves from {state.status} to {to}")
    if state.status == "paused" and to != "paused":
        state.still[-1] = (state.still[-1][0], event.at)
    if to == "paused" and state.status != "paused":
        state.still.append((event.at, None))
    state.status = to


def _step(state: State, event: Event) -> Step:
    assert event.step is not None, f"{event.type} without a step"
    return state.steps.setdefault(event.step, Step(event.step))


def _move_step(state: State, event: Event, step: Step, to: str) -> None:
    """Outcomes and pauses of a step that had not begun pass through `running`."""
    if step.status == "pending" and to not in {"running", "skipped"}:
        step.status = "running"
    if to != step.status and to not in STEP_MOVES[step.status]:
        state.blame("C5", event.seq, f"step {step.path} moves from {step.status} to {to}")
    step.status = to


def _end_step(state: State, event: Event, step: Step, to: str) -> None:
    if step.outcome is not None:
        what = f"step {step.path} has an outcome since seq {step.outcome.seq} and gets another: {to}"
        state.blame("C2", event.seq, what)
        step.status = to
        return
    _move_step(state, event, step, to)
    step.outcome = event
    if step.open is not None:
        if to != "completed" and not step.open.waiting:
            state.blame("C5", event.seq, f"step {step.path} is {to} while attempt {step.open.number} is open")
        step.open.end = event
        step.open = None


def _end_task(state: State, event: Event, to: str) -> None:
    named = dict.fromkeys(event.data.get("skipped") or ())
    for path in named:
        _end_step(state, event, state.steps.setdefault(path, Step(path)), "skipped")
    for step in [one for one in state.steps.values() if one.outcome is None and base(one.path) in named]:
        _end_step(state, event, step, "skipped")  # a step takes its items along
    for step in state.steps.values():
        if step.open is not None and not step.open.waiting:
            state.blame("C5", event.seq, f"{to} while attempt {step.open.number} of step {step.path} is open")
        elif step.status not in ENDED:
            state.blame("C5", event.seq, f"{to} while step {step.path} is {step.status}")
    for pause in state.pauses.values():
        if pause.status == "open":
            pause.status = "withdrawn"
    _move(state, event, to)
    state.ended_at = event.at
    state.worker = None


def _created(state: State, event: Event) -> None:
    state.status = "queued"
    state.plan = event.data.get("plan") or {}
    state.continue_by = event.data.get("continue_by")
    finals = [step["id"] for step in state.plan.get("finally") or ()]
    state.finals = frozenset(finals)
    for path in (*(step["id"] for step in state.plan.get("steps") or ()), *finals):
        state.steps[path] = Step(path)


def _rise(state: State, event: Event) -> None:
    epoch = event.data.get("epoch", 0)
    if epoch <= state.epoch:
        state.blame("C4", event.seq, f"epoch {epoch} follows {state.epoch}")
    if event.data.get("from") != state.status:
        state.blame("C5", event.seq, f"{event.type} from {event.data.get('from')}, but the task was {state.status}")
    state.epoch = epoch


def _started(state: State, event: Event) -> None:
    if state.worker is not None:
        state.blame("C4", event.seq, f"claimed by {event.data.get('worker')} while {state.worker} holds it")
    if state.recoveries > state.max_recoveries:
        state.blame("C11", event.seq, f"claimed again after {state.recoveries} recoveries without an outcome")
    _rise(state, event)
    taken_up_for = (event.data.get("continued") or {}).get("step")
    if taken_up_for is not None and state.status != "paused":
        state.blame("C8", event.seq, f"a client takes the task up while it is {state.status}")
    if state.status != "stalled":
        state.alone = taken_up_for
    if state.status != "cancelling":
        _move(state, event, "running")
    state.worker = event.data.get("worker")
    state.recoverer = None
    state.started_at = state.started_at or event.at


def _recovered(state: State, event: Event) -> None:
    _rise(state, event)
    if state.status != "cancelling":
        _move(state, event, "stalled")
    state.worker = None
    state.recoverer = event.actor.get("id")
    counted = event.data.get("recoveries", 0)
    if counted not in {state.recoveries, state.recoveries + 1}:
        state.blame("C11", event.seq, f"recoveries {counted} follow {state.recoveries}")
    state.recoveries = counted


def _paused(state: State, event: Event) -> None:
    for step in state.steps.values():
        if step.open is not None and not step.open.waiting:
            state.blame("C8", event.seq, f"paused while attempt {step.open.number} of step {step.path} is open")
    _move(state, event, "paused")
    state.worker = None
    state.alone = None


def _continued(state: State, event: Event) -> None:
    """What a client's call came to stands in the journal before it is told."""
    if event.step is None:
        return
    step = _step(state, event)
    if step.open is not None:
        state.blame("C5", event.seq, f"a client hears of step {step.path} while its attempt is open")
    if event.data.get("output") is not None and step.status != "completed":
        state.blame("C5", event.seq, f"a client hears of a result of step {step.path}, which is {step.status}")
    if state.continue_by == "server" and step.status == "completed":
        state.alone = None


def _completed(state: State, event: Event) -> None:
    _end_task(state, event, "completed")
    state.outcome = event.data.get("outcome")


def _reopened(state: State, event: Event) -> None:
    if state.status not in {"failed", "completed"}:
        state.blame("C5", event.seq, f"reopened while {state.status}")
    state.status = "queued"
    state.generation += 1
    if event.data.get("generation") != state.generation:
        state.blame("C5", event.seq, f"generation {event.data.get('generation')} follows {state.generation - 1}")
    state.recoveries = 0
    state.ended_at = None
    state.outcome = None
    for path in [*superseded(event.data, state.steps)]:
        _supersede(state.steps.setdefault(path, Step(path)))


def _revised(state: State, event: Event) -> None:
    for change in event.data.get("diff") or ():
        step = state.steps.setdefault(change["id"], Step(change["id"]))
        if step.status not in {"pending", "paused"} or (step.status == "paused" and change["op"] == "replace"):
            state.blame("C5", event.seq, f"step {step.path} is changed while {step.status}")
    state.plan = revised(state.plan, event.data.get("diff"))


def _supersede(step: Step) -> None:
    step.status = "pending"
    step.outcome = None


def _put_back(state: State, producer: str, only: frozenset[str]) -> None:
    """A step without a result is to be carried out after all; its items that have one keep it."""
    if state.steps[producer].status in only:
        for step in state.steps.values():
            if base(step.path) == producer and step.status in only:
                _supersede(step)


def _attempt_started(state: State, event: Event) -> None:
    step = _step(state, event)
    data = event.data
    attempt = Attempt(
        data["attempt"], event, data["epoch"], data.get("worker"), data["effect"], data["idempotency_key"]
    )
    if (attempt.epoch, attempt.worker) != (state.epoch, state.worker):
        held = f"{state.worker} holds epoch {state.epoch}"
        state.blame("C4", event.seq, f"intent of {attempt.worker} in epoch {attempt.epoch}, but {held}")
    if attempt.number != len(step.attempts) + 1:
        state.blame("C5", event.seq, f"attempt {attempt.number} of step {step.path} follows {len(step.attempts)}")
    if step.outcome is not None:
        state.blame("C2", event.seq, f"step {step.path} starts again although its outcome of {step.outcome.seq} stands")
    elif step.open is not None:
        state.blame("C5", event.seq, f"step {step.path} starts while attempt {step.open.number} is open")
    else:
        _move_step(state, event, step, "running")
    _check_may_start(state, event, step)
    step.attempts.append(attempt)
    step.open = attempt


def _check_may_start(state: State, event: Event, step: Step) -> None:
    final = base(step.path) in state.finals
    if state.alone is not None and base(step.path) != state.alone:
        state.blame("C8", event.seq, f"step {step.path} starts, but a client took the task up for {state.alone} only")
    held_back = [pause.id for pause in state.pauses.values() if pause.status == "open" and pause.step is None]
    if state.status in {"pausing", "paused"} or (held_back and state.status != "cancelling"):
        state.blame("C8", event.seq, f"step {step.path} starts while the task is {state.status}, held by {held_back}")
    elif state.status in {"cancelling", "cancelled"} and not final:
        state.blame("C8", event.seq, f"step {step.path} starts while the task is {state.status}")
    elif state.status not in {"running", "cancelling"}:
        state.blame("C5", event.seq, f"step {step.path} starts while the task is {state.status}")


def _attempt_ended(state: State, event: Event) -> None:
    step = _step(state, event)
    if event.type.partition(".")[2] not in ATTEMPT_MOVES["started"]:
        state.blame("C5", event.seq, f"an attempt cannot end as {event.type}")
    if step.open is None or step.open.number != event.data.get("attempt"):
        state.blame("C5", event.seq, f"attempt {event.data.get('attempt')} of step {step.path} ends, but is not open")
        return
    step.open.end = event
    code = (event.data.get("error") or {}).get("code")
    step.open.cut = code in {"paused", "halted"}
    if code == "paused" and not (state.paused_during(step.open) and step.open.effect in {"pure", "idempotent"}):
        what = f"a `{step.open.effect}` call of step {step.path} was cut off for a pause while {state.status}"
        state.blame("C8", event.seq, what)
    step.open = None


def _step_started(state: State, event: Event) -> None:
    step = _step(state, event)
    step.of_items = event.data.get("items") is not None
    _move_step(state, event, step, "running")


def _step_waiting(state: State, event: Event) -> None:
    step = _step(state, event)
    _move_step(state, event, step, "running")
    if step.open is not None:
        step.open.waiting = True


def _step_fallback(state: State, event: Event) -> None:
    step = _step(state, event)
    if step.status != "running" or step.open is not None:
        state.blame("C5", event.seq, f"step {step.path} falls back while it is {step.status}")


def _step_denied(state: State, event: Event) -> None:
    step = _step(state, event)
    if step.open is not None:
        state.blame("C5", event.seq, f"step {step.path} is denied while it is being called")


def _step_ended(state: State, event: Event) -> None:
    step = _step(state, event)
    to = event.type.partition(".")[2]
    number, via = event.data.get("attempt"), event.data.get("via")
    if step.of_items:
        for item in state.steps.values():
            if base(item.path) == step.path != item.path and item.status not in ENDED:
                state.blame("C5", event.seq, f"step {step.path} is {to} while its item {item.path} is {item.status}")
    elif via in {"tool", "fallback", "signal"} and (step.open is None or step.open.number != number):
        state.blame("C5", event.seq, f"the outcome of step {step.path} is of attempt {number}, which is not open")
    if via == "signal" and step.open is not None and not step.open.waiting:
        state.blame("C5", event.seq, f"step {step.path} heard a signal that it did not wait for")
    _end_step(state, event, step, to)
    if to != "skipped":
        state.recoveries = 0


def _pause_opened(state: State, event: Event) -> None:
    said = event.data.get("pause") or event.data
    reason = said.get("reason") or {}
    pause = Pause(
        said["id"],
        event.step,
        reason.get("type", ""),
        reason.get("producingStep"),
        call=said.get("call"),
        expires_at=millis(said.get("expires_at")),
    )
    state.pauses[pause.id] = pause
    if event.step is not None:
        _move_step(state, event, _step(state, event), "paused")


def _pause_closed(state: State, event: Event) -> None:
    pause = state.pauses.get(event.data.get("pause", ""))
    if pause is None or pause.status != "open":
        state.blame("C5", event.seq, f"{event.type} of pause {event.data.get('pause')}, which is not open")
        return
    pause.status = event.type.partition(".")[2]
    answer = event.data.get("answer") or event.data.get("action") or ""
    if event.type == "pause.expired":
        state.expirer = (event.actor.get("id"), base(pause.step or ""))
    if pause.call is not None and answer in {"approve", "edit"}:
        _grant(state, event, pause, pause.call)
    if pause.producer is not None and answer in PUT_BACK:
        _put_back(state, pause.producer, PUT_BACK[answer])
        answer = "retry"
    if pause.step is not None and (answer in AGAIN or pause.status == "withdrawn"):
        _move_step(state, event, state.steps[pause.step], "running")


def _grant(state: State, event: Event, pause: Pause, call: Mapping[str, Any]) -> None:
    shown = call.get("input") or {}
    by_time = event.type == "pause.expired"
    state.grants[pause.id] = Grant(
        given=event,
        step=str(pause.step),
        tool=call.get("tool", ""),
        version=call.get("tool_version", ""),
        digest=event.data.get("digest") or shown.get("digest") or shown.get("artifact"),
        of_items=bool(call.get("of_items")),
        shown=shown.get("value"),
        expires_at=None if by_time else pause.expires_at,
    )


def _off_schedule(state: State, event: Event) -> None:
    """Each once in a generation, of a task that has not ended; early only what was not late, and sooner than told."""
    told = event.data.get("estimate") or {}
    if state.off_schedule.get(event.type) == state.generation:
        state.blame("C5", event.seq, f"{event.type} is said twice in generation {state.generation}")
    if state.status in TERMINAL:
        state.blame("C5", event.seq, f"{event.type} of a task that is {state.status}")
    if event.type == "task.early_completion":
        late = state.off_schedule.get("task.late") == state.generation
        if late or event.data.get("actual_s", 0) >= told.get("p10", 0):
            state.blame("C5", event.seq, f"early after {event.data.get('actual_s')} s, told were {told.get('p10')} s")
    state.off_schedule[event.type] = state.generation


_CHANGES: Final[Mapping[str, Callable[[State, Event], None]]] = {
    "task.created": _created,
    "task.started": _started,
    "task.pausing": lambda state, event: _move(state, event, "pausing"),
    "task.paused": _paused,
    "task.resumed": lambda state, event: _move(state, event, event.data.get("to", "")),
    "task.recovered": _recovered,
    "task.cancelling": lambda state, event: _move(state, event, "cancelling"),
    "task.cancelled": lambda state, event: _end_task(state, event, "cancelled"),
    "task.completed": _completed,
    "task.failed": lambda state, event: _end_task(state, event, "failed"),
    "task.continued": _continued,
    "task.ahead_of_schedule": _off_schedule,
    "task.late": _off_schedule,
    "task.early_completion": _off_schedule,
    "task.reopened": _reopened,
    "plan.revised": _revised,
    "step.started": _step_started,
    "step.waiting": _step_waiting,
    "step.fallback": _step_fallback,
    "step.denied": _step_denied,
    "attempt.started": _attempt_started,
    "attempt.failed": _attempt_ended,
    "attempt.timed_out": _attempt_ended,
    "attempt.killed": _attempt_ended,
    "attempt.abandoned": _attempt_ended,
    **dict.fromkeys(("step.completed", "step.failed", "step.skipped"), _step_ended),
    "artifact.added": left_bytes,
    "pause.opened": _pause_opened,
    "pause.answered": _pause_closed,
    "pause.expired": _pause_closed,
    "pause.withdrawn": _pause_closed,
}
