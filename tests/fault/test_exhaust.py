"""Every order of writes in the smallest races; a broken engine is found in one of them."""

import pytest

from everstep.domain.plan import Effect
from tests.fault.exhaust import RACES, order, orders

DEPTH, CRASHES = 4, 1
"""`make torture` goes deeper."""


@pytest.mark.req("C.2")
@pytest.mark.parametrize("race", RACES)
def test_no_order_breaks_an_invariant(race: str) -> None:
    found = {tuple(chosen): wrong for chosen, wrong in orders(race, DEPTH, CRASHES)}
    assert {chosen: wrong for chosen, wrong in found.items() if wrong} == {}
    assert len(found) > 1


def test_an_order_can_be_told_again() -> None:
    given = [0, 0, 1, 2]
    assert order("takeover", given, DEPTH, CRASHES)[2] == order("takeover", given, DEPTH, CRASHES)[2]


def test_a_broken_engine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If `once` calls were repeated like harmless ones, one of the first orders with a crash would show it."""
    monkeypatch.setattr(Effect, "repeatable", property(lambda _: True))
    assert any("C10" in what for _, wrong in orders("claim", 8, 1) for what in wrong)
