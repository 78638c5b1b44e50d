"""The proxy, its client and the server behind it are killed: no outcome is lost, nothing is bought twice."""

from pathlib import Path

import pytest

from tests.fault.proxy_kills import campaign

KILLS = 20
"""`make torture` makes 200."""


@pytest.mark.long
@pytest.mark.req("X.5")
def test_kills_of_proxy_client_and_server(tmp_path: Path) -> None:
    wrong, seen = campaign(tmp_path, KILLS, seed=1)
    assert wrong == []
    assert seen["kills"] == KILLS
    assert seen["told"] > KILLS
