"""The simulation: seeds hold, a seed is a story that can be told again, and a broken engine is found and made small."""

import pytest

from everstep.domain.plan import Effect
from tests.fault.simulate import options_of, script_of, shrunk, simulate

SEEDS = 6
"""`make torture` plays twenty thousand."""


@pytest.mark.req("C.2")
def test_no_seed_breaks_an_invariant() -> None:
    """Deaths, twins that write too late, failing commits, and somebody who pauses, cancels and retries meanwhile."""
    found = {seed: simulate(seed, script_of(seed), options_of(seed))[0] for seed in range(1, SEEDS + 1)}
    assert {seed: what for seed, what in found.items() if what} == {}


@pytest.mark.parametrize("seed", [156, 241])
def test_a_call_that_ends_while_the_store_is_away_is_not_made_again(seed: int) -> None:
    """These seeds found it: the end of a parallel call was forgotten, and the call taken for one never made."""
    assert simulate(seed, script_of(seed))[0] == []


@pytest.mark.parametrize("seed", [13])
def test_who_waits_for_a_turn_gets_it_however_slow_the_store_is(seed: int) -> None:
    """This seed would have found it: retries that came due while others asked for a place took it away, for ever."""
    options = options_of(seed)
    assert simulate(seed, script_of(seed), options)[0] == []


def test_a_task_that_is_claimed_again_before_its_old_walk_has_heard_of_it_is_walked_once() -> None:
    """This seed found it: the old walk took the new one's place in the loop away, and commands reached neither."""
    assert simulate(238, script_of(238), options_of(238))[0] == []


def test_a_seed_is_a_story_that_can_be_told_again() -> None:
    script, options = script_of(13), options_of(13)
    assert simulate(13, script, options)[1] == simulate(13, script, options)[1]


def test_a_broken_engine_is_found_and_its_script_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """If `once` calls were repeated like harmless ones, a few seeds would show it."""
    monkeypatch.setattr(Effect, "repeatable", property(lambda _: True))
    broken = next(seed for seed in range(4, 30) if simulate(seed, script_of(seed))[0])
    script = script_of(broken)
    small = shrunk(script, lambda shorter: bool(simulate(broken, shorter)[0]))
    assert len(small) < len(script)
    assert any("C10" in what for what in simulate(broken, small)[0])
