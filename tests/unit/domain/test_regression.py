"""Regressions: slower is told, noise is not. The rate of false alarms is measured, on times of several shapes."""

import random
from collections.abc import Callable

import pytest

from everstep.domain.regression import BEFORE, LAST, Timed, judged, rank_test, regressions

NORMAL = (LAST, BEFORE)
SHAPES: dict[str, Callable[[random.Random], float]] = {
    "narrow": lambda chance: chance.gauss(100, 10),
    "lognormal": lambda chance: 100 * chance.lognormvariate(0, 0.5),
    "wide": lambda chance: 100 * chance.lognormvariate(0, 1),
    "exponential": lambda chance: 100 * chance.expovariate(1),
    "two kinds": lambda chance: chance.choice((20, 200)) * chance.uniform(0.9, 1.1),
}


def drawn(shape: str, count: int, seed: int, factor: float = 1.0) -> list[float]:
    chance = random.Random(f"{shape}{seed}")
    return [factor * max(0.0, SHAPES[shape](chance)) for _ in range(count)]


def test_the_rank_test_agrees_with_the_exact_one() -> None:
    """By hand: of the 252 ways to choose 5 of 10, exactly one puts all of them on top, two put their sum at 39."""
    assert rank_test([6, 7, 8, 9, 10], [1, 2, 3, 4, 5]) == pytest.approx(1 / 252, abs=0.003)
    assert rank_test([1, 2, 3], [4, 5, 6]) > 0.95
    assert rank_test([1, 1, 1], [1, 1, 1, 1]) == 1.0, "all alike: nothing is known"
    assert rank_test([1, 3, 5, 7], [2, 4, 6, 8]) == pytest.approx(0.76, abs=0.08)


@pytest.mark.req("M.5")
@pytest.mark.parametrize("shape", SHAPES)
def test_three_times_slower_is_found_within_twenty_calls(shape: str) -> None:
    found = [judged(drawn(shape, BEFORE, seed) + drawn(shape, LAST, seed + 1000, 3.0)) for seed in range(100)]
    told = [one for one in found if one is not None]
    assert len(told) >= (95 if shape in ("narrow", "lognormal") else 75)
    if shape == "narrow":
        assert told[0].now_ms / told[0].was_ms == pytest.approx(3, rel=0.1)


@pytest.mark.req("M.5")
@pytest.mark.parametrize("shape", SHAPES)
def test_chance_alone_alarms_in_fewer_than_one_window_of_a_hundred(shape: str) -> None:
    """1,500 stationary windows each."""
    windows = alarms = 0
    for seed in range(60):
        times = drawn(shape, BEFORE + 25 * LAST, seed)
        for end in range(BEFORE + LAST, len(times) + 1, LAST):
            windows += 1
            alarms += judged(times[end - LAST - BEFORE : end]) is not None
    assert windows == 1500
    assert alarms / windows < 0.01


@pytest.mark.req("M.5")
@pytest.mark.parametrize("seed", range(10))
def test_a_stationary_series_raises_no_alarm(seed: int) -> None:
    assert judged(drawn("narrow", 400, seed)) is None


def test_it_is_over_when_calls_are_fast_again() -> None:
    slow = drawn("narrow", BEFORE, 1) + drawn("narrow", 5 * LAST, 2, 3.0)
    assert judged(slow) is not None
    assert judged(slow + drawn("narrow", 20 * LAST, 3, 3.0)) is not None, "slow for long is still slow"
    assert judged(slow + drawn("narrow", LAST, 4)) is None


def test_too_few_calls_and_differences_nobody_feels_are_no_regression() -> None:
    assert judged(drawn("narrow", BEFORE + LAST - 1, 1, 1.0)) is None
    assert judged([1.0] * BEFORE + [4.0] * LAST) is None, "3 ms"
    assert judged([2.0] * BEFORE + [8.0] * LAST) is not None


def test_each_step_is_judged_by_itself() -> None:
    calls = [Timed("ana", "p", "a", "t", ms) for ms in drawn("narrow", BEFORE + LAST, 1)]
    calls += [Timed("ana", "p", "b", "t", ms) for ms in drawn("narrow", BEFORE, 2) + drawn("narrow", LAST, 3, 3.0)]
    ((owner, slow),) = regressions(calls)
    assert (owner, slow.plan, slow.step, slow.tool) == ("ana", "p", "b", "t")
    assert slow.ratio == pytest.approx(3, rel=0.1)
