"""`everstep db prune`: old tasks go when somebody says so, and only then; their keys stay taken."""

from pathlib import Path

import pytest

from tests.e2e.commands import Project

TOOLS = """
from everstep import tool

@tool("mine.quick", effect="pure")
def quick() -> int:
    return 1
"""
PLAN = "name: p\nsteps:\n  - {id: a, tool: mine.quick}\n"


@pytest.fixture
def here(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("mine.py", TOOLS)
    project.write("everstep.toml", 'tools = ["mine"]\n[retention]\ncompleted = "1h"\n')
    project.write("p.plan.yaml", PLAN)
    return project


def test_what_is_old_goes_and_its_key_stays_taken(here: Project) -> None:
    assert here.run("run", "p.plan.yaml", "--key", "k1").code == 0
    young = here.run("db", "prune", "--yes")
    assert (young.code, young.out) == (0, "deleted nothing\n")
    old = {"EVERSTEP_RETENTION__COMPLETED": "1ms"}
    assert here.run("db", "prune", "--dry-run", "--json", **old).json["would_delete"]["completed"] == 1
    asked = here.run("db", "prune", "--no-input", **old)
    assert asked.code == 2
    assert "--yes" in asked.err
    pruned = here.run("db", "prune", "--yes", "--json", **old)
    assert pruned.json["deleted"] == {"cancelled": 0, "completed": 1, "failed": 0}
    assert here.run("ls", "--all", "--json").json["items"] == []
    again = here.run("run", "p.plan.yaml", "--key", "k1")
    assert again.code != 0
    assert "the task of this key was deleted" in again.err
    assert here.run("db", "check").code == 0
