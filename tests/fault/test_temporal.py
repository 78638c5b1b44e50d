"""Tasks that Temporal carries: workers are killed in the middle of a step, the server is killed and starts again."""

from pathlib import Path

import pytest

from tests.fault.temporal_campaign import counted, trial
from tests.postgres import schema
from tests.temporal import dev_server


@pytest.mark.long
@pytest.mark.req("X.3")
async def test_two_workers_and_the_server_are_killed_and_come_back(tmp_path: Path) -> None:
    """The small form of the campaign: `once` calls are not repeated, and every task ends."""
    with dev_server() as server, schema() as url:
        fleet = await trial(tmp_path, server, url, kills=3)
        assert fleet.judge() == []
        assert counted(fleet)["attempt.abandoned"], "a call was cut off"
