"""decide: category x budget x effect -> what follows. The whole table, without waiting."""

from dataclasses import replace

import pytest

from everstep.domain import events as e
from everstep.domain.decide import decide
from everstep.domain.detour import Degraded, Detour
from everstep.domain.ended import Chance, Ended
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, Millis, PauseId, StepPath
from everstep.domain.outcome import Asked, Failed, Lost, Outcome, Probe, Succeeded, Waits
from everstep.domain.pauses import InputRequired, ToolErrorPause, UncertainOutcome
from everstep.domain.plan import Effect, OnError, OnUncertain
from everstep.domain.policy import USUAL_RETRY, may_retry
from tests.unit.histories import History, running, sealed, step

A = StepPath("a")
CHANCE = Chance(jitter=0.0, pause_id=PauseId("p_1"), error_id="e_1")


def failure(category: Category, state: EffectState = EffectState.NONE, code: str = "x") -> Failure:
    return Failure(code=code, category=category, message="m", what_to_do="w", effect_state=state)


def decided(history: History, outcome: Outcome) -> list[str]:
    """The types of what follows."""
    return [draft.body.TYPE for draft in drafts_of(history, outcome)]


def drafts_of(history: History, outcome: Outcome) -> tuple[e.Draft, ...]:
    ended = Ended(path=A, outcome=outcome, retry=USUAL_RETRY, chance=CHANCE)
    return decide(history.state, ended, Instant(history.at + 5))


def test_success_is_one_event() -> None:
    assert decided(running(step("a")), Succeeded(output=sealed(1))) == ["step.completed"]


def test_an_end_of_a_closed_attempt_says_nothing() -> None:
    history = running(step("a")).completed("a")
    assert decided(history, Succeeded(output=sealed(2))) == []


LESS = Degraded(level=1, set={"pages": 1})
BUDGETS = {Category.TRANSIENT: 3, Category.PERMISSION: 1, Category.RESOURCE: 2}
"""Retries of each category; the others have none."""


def spent(history: History, category: Category, used: int) -> None:
    """A step that has used so many retries of a category."""
    one = history.state.steps[A]
    match category:
        case Category.PERMISSION:
            one.detour = Detour(refreshes=used)
        case Category.RESOURCE:
            one.detour = Detour(degraded=Degraded(level=used, set={})) if used else None
        case _:
            one.retries = used


@pytest.mark.req("C.5", "TU.3", "L.1", "L.2", "L.3", "L.4", "L.5")
@pytest.mark.parametrize("category", list(Category))
@pytest.mark.parametrize("used", range(5))
@pytest.mark.parametrize("times", [None, 0, 1])
@pytest.mark.parametrize("remedied", [True, False])
def test_category_x_attempt_x_budget(category: Category, used: int, times: int | None, remedied: bool) -> None:
    history = running(step("a"))
    spent(history, category, used)
    policy = USUAL_RETRY if times is None else replace(USUAL_RETRY, times=times)
    budget = BUDGETS.get(category, 0)
    if times is not None:
        budget = times if category is Category.TRANSIENT else budget * bool(times)
    needs_remedy = category in (Category.PERMISSION, Category.RESOURCE)
    outcome = Failed(failure=failure(category), renewed=remedied, less=LESS if remedied else None)
    drafts = decide(history.state, Ended(path=A, outcome=outcome, retry=policy, chance=CHANCE), Instant(history.at + 5))
    retried = used < budget and (remedied or not needs_remedy)
    assert [draft.body.TYPE for draft in drafts] == [
        "attempt.failed",
        "step.retry_scheduled" if retried else "step.failed",
    ]
    last = drafts[-1].body
    assert isinstance(last, e.StepRetryScheduled | e.StepFailed)
    assert (last.error.retries, last.error.retries_max) == (used + retried, budget)
    if isinstance(last, e.StepRetryScheduled):
        assert (last.degraded is LESS) is (category is Category.RESOURCE)


