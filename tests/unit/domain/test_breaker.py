"""The breaker as a value: when it opens, whom it lets through, what closes it."""

from dataclasses import replace

import pytest

from everstep.domain.breaker import (
    Ask,
    Breaker,
    BreakerKey,
    BreakerPolicy,
    BreakerState,
    Caller,
    Result,
    Verdict,
    ask,
    holds_back,
    is_clean,
    learn,
)
from everstep.domain.ids import Instant, StepPath, TaskId, WorkerId

KEY = BreakerKey("local", "http.get", "example.org")
POLICY = BreakerPolicy()
ME, OTHER = WorkerId("w_me"), WorkerId("w_other")
S = 1000


def caller(n: int) -> Caller:
    return Caller(task=TaskId(f"t_{n}"), step=StepPath("a"), attempt=1)


def told(breaker: Breaker, word: str, at: int = 0, by: int = 0) -> Breaker:
    """`F` a counted failure, `S` a success, one second apart."""
    for turn, letter in enumerate(word):
        result = Result(at=Instant(at + turn * S), ok=letter == "S")
        breaker = learn(breaker, Verdict(key=KEY, policy=POLICY, caller=caller(by), results=(result,), error="down"))
    return breaker


def wish(n: int, at: int = 0) -> Ask:
    return Ask(key=KEY, caller=caller(n), until=Instant(at + 60 * S))


def opened() -> Breaker:
    return told(Breaker(key=KEY), "FFFFF")


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("FFFF", "closed"),
        ("FFFFF", "open"),
        ("FFFFSFFFF", "closed"),  # 8 of 9, but fewer than 10
        ("FFFFSFFFFSF", "open"),  # 9 of 11
        ("FSFSFSFSF", "closed"),
        ("SFSFSFSFSF", "open"),  # 5 of 10
        ("S" * 15 + "FFFFSFFFF", "closed"),  # 8 of the last 20
        ("S" * 12 + "FFSFFSFFSFFSFF", "open"),  # 10 of the last 20
    ],
)
def test_when_it_opens(word: str, state: str) -> None:
    assert told(Breaker(key=KEY), word).state == state


def test_the_share_is_of_the_last_minute_only() -> None:
    spread = Breaker(key=KEY)
    for turn in range(20):
        spread = told(spread, "FS"[turn % 2], at=turn * 7 * S)
    assert spread.state is BreakerState.CLOSED, "never ten within a minute"


def test_open_lets_nobody_through_before_its_time() -> None:
    breaker = opened()
    assert breaker.retry_at == 4 * S + 30 * S
    assert ask(breaker, wish(1), ME, Instant(breaker.retry_at - 1), holder_lives=False) is None
    assert holds_back(breaker, Instant(10 * S), ME) == breaker.retry_at


def test_half_open_lets_exactly_one_through() -> None:
    breaker = opened()
    at = Instant(40 * S)
    probing = ask(breaker, wish(1), ME, at, holder_lives=False)
    assert probing is not None
    assert (probing.state, probing.permit and probing.permit.caller) == (BreakerState.HALF_OPEN, caller(1))
    assert ask(probing, wish(2), ME, at, holder_lives=True) is None
    taken_over = ask(probing, wish(2), OTHER, at, holder_lives=False)
    assert taken_over is not None
    assert taken_over.permit is not None
    assert (taken_over.permit.caller, taken_over.permit.worker) == (caller(2), OTHER)


def test_our_own_permit_holds_back_until_its_time_and_no_longer() -> None:
    probing = ask(opened(), wish(1, 40 * S), ME, Instant(40 * S), holder_lives=False)
    assert probing is not None
    assert probing.permit is not None
    until = probing.permit.until
    assert holds_back(probing, Instant(until - 1), ME) == until
    assert holds_back(probing, until, ME) is None, "whatever was heard of its end: the store knows"
    assert holds_back(probing, Instant(until - 1), OTHER) is None, "its worker may be gone"


def test_two_successes_close_it_and_nothing_is_remembered() -> None:
    at = Instant(40 * S)
    breaker = opened()
    for turn in (1, 2):
        granted = ask(breaker, wish(turn), ME, at, holder_lives=False)
        assert granted is not None
        breaker = told(granted, "S", at=at, by=turn)
    assert breaker == Breaker(key=KEY)


def test_a_failed_probe_opens_it_for_twice_as_long_up_to_five_minutes() -> None:
    breaker = opened()
    lengths = []
    for _ in range(6):
        at = breaker.retry_at
        assert at is not None
        granted = ask(breaker, wish(1), ME, at, holder_lives=False)
        assert granted is not None
        breaker = told(granted, "F", at=at, by=1)
        assert breaker.retry_at is not None
        lengths.append((breaker.retry_at - at) // S)
    assert lengths == [60, 120, 240, 300, 300, 300]


def test_a_probe_that_says_nothing_gives_its_permit_back() -> None:
    at = Instant(40 * S)
    granted = ask(opened(), wish(1), ME, at, holder_lives=False)
    assert granted is not None
    back = learn(granted, Verdict(key=KEY, policy=POLICY, caller=caller(1)))
    assert (back.state, back.permit, back.successes) == (BreakerState.HALF_OPEN, None, 0)
    assert ask(back, wish(2), ME, at, holder_lives=False) is not None


@pytest.mark.parametrize("word", ["S", "F"])
def test_calls_from_before_it_opened_prove_nothing(word: str) -> None:
    granted = ask(opened(), wish(1), ME, Instant(40 * S), holder_lives=False)
    assert granted is not None
    after = told(granted, word, at=41 * S, by=9)
    assert (after.state, after.permit, after.successes) == (granted.state, granted.permit, 0)


def test_trouble_passes() -> None:
    breaker = told(Breaker(key=KEY), "FFS")
    assert not is_clean(breaker, Instant(30 * S), POLICY)
    assert is_clean(breaker, Instant(62 * S), POLICY)
    assert not is_clean(replace(breaker, streak=1), Instant(62 * S), POLICY)


def test_ids_differ_by_owner_tool_and_target() -> None:
    others = (KEY._replace(owner="ana"), KEY._replace(tool="http.post"), KEY._replace(target="x"))
    assert len({key.id for key in (KEY, KEY._replace(tool=None), *others)}) == 5
