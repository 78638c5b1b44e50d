"""GCRA: never more than the limit in any period, whoever asks and whenever."""

import random

import pytest

from everstep.domain.ids import Instant
from everstep.domain.rate import Rate, parse_rate, reserve


@pytest.mark.parametrize(("text", "limit", "period"), [("10/1s", 10, 1000), ("30/1m", 30, 60_000), ("1/500ms", 1, 500)])
def test_rates_as_they_are_written(text: str, limit: int, period: int) -> None:
    assert parse_rate(text) == Rate(limit=limit, period_ms=period)


@pytest.mark.parametrize("text", ["", "10", "0/1s", "-1/1s", "10/", "10/0s", "10/x", "x/1s", "1e3/1s"])
def test_what_is_no_rate(text: str) -> None:
    assert parse_rate(text) is None


@pytest.mark.parametrize("text", ["10/1s", "3/1s", "7/2s", "1000/1s"])
def test_no_period_ever_has_more_calls_than_the_limit(text: str) -> None:
    rate, draw = parse_rate(text), random.Random(text)
    assert rate is not None
    arrival, now, calls = None, 1_800_000_000_000, []
    for _ in range(500):
        now += draw.choice((0, 0, 0, 1, 50, 900))
        at, arrival = reserve(rate, arrival, Instant(now))
        assert at >= now
        calls.append(at)
    assert calls == sorted(calls), "places are given in order"
    for first, later in zip(calls, calls[rate.limit :], strict=False):
        assert later - first >= rate.period_ms - 1


def test_an_idle_rate_gives_no_credit_and_a_burst_is_allowed_where_it_is_said() -> None:
    even, burst = Rate(limit=10, period_ms=1000), Rate(limit=10, period_ms=1000, burst=3)
    for rate, expected in ((even, [0, 100, 200, 300]), (burst, [0, 0, 0, 100])):
        arrival, given = None, []
        for _ in range(4):
            at, arrival = reserve(rate, arrival, Instant(1_000_000))
            given.append(at - 1_000_000)
        assert given == expected
