"""An outcome on its way to `decide`: with the retry rule of its step, the draws it may need, and who depends on it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from everstep.domain.breaker import BreakerKey, Caller, Verdict
from everstep.domain.consequence import is_final, spec_of
from everstep.domain.detour import breaker_of
from everstep.domain.ended import NO_CHANCE, Chance, Ended
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.graph import Graph
from everstep.domain.ids import PauseId, StepPath, split_path
from everstep.domain.outcome import Asked, Failed, Lost, Outcome, Succeeded
from everstep.domain.pausing import IMMEDIATE, repeatable
from everstep.domain.task import OpenAttempt, TaskState
from everstep.engine.kit import Kit
from everstep.engine.timing import retry_rule

__all__ = [
    "CUT_OFF",
    "NEVER_CALLED",
    "PAUSE_GRACE_S",
    "Ended",
    "cut_short",
    "dependants",
    "judge",
    "may_end",
    "shortened",
]

NEVER_CALLED: Final = Failed(
    failure=Failure(
        code="not_called",
        category=Category.TRANSIENT,
        message="the intent was written down, but the call was never made",
        what_to_do="nothing: it is made now",
        effect_state=EffectState.NONE,
    ),
    ended="abandoned",
    called=False,
)


_CANCELLED: Final = Failure(
    code="cancelled",
    category=Category.LOGIC,
    message="the call was cut off because the task was cancelled",
    what_to_do="look whether it had an effect",
    effect_state=EffectState.UNKNOWN,
)
CUT_OFF: Final = Failed(failure=_CANCELLED, ended="killed")
PAUSED: Final = Lost(
    why=Failure(
        code="paused",
        category=Category.TRANSIENT,
        message="the call was cut off because somebody asked for a pause at once",
        what_to_do="nothing: it is made again when the task goes on",
        effect_state=EffectState.UNKNOWN,
    ),
    ended="killed",
)
HALTED: Final = Lost(
    why=Failure(
        code="halted",
        category=Category.TRANSIENT,
        message="the call was cut off because everything was halted at once",
        what_to_do="the effect rule decides: call again, look, or ask",
        effect_state=EffectState.UNKNOWN,
    ),
    ended="killed",
)
PAUSE_GRACE_S: Final = 2.0
"""How long a call that is cut off for a pause may take to end."""


def cut_short(state: TaskState, calls: Sequence[StepPath], kit: Kit) -> tuple[Sequence[StepPath], Lost]:
    """Which calls in flight a pause, or a halt, at once ends; and what their end means."""
    if state.pausing is not None and state.pausing.mode == IMMEDIATE:
        return repeatable(state), PAUSED
    halted = kit.passage.halted
    return calls if halted is not None and halted.mode == IMMEDIATE else (), HALTED


def may_end(state: TaskState, path: StepPath) -> bool:
    """Whether a call of a cancelled task is one of its `finally` steps."""
    return is_final(state, spec_of(state, path))


def judge(state: TaskState, path: StepPath, outcome: Outcome, kit: Kit) -> Ended:
    """All that deciding about one attempt's end may use."""
    if type(outcome) is Succeeded:
        if kit.breakers.troubled:
            return Ended(path, outcome, kit.limits.retry, NO_CHANCE, (), _verdict(state, path, outcome, kit))
        _praise(state, path, kit)
        return Ended(path, outcome, kit.limits.retry)
    verdict = _verdict(state, path, outcome, kit)
    return Ended(
        path=path,
        outcome=outcome,
        retry=retry_rule(state, path, kit),
        chance=_chance(kit),
        dependants=dependants(kit.graph(state), path),
        verdict=verdict,
    )


def _chance(kit: Kit) -> Chance:
    """Draws for one decision."""
    return Chance(
        jitter=kit.entropy.draw(), pause_id=PauseId(kit.entropy.new_id("p")), error_id=kit.entropy.new_id("e")
    )


def _praise(state: TaskState, path: StepPath, kit: Kit) -> None:
    """A success while no breaker is in trouble, as nearly always: remembered here, written nowhere."""
    attempt = state.steps[path].attempt
    entry = None if attempt is None else kit.catalog.find(attempt.tool)
    if attempt is None or entry is None or not attempt.input.present:
        return
    name = breaker_of(spec_of(state, path), state.steps[path].detour)
    kit.breakers.praise(kit.breakers.key(state.owner, name, entry, attempt.input), kit.clock.now())


def _verdict(state: TaskState, path: StepPath, outcome: Outcome, kit: Kit) -> Verdict | None:
    """What the breaker of the call learns from its end."""
    attempt = state.steps[path].attempt
    if attempt is None:
        return None
    caller = Caller(task=state.id, step=path, attempt=attempt.number)
    key = _key(state, path, attempt, caller, kit=kit)
    return None if key is None else kit.breakers.verdict(key, caller, outcome, kit.clock.now())


def _key(state: TaskState, path: StepPath, attempt: OpenAttempt, caller: Caller, *, kit: Kit) -> BreakerKey | None:
    entry = kit.catalog.find(attempt.tool)
    if entry is None or not attempt.input.present:  # a target cannot be told; but whose permit it holds can
        held = (key for key, one in kit.breakers.troubled.items() if one.permit and one.permit.caller == caller)
        return next(held, None)
    name = breaker_of(spec_of(state, path), state.steps[path].detour)
    return kit.breakers.key(state.owner, name, entry, attempt.input)


def dependants(graph: Graph, path: StepPath) -> tuple[str, ...]:
    """Steps that need this one's output, directly or through others."""
    lost = {StepPath(split_path(path)[0])}
    found = []
    for wired in graph.steps:
        if wired.path not in lost and not lost.isdisjoint(wired.required):
            lost.add(wired.path)
            found.append(wired.path)
    return tuple(found)


WORDS_MAX: Final = 500


def shortened(ended: Sequence[Ended]) -> Sequence[Ended] | None:
    """Ends that are too long for a line of the journal, in fewer words; None if there is nothing to cut."""
    shorter = [replace(one, outcome=_shorter(one.outcome)) for one in ended]
    return None if shorter == list(ended) else shorter


def _shorter(outcome: Outcome) -> Outcome:
    """What happened stays; of a question that cannot be asked this is told."""
    match outcome:
        case Failed(failure=failure):
            message, what_to_do = failure.message[:WORDS_MAX], failure.what_to_do[:WORDS_MAX]
            return replace(
                outcome, failure=replace(failure, message=message, what_to_do=what_to_do, details={}), less=None
            )
        case Asked(question=question, usage=usage):
            failure = Failure(
                code="not_recordable",
                category=Category.INTERNAL,
                message=f"the tool's question is too long to be asked: {question[:WORDS_MAX]}",
                what_to_do="let the tool ask with a shorter question and form",
                effect_state=EffectState.NONE,
            )
            return Failed(failure=failure, usage=usage)
        case _:
            return outcome