@pytest.mark.req("C.5", "TU.3")
@pytest.mark.parametrize("category", list(Category))
@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("known", list(EffectState))
@pytest.mark.parametrize("on_uncertain", [OnUncertain.ASK, OnUncertain.FAIL])
@pytest.mark.parametrize("used", [0, 4])
def test_category_x_effect_x_what_is_known_of_it(
    category: Category, effect: Effect, known: EffectState, on_uncertain: OnUncertain, used: int
) -> None:
    """What acted is never made again; what may have acted goes by the effect rule; the rest by its category."""
    history = running(step("a", on_uncertain=on_uncertain), effect=effect)
    spent(history, category, used)
    probe = Probe(result="unknown") if effect is Effect.VERIFIABLE and known is EffectState.UNKNOWN else None
    outcome = Failed(failure=failure(category, known), renewed=True, less=LESS, probe=probe)
    last = drafts_of(history, outcome)[-1].body
    if known is EffectState.UNKNOWN and not effect.repeatable:
        expected = {OnUncertain.ASK: "pause.opened", OnUncertain.FAIL: "step.failed"}[on_uncertain]
    elif known is EffectState.MADE or used >= BUDGETS.get(category, 0):
        expected = "step.failed"
    else:
        expected = "step.retry_scheduled"
    assert expected == last.TYPE
    if isinstance(last, e.StepRetryScheduled):
        assert last.new_key is (known is EffectState.NONE)


def test_a_retry_counts_for_its_category_only() -> None:
    history = running(step("a"))
    for category in (Category.PERMISSION, Category.RESOURCE):
        outcome = Failed(failure=failure(category), renewed=True, less=LESS)
        ended = Ended(path=A, outcome=outcome, retry=USUAL_RETRY, chance=CHANCE)
        history.tell(decide(history.state, ended, history.at)).called("a")
    one = history.state.steps[A]
    assert (one.retries, one.detour) == (0, Detour(refreshes=1, degraded=LESS))


@pytest.mark.parametrize(
    ("code", "word", "retried"),
    [
        ("http_503", "server_error", True),
        ("http_503", "network", False),
        ("net_reset", "network", True),
        ("http_429", "rate_limited", True),
        ("timeout", "timeout", True),
        ("timeout", "server_error", False),
    ],
)
def test_only_narrows(code: str, word: str, retried: bool) -> None:
    policy = replace(USUAL_RETRY, only=(word,))
    assert may_retry(policy, failure(Category.TRANSIENT, code=code), 0) is retried


def test_the_deadline_of_the_step_is_over_attempts_and_waits() -> None:
    history = running(step("a"))
    outcome = Failed(failure=failure(Category.TRANSIENT))
    for within, expected in ((504, "step.failed"), (505, "step.retry_scheduled")):
        policy = replace(USUAL_RETRY, within_ms=Millis(within))
        ended = Ended(path=A, outcome=outcome, retry=policy, chance=CHANCE)
        assert expected == decide(history.state, ended, Instant(history.at + 5))[-1].body.TYPE


def test_a_retry_waits_at_least_half_the_backoff_and_starts_a_new_try() -> None:
    history = running(step("a"))
    scheduled = drafts_of(history, Failed(failure=failure(Category.TRANSIENT)))[-1].body
    assert isinstance(scheduled, e.StepRetryScheduled)
    assert scheduled.error.retry_at == history.at + 5 + 500
    assert scheduled.new_key


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [(OnError.FAIL, "step.failed"), (OnError.CONTINUE, "step.failed"), (OnError.PAUSE, "pause.opened")],
)
def test_when_retries_are_used_up_the_plan_decides(on_error: OnError, expected: str) -> None:
    history = running(step("a", on_error=on_error, retryable=True))
    drafts = drafts_of(history, Failed(failure=failure(Category.LOGIC)))
    assert expected == drafts[-1].body.TYPE
    if isinstance(drafts[-1].body, e.PauseOpened):
        reason = ToolErrorPause(failed_step=A, error="m", retryable=True, suggested_tool="some.tool")
        assert drafts[-1].body.pause.reason == reason


