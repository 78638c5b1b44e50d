"""The simulation: seeds hold, a seed is a story that can be told again, and a broken engine is found and made small."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from everstep.domain.plan import Effect
from tests.fault.calm import nowhere
from tests.fault.simulate import QUICK, STORES, Options, options_of, play, script_of, shrunk, simulate

pytestmark = pytest.mark.usefixtures("calmly")
SEEDS, AT_ONCE, LOOKED_AT = 1_000, 100, 90
"""`make torture` plays as many of twenty thousand as it has time for."""


@pytest.fixture
def calmly() -> Iterator[None]:
    """Every seed looks for what nobody holds any more: not among all that this suite has loaded."""
    with nowhere():
        yield


@pytest.mark.req("C.2")
@pytest.mark.parametrize("first", range(1, SEEDS, AT_ONCE))
def test_no_seed_breaks_an_invariant(first: int) -> None:
    """Deaths, twins that write too late, failing commits, and somebody who pauses, cancels and retries meanwhile."""
    assert play(first, AT_ONCE)["violations"] == []


@pytest.mark.parametrize("seed", [156, 241])
def test_a_call_that_ends_while_the_store_is_away_is_not_made_again(seed: int) -> None:
    """These seeds found it: the end of a parallel call was forgotten, and the call taken for one never made."""
    assert simulate(seed, script_of(seed))[0] == []


def test_who_holds_the_one_permit_of_a_breaker_no_more_is_not_waited_for() -> None:
    """This seed found it: an older answer came last, and the engine believed its own probe under way."""
    assert simulate(10151, script_of(10151), options_of(10151))[0] == []


@pytest.mark.parametrize("seed", [13])
def test_who_waits_for_a_turn_gets_it_however_slow_the_store_is(seed: int) -> None:
    """This seed would have found it: retries that came due while others asked for a place took it away, for ever."""
    assert simulate(seed, script_of(seed), as_it_was(seed))[0] == []


def test_a_task_that_is_claimed_again_before_its_old_walk_has_heard_of_it_is_walked_once() -> None:
    """This seed found it: the old walk took the new one's place in the loop away, and commands reached neither."""
    assert simulate(238, script_of(238), as_it_was(238))[0] == []


@pytest.mark.parametrize("seed", [4703, 4803, 5481])
def test_what_was_written_without_an_answer_is_looked_up_of_breakers_too(seed: int) -> None:
    """These seeds found it: nobody heard of the commit that closed a breaker, and whoever waited for it stood still."""
    assert simulate(seed, script_of(seed), replace(as_it_was(seed), store="sql"))[0] == []


def test_a_call_may_be_cut_off_for_a_pause_that_became_a_cancel_meanwhile() -> None:
    """This seed found it: with a slow store, the checker looked at how the task stood by then."""
    assert simulate(9839, script_of(9839), as_it_was(9839))[0] == []


def as_it_was(seed: int) -> Options:
    """When these seeds found something, there was one store, and nobody was frozen."""
    return replace(options_of(seed), store="dictionaries", freezing=False)


@pytest.mark.parametrize("store", STORES)
def test_a_seed_is_a_story_that_can_be_told_again(store: str) -> None:
    script, options = script_of(13), replace(options_of(13), store=store)
    assert simulate(13, script, options)[1] == simulate(13, script, options)[1]


def test_what_must_be_seen_is_seen() -> None:
    """A few seeds are enough; `proof.toml` says what each of them stands for."""
    seen = play(1, LOOKED_AT)["seen"]
    names = {"late_write", "lost_sweep", "paused_intent", "void_grant", "uncertain", "commit_unheard", "commit_refused"}
    assert {name for name in names | {"frozen"} if not seen[name]} == set()


def test_who_was_frozen_wakes_and_does_what_it_was_about_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen only if it is not expected: otherwise nothing of an engine would go on after a pause of its process."""
    script, options = script_of(143), options_of(143)
    story = simulate(143, script, options)
    assert (story.wrong, story.seen["frozen"] > 0) == ([], True)
    monkeypatch.setattr("tests.fault.simulate.CALLS_MAX", 0)
    assert any("acted" in what for what in simulate(143, script, options).wrong)


def test_the_store_is_drawn_too() -> None:
    assert {options_of(seed).store for seed in range(20)} == {*STORES}


@pytest.mark.parametrize("store", STORES)
def test_a_broken_engine_is_found_and_its_script_made_small(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `once` calls were repeated like harmless ones, a few seeds would show it."""
    options = replace(QUICK, store=store)
    monkeypatch.setattr(Effect, "repeatable", property(lambda _: True))
    broken = next(seed for seed in range(4, 30) if simulate(seed, script_of(seed), options)[0])
    script = script_of(broken)
    small = shrunk(script, lambda shorter: bool(simulate(broken, shorter, options)[0]))
    assert len(small) < len(script)
    assert any("C10" in what for what in simulate(broken, small, options)[0])
