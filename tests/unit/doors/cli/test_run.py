"""`everstep run` takes an unfinished task up: it may have ended by the time it is told to go on."""

from pathlib import Path

from everstep.doors.cli.engines import open_own
from everstep.doors.cli.run_command import lift
from everstep.doors.cli.talk import ask, path_of
from everstep.settings import load_settings

PLAN = {"name": "short", "steps": [{"id": "say", "tool": "text.join", "with": {"texts": ["a"]}}]}


async def test_a_task_that_ends_while_it_is_taken_up_is_followed_to_its_end(tmp_path: Path) -> None:
    own = await open_own(load_settings({"store": str(tmp_path / "everstep.db")}, cwd=tmp_path), (), carries=True)
    try:
        found = await ask(own, "POST", path_of("tasks"), {"plan": PLAN})
        async for frame in own.stream(path_of("tasks", found["id"], "events", after=0, until="end")):
            assert frame["type"] != "bye"
        assert found["status"] == "queued"
        assert (await lift(own, found))["id"] == found["id"]
    finally:
        await own.engine.close()