DONE = Probe(result="done", output=sealed("found"))
ABANDONED = "attempt.abandoned"
LOSSES = [
    (Effect.PURE, None, OnUncertain.ASK, [ABANDONED]),
    (Effect.IDEMPOTENT, None, OnUncertain.ASK, [ABANDONED]),
    (Effect.VERIFIABLE, DONE, OnUncertain.ASK, [ABANDONED, "attempt.probed", "step.completed"]),
    (Effect.VERIFIABLE, Probe(result="not_done"), OnUncertain.ASK, [ABANDONED, "attempt.probed"]),
    (Effect.VERIFIABLE, Probe(result="unknown"), OnUncertain.ASK, [ABANDONED, "attempt.probed", "pause.opened"]),
    (Effect.VERIFIABLE, Probe(result="unknown"), OnUncertain.RETRY, [ABANDONED, "attempt.probed"]),
    (Effect.ONCE, None, OnUncertain.ASK, [ABANDONED, "pause.opened"]),
    (Effect.ONCE, None, OnUncertain.RETRY, [ABANDONED]),
    (Effect.ONCE, None, OnUncertain.FAIL, [ABANDONED, "step.failed"]),
]


@pytest.mark.parametrize(("effect", "probe", "on_uncertain", "expected"), LOSSES)
def test_the_effect_rule_after_a_crash(
    effect: Effect, probe: Probe | None, on_uncertain: OnUncertain, expected: list[str]
) -> None:
    history = running(step("a", on_uncertain=on_uncertain), effect=effect)
    assert decided(history, Lost(probe=probe)) == expected


@pytest.mark.parametrize("effect", [Effect.PURE, Effect.IDEMPOTENT])
def test_an_unclear_end_of_a_harmless_call_uses_a_retry_with_the_same_key(effect: Effect) -> None:
    history = running(step("a"), effect=effect)
    drafts = drafts_of(history, Failed(failure=failure(Category.TRANSIENT, EffectState.UNKNOWN), ended="timed_out"))
    assert [draft.body.TYPE for draft in drafts] == ["attempt.timed_out", "step.retry_scheduled"]
    assert isinstance(drafts[1].body, e.StepRetryScheduled)
    assert not drafts[1].body.new_key


def test_an_unclear_end_of_a_once_call_is_asked_about() -> None:
    history = running(step("a"), effect=Effect.ONCE)
    drafts = drafts_of(history, Failed(failure=failure(Category.TRANSIENT, EffectState.UNKNOWN), ended="timed_out"))
    opened = drafts[-1].body
    assert isinstance(opened, e.PauseOpened)
    assert opened.pause.reason == UncertainOutcome(
        blocked_step=A, attempt=1, idempotency_key="key-a", suggested_tool="some.tool"
    )


def test_a_call_that_acted_is_never_made_again() -> None:
    history = running(step("a"))
    assert decided(history, Failed(failure=failure(Category.TRANSIENT, EffectState.MADE)))[-1] == "step.failed"


def test_an_intent_never_acted_on_costs_nothing() -> None:
    history = running(step("a"), effect=Effect.ONCE)
    outcome = Failed(failure=failure(Category.TRANSIENT), ended="abandoned", called=False)
    assert decided(history, outcome) == [ABANDONED]


def test_a_question_closes_the_attempt_and_waits() -> None:
    history = running(step("a"))
    drafts = drafts_of(history, Asked(question="To whom?", schema={"type": "string"}))
    assert [draft.body.TYPE for draft in drafts] == [ABANDONED, "pause.opened"]
    assert isinstance(drafts[1].body, e.PauseOpened)
    reason = InputRequired(blocked_step=A, question="To whom?", schema={"type": "string"})
    assert drafts[1].body.pause.reason == reason


def test_a_durable_wait_leaves_the_attempt_open() -> None:
    history = running(step("a"))
    history.tell(drafts_of(history, Waits(until=Instant(history.at + 1000), output=sealed(None))))
    assert history.state.steps[A].attempt is not None
    assert history.state.in_flight == ()


def test_nothing_is_retried_or_asked_while_a_task_is_being_cancelled() -> None:
    history = running(step("a", on_error=OnError.PAUSE), effect=Effect.ONCE).say(e.TaskCancelling())
    outcome = Failed(failure=failure(Category.LOGIC, EffectState.UNKNOWN), ended="killed")
    assert decided(history, outcome) == ["attempt.killed"]
    assert decided(history, Lost()) == [ABANDONED]
