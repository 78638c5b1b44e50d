"""Who does not read is let go, and nobody else notices: the small form. How fast it is, `make torture` measures."""

import pytest

from bench.streams import TARGETS, missed
from tests.fault.crowds import play

CLIENTS, DEAF, SECONDS = 100, 5, 12.0
SMALL = '[events]\nqueue_bytes = "64KiB"\n'
"""So that who does not read is noticed within seconds."""
FAST = {name: 0 for name in TARGETS if name.endswith("_ms")}
"""No question for a machine on which other tests run."""


@pytest.mark.req("C.2")
def test_f60_f61_a_crowd_hears_everything_and_who_does_not_read_is_let_go() -> None:
    found = play(CLIENTS, DEAF, SECONDS, SMALL)["figures"]
    assert missed({**found, **FAST}) == []
    assert (found["slow_closed_1013"], found["events"] > CLIENTS) == (DEAF, True)


@pytest.mark.parametrize(
    "worse", [{"lost": 1}, {"doubled": 1}, {"slow_closed_1013": 4}, {"readers_closed": 1}, {"grown_mb": 129}]
)
def test_whatever_misses_is_seen(worse: dict[str, int]) -> None:
    good = dict.fromkeys(TARGETS, 0) | {"slow": 5, "slow_closed_1013": 5, "readers_closed": 0}
    assert missed(good) == []
    assert missed(good | worse)
