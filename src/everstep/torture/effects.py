"""The effect log held against the journal: what the world saw, and what was written down before and after.

Standard library only. The log is ground truth: the called tool itself wrote it. Times are compared within one
machine's clock, in whole milliseconds, and only where the order of events cannot be told from the journal.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from everstep.torture.history import Effect, Event, Frozen, Violation
from everstep.torture.state import Attempt, State, Step, base

FINAL_ENDS: Final = frozenset({"attempt.failed", "attempt.timed_out", "attempt.killed"})
"""Ends after which only a retry calls again; an abandoned attempt uses up none."""
NO_PROCESS: Final = "x_"
"""How holders begin that are no process: their calls are made wherever there is a place."""
WAKING_MS: Final = 200
"""In which a process that goes on does what it was about to do when it was frozen."""
COUNTED_ENDS: Final = FINAL_ENDS - {"attempt.killed"}
"""A call that was ended because somebody paused the task uses up none either."""


def check_effects(
    states: dict[str, State], effects: Sequence[Effect], frozen: Sequence[Frozen] = ()
) -> Iterator[Violation]:
    """C2, C3, C4, C8 and C10, as far as the world can tell."""
    starts = [effect for effect in effects if effect.what == "start"]
    asleep = [*frozen]
    for effect in starts:
        state = states.get(effect.task)
        if state is None or effect.step not in state.steps:
            yield Violation("C3", effect.task, 0, f"step {effect.step} acted, but the journal does not know it")
            continue
        yield from _written_before(state, effect)
        late = [*_not_after_its_end(state, effect)]
        if late and not _on_waking(effect, asleep):
            yield from late
    yield from _one_incarnation(states, starts)
    made: dict[tuple[str, str], list[Effect]] = {}
    for effect in starts:
        made.setdefault((effect.task, effect.step), []).append(effect)
    for task, state in states.items():
        for step in state.steps.values():
            yield from _once(state, step, made.get((task, step.path), []))


def _attempt(step: Step, number: int) -> Attempt | None:
    return next((attempt for attempt in step.attempts if attempt.number == number), None)


def _written_before(state: State, effect: Effect) -> Iterator[Violation]:
    attempt = _attempt(state.steps[effect.step], effect.attempt)
    name = f"attempt {effect.attempt} of step {effect.step}"
    if attempt is None:
        yield Violation("C3", state.task, 0, f"{name} acted without an intent")
        return
    seq = attempt.begun.seq
    if effect.key != attempt.key:
        yield Violation("C3", state.task, seq, f"{name} acted under the key {effect.key}, not {attempt.key}")
    if effect.intent is False:
        yield Violation("C3", state.task, seq, f"{name} acted before its intent was durable")
    if effect.at < attempt.begun.at:
        yield Violation("C3", state.task, seq, f"{name} acted {attempt.begun.at - effect.at} ms before its intent")
    if attempt.end is not None and attempt.end.data.get("called") is False:
        yield Violation("C3", state.task, attempt.end.seq, f"{name} acted, but is recorded as never called")


def _not_after_its_end(state: State, effect: Effect) -> Iterator[Violation]:
    outcome = state.steps[effect.step].outcome
    if outcome is not None and effect.at > outcome.at:
        what = f"step {effect.step} acted {effect.at - outcome.at} ms after its outcome"
        yield Violation("C2", state.task, outcome.seq, what)
    for since, until in state.still:
        if effect.at > since and (until is None or effect.at < until):
            yield Violation("C8", state.task, 0, f"step {effect.step} acted while the task was paused")
    if state.status == "cancelled" and state.ended_at is not None and effect.at > state.ended_at:
        yield Violation("C8", state.task, 0, f"step {effect.step} acted after the task was cancelled")


def _on_waking(effect: Effect, asleep: list[Frozen]) -> bool:
    """Whether it was about to act when it was frozen: after its last look at its lease nobody can stop it any more.

    A process does one thing at a time, so that excuses one effect for each time it was frozen.
    """
    for one in asleep:
        if one.pid == effect.pid and 0 <= effect.at - one.until <= WAKING_MS:
            asleep.remove(one)
            return True
    return False


def _one_incarnation(states: dict[str, State], starts: Sequence[Effect]) -> Iterator[Violation]:
    """One epoch is carried by one process, and a worker is one process; a holder that is none has one per call."""
    carriers: dict[tuple[object, ...], tuple[str, int]] = {}
    for effect in starts:
        state = states.get(effect.task)
        attempt = _attempt(state.steps[effect.step], effect.attempt) if state and effect.step in state.steps else None
        if attempt is None:
            continue
        carrier = (effect.incarnation, effect.pid)
        scopes: tuple[tuple[object, ...], ...] = ((effect.task, attempt.epoch), ("", attempt.worker))
        if str(attempt.worker).startswith(NO_PROCESS):
            scopes = ((effect.task, effect.step, attempt.number),)
        for scope in scopes:
            if carriers.setdefault(scope, carrier) != carrier:
                what = f"two processes acted for {attempt.worker} in epoch {attempt.epoch}"
                yield Violation("C4", effect.task, attempt.begun.seq, what)


def _once(state: State, step: Step, starts: Sequence[Effect]) -> Iterator[Violation]:
    """No second effect of a `once` step that nobody decided on."""
    for earlier, later in pairwise(starts):
        first, second = _attempt(step, earlier.attempt), _attempt(step, later.attempt)
        if first is None or second is None or first.effect != "once":
            continue
        if first is second:
            what = f"attempt {first.number} of step {step.path} acted twice"
            yield Violation("C10", state.task, first.begun.seq, what)
        elif not decided(state, step, first, second):
            what = f"step {step.path} acted again in attempt {second.number}, and nobody decided so"
            yield Violation("C10", state.task, second.begun.seq, what)


def decided(state: State, step: Step, first: Attempt, second: Attempt) -> bool:
    """Whether somebody, or the plan, or a definite answer of the tool, allowed the second call of a `once` step."""
    none = first.end is not None and first.end.data.get("effect_state") == "none"
    return none or _on_uncertain(state, step) == "retry" or any(answers(state, step, first, second))


def answers(state: State, step: Step, first: Attempt, second: Attempt) -> Iterator[Event]:
    """What somebody decided about the step between two of its attempts."""
    for event in _between(state, first, second):
        changed = event.type == "plan.revised" and any(one["id"] == step.path for one in event.data.get("diff") or ())
        client = (event.data.get("continued") or {}).get("step") == step.path  # it asked for this very call
        answered = event.type == "pause.answered" and event.step == step.path
        if event.type == "task.reopened" or changed or client or answered:
            yield event


def _between(state: State, first: Attempt, second: Attempt) -> list[Event]:
    return [event for event in state.events if first.begun.seq < event.seq < second.begun.seq]


def check_effect_rule(state: State) -> Iterator[Violation]:
    """C10 by the journal alone: what may be called again after an end without a definite answer, and with which key."""
    for step in state.steps.values():
        for first, second in pairwise(step.attempts):
            for what in _repeat(state, step, first, second):
                yield Violation("C10", state.task, second.begun.seq, f"attempt {second.number} of {step.path}: {what}")


def _repeat(state: State, step: Step, first: Attempt, second: Attempt) -> Iterator[str]:
    if first.end is None or "effect_state" not in first.end.data:
        return
    effect_state = first.end.data["effect_state"]
    said = [event.data.get("answer", "retry") for event in answers(state, step, first, second)]
    between = _between(state, first, second)
    if any(event.type == "step.fallback" and event.step == step.path for event in between):
        if effect_state != "none" and first.effect != "pure":
            yield f"falls back although its effect is {effect_state}"
        return
    if effect_state == "made" and not said:
        yield "calls again what had been made"
    if effect_state == "unknown" and not said and not _may_repeat(state, step, first, between):
        yield f"repeats a `{first.effect}` call that may have happened"
    deliberate = "retry" in said or "retry_with" in said
    if effect_state == "unknown" and not deliberate and first.key != second.key:
        yield "repeats a call that may have happened under a new key"
    if effect_state == "none" and first.end.type in FINAL_ENDS and not said and first.key == second.key:
        yield "is a retry under the old key"


def _may_repeat(state: State, step: Step, first: Attempt, between: Sequence[Event]) -> bool:
    if first.effect in {"pure", "idempotent"} or _on_uncertain(state, step) == "retry":
        return True
    probes = (event for event in between if event.type == "attempt.probed" and event.step == step.path)
    return first.effect == "verifiable" and any(event.data.get("result") == "not_done" for event in probes)


def _on_uncertain(state: State, step: Step) -> str:
    said = plan_step(state, step).get("on_uncertain") or (state.plan.get("defaults") or {}).get("on_uncertain")
    return str(said or "ask")


def plan_step(state: State, step: Step) -> dict[str, Any]:
    """What the plan says about the step a path belongs to."""
    every = (*(state.plan.get("steps") or ()), *(state.plan.get("finally") or ()))
    return next((dict(said) for said in every if said.get("id") == base(step.path)), {})


def check_bounds(state: State, retries: int) -> Iterator[Violation]:
    """C11: retries within one generation, by category and by tool: a fallback and an answer begin anew, repeats by the
    effect rule use up none.
    """
    for step in state.steps.values():
        place = 0
        used: Counter[str] = Counter()
        for first, second in pairwise(step.attempts):
            moved = [event for event in _between(state, first, second) if _falls_back(event, step)]
            yield from (_unplanned(state, step, event) for event in moved if not _planned(state, step, event))
            if moved or any(answers(state, step, first, second)):
                used.clear()
                place = moved[-1].data.get("number", place + 1) if moved else 0
                continue
            if first.end is None or first.end.type not in COUNTED_ENDS or first.cut:
                continue
            category = (first.end.data.get("error") or {}).get("category", "transient")
            used[category] += 1
            bound = _budget(state, step, place, retries).get(category, 0)
            if used[category] == bound + 1:
                what = f"step {step.path} is retried {bound + 1} times after {category} failures, {bound} are allowed"
                yield Violation("C11", state.task, second.begun.seq, what)


def _planned(state: State, step: Step, event: Event) -> bool:
    others = plan_step(state, step).get("fallback") or ()
    return event.data.get("tool_used") in [other.get("tool") for other in others]


def _unplanned(state: State, step: Step, event: Event) -> Violation:
    what = f"step {step.path} falls back to {event.data.get('tool_used')}, which its plan does not name"
    return Violation("C5", state.task, event.seq, what)


def _falls_back(event: Event, step: Step) -> bool:
    return event.type == "step.fallback" and event.step == step.path


def _budget(state: State, step: Step, place: int, retries: int) -> dict[str, int]:
    """Retries of each category, for the step's own tool (place 0) or for one of its fallbacks."""
    said: dict[str, Any] = plan_step(state, step)
    if place:
        others = said.get("fallback") or []
        said = others[place - 1] if place <= len(others) else {}
    by_plan = (state.plan.get("defaults") or {}).get("retry")
    rule = said.get("retry", by_plan)
    times = rule.get("times") if isinstance(rule, dict) else rule
    transient = times if isinstance(times, int) else retries
    return {"transient": transient, "permission": 1, "resource": 2} if transient else {}
