"""What is left, played through: order, places, retries, what is under way; and what is right as often as it says."""

import random

import pytest

from everstep.domain.estimate import DRAWS, Calls, Prior, Span, after, exactly, pace_of, span_of
from everstep.domain.ids import StepPath
from everstep.domain.simulate import Left, outlook
from everstep.domain.sketch import sketch_of

A, B, C = (StepPath(name) for name in "abc")


def left(path: StepPath, span: Span, *waits_for: StepPath, calls: int = 1, at_once: int = 1) -> Left:
    return Left(path=path, span=span, kind="tool", waits_for=waits_for, calls=calls, at_once=at_once)


def seen(*times_s: float) -> Span:
    span = span_of(None, Calls(succeeded=sketch_of([1000 * time for time in times_s])))
    assert span is not None
    return span


def middle(steps: list[Left], places: int) -> float:
    found = outlook(steps, places).task.p50
    assert found is not None
    return found


def test_order_and_places() -> None:
    two, three = exactly(2), exactly(3)
    assert middle([left(A, two), left(B, three)], 1) == 5
    assert middle([left(A, two), left(B, three)], 2) == 3
    assert middle([left(A, two), left(B, three, A), left(C, three)], 3) == 5
    assert middle([left(A, two), left(B, three), left(C, three)], 2) == 5
    assert middle([left(A, two, calls=10, at_once=2)], 1) == 10
    assert middle([left(A, two, calls=100, at_once=4)], 1) == pytest.approx(50, rel=0.03)
    assert middle([], 1) == 0


def test_what_is_under_way_counts_with_what_is_longer() -> None:
    span = seen(*[1.0] * 50, *[10.0] * 50)
    assert after(span, 0.0).median_s == pytest.approx(span.median_s, rel=0.2)
    assert after(span, 2.0).median_s == pytest.approx(8, rel=0.1), "it is one of the long ones"
    overrun = after(span, 60.0)
    assert 0 < overrun.times_s[DRAWS // 10] < overrun.median_s < overrun.times_s[9 * DRAWS // 10]


def test_few_calls_are_doubted_and_a_guess_gives_way() -> None:
    few, many = seen(2.0), seen(*[2.0] * 100)
    assert few.times_s[DRAWS // 10] < many.times_s[DRAWS // 10]
    prior = Prior(p10_s=5, p50_s=10, p90_s=20)
    bases = []
    for n in (0, 5, 20):
        span = span_of(prior, Calls(succeeded=sketch_of([1000.0] * n)))
        assert span is not None
        bases.append((span.basis, round(span.median_s)))
    assert bases[0] == ("prior", 10)
    assert bases[1][0] == "mixed"
    assert bases[2] == ("history", 1)
    assert span_of(None, Calls()) is None


def test_a_slow_task_stretches_the_guesses() -> None:
    assert pace_of([]) == 1
    assert 1 < pace_of([(3.0, 1.0)]) < pace_of([(3.0, 1.0)] * 3) < 3


@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("n", [20, 100])
def test_the_interval_covers_what_it_says(steps: int, n: int) -> None:
    """Lognormal times; each trial has a history of its own, so that bad luck with one does not decide."""
    draw = random.Random(7)
    covered = 0
    for _ in range(300):
        span = seen(*(draw.lognormvariate(0, 0.7) for _ in range(n)))
        found = outlook([left(StepPath(f"s{at}"), span) for at in range(steps)], 1).task
        assert found.p10 is not None
        assert found.p90 is not None
        covered += found.p10 <= sum(draw.lognormvariate(0, 0.7) for _ in range(steps)) <= found.p90
    assert 0.72 <= covered / 300 <= 0.88
