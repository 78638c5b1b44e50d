"""`everstep logs -f`: the backlog, then every line as it is written by another process, until the task ends."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.commands import Project, project

TOOLS = """\
import asyncio
from pathlib import Path
from everstep import Ctx, tool

@tool("my.talk", effect="pure")
async def talk(ctx: Ctx) -> int:
    ctx.log.info("begun")
    while not Path("go").exists():
        await asyncio.sleep(0.05)
    ctx.log.warning("hostile \\x1b[31m\\nline", n=1)
    return 1
"""
PLAN = "name: talk\nsteps:\n  - {id: one, tool: my.talk}\n  - {id: two, tool: my.talk}\n"


@pytest.fixture
def here() -> Iterator[Project]:
    with TemporaryDirectory(prefix="es-") as folder:  # sockets need short paths
        made = project(Path(folder))
        made.write("talking.py", TOOLS)
        made.write("everstep.toml", 'tools = ["talking"]\n')
        made.write("talk.plan.yaml", PLAN)
        yield made


def wait_for(here: Project, lines: int) -> None:
    """Until so many lines are logged."""
    until = time.monotonic() + 30
    while (said := here.run("logs", "@last", "--json")).code != 0 or len(said.out.splitlines()) < lines:
        assert time.monotonic() < until


def test_lines_come_as_they_are_written_until_the_task_ends(here: Project) -> None:
    running = here.start("run", "talk.plan.yaml", "--json")
    wait_for(here, 1)
    following = here.start("logs", "@last", "-f", "--json")
    assert following.stdout is not None
    first = json.loads(following.stdout.readline())
    assert (first["step"], first["attempt"], first["level"], first["message"]) == ("one", 1, "info", "begun")
    here.write("go", "")
    out, _ = following.communicate(timeout=60)
    running.communicate(timeout=60)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["step"], line["level"]) for line in lines[:-1]] == [
        ("one", "warning"), ("two", "info"), ("two", "warning"),
    ]  # fmt: skip
    assert (lines[-1]["type"], lines[-1]["ok"], lines[-1]["task"]["status"]) == ("result", True, "completed")
    shown = here.run("logs", "@last", "two", "--level", "warning")
    assert len(shown.out.splitlines()) <= 3
    assert "\x1b" not in shown.out, "nothing that a tool says moves the cursor"
    assert here.run("logs", "@last", "--since", "1h").out.count("begun") == 2
    assert here.run("logs", "@last", "--since", "2099-01-01T00:00:00Z").out == ""
    assert here.run("logs", "@last", "--since", "soon").code == 2
    assert here.run("logs", "--errors", "-f").code == 2
