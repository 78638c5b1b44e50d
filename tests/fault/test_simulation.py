"""The simulation: seeds hold, a seed is a story that can be told again, and a broken engine is found and made small."""

import pytest

from everstep.domain.plan import Effect
from tests.fault.simulate import script_of, shrunk, simulate

SEEDS = 8
"""`make torture` plays two thousand."""


@pytest.mark.req("C.2")
def test_no_seed_breaks_an_invariant() -> None:
    """Deaths, twins that write too late, failing commits, and somebody who pauses, cancels and retries meanwhile."""
    assert [f"seed {seed}: {what}" for seed in range(1, SEEDS + 1) for what in simulate(seed, script_of(seed))[0]] == []


@pytest.mark.parametrize("seed", [156, 241])
def test_a_call_that_ends_while_the_store_is_away_is_not_made_again(seed: int) -> None:
    """These seeds found it: the end of a parallel call was forgotten, and the call taken for one never made."""
    assert simulate(seed, script_of(seed))[0] == []


def test_a_seed_is_a_story_that_can_be_told_again() -> None:
    script = script_of(7)
    assert simulate(7, script)[1] == simulate(7, script)[1]


def test_a_broken_engine_is_found_and_its_script_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """If `once` calls were repeated like harmless ones, a few seeds would show it."""
    monkeypatch.setattr(Effect, "repeatable", property(lambda _: True))
    broken = next(seed for seed in range(4, 30) if simulate(seed, script_of(seed))[0])
    script = script_of(broken)
    small = shrunk(script, lambda shorter: bool(simulate(broken, shorter)[0]))
    assert len(small) < len(script)
    assert any("C10" in what for what in simulate(broken, small)[0])
