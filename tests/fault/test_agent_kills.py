"""A durable function killed in the middle, again and again: no finished call is made twice, the result is the same."""

from pathlib import Path

import pytest

from everstep.torture.agent import ROUND
from everstep.torture.agent_kills import after, campaign

CALLS, KILLS = 40, 4
"""`make torture` makes 200 calls and 50 kills of it."""


def undisturbed(calls: int) -> dict[str, list[int]]:
    """What the function returns if nothing happens to it."""
    value, path = 1, []
    for _ in range(calls // ROUND):
        value = after(value)
        value = after(after(sum(after(value + n) for n in range(4)) % 1_000_003))
        path.append(value)
    return {"path": path}


@pytest.mark.req("X.4")
def test_an_agent_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    killed = campaign(tmp_path, CALLS, KILLS, seed=7)
    assert killed.kills == KILLS
    assert killed.result == {"status": "completed", "outputs": undisturbed(CALLS), "error": None}
    assert killed.violations == []
    assert killed.acted_twice == []
    assert killed.thought_again <= KILLS
