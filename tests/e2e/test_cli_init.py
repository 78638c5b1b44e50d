"""`everstep init`: every folder it makes works as it is, offline, and passes its own test."""

import subprocess
import sys
from pathlib import Path

import pytest

from everstep.doors.cli.init_command import TEMPLATES
from tests.e2e.commands import Project

QUESTION = "question=What does the journal say after a crash?"


def made(folder: Path, template: str) -> Project:
    done = Project(folder).run("init", "mine", "-t", template)
    assert done.code == 0
    assert done.out.split() == [f"mine/{name}" for name in TEMPLATES[template].files]
    assert f"cd mine && {TEMPLATES[template].first}" in done.err
    return Project(folder / "mine")


@pytest.mark.parametrize("template", TEMPLATES)
def test_its_own_test_passes_and_its_plan_is_good(tmp_path: Path, template: str) -> None:
    here = made(tmp_path, template)
    assert here.run("plan", "check", template, "--strict").code == 0
    (listed,) = here.run("plan", "ls", "--json").json["items"]
    assert (listed["name"], listed["problems"]) == (template, [])
    assert here.run("doctor").code == 0
    own = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(here.path)]
    tested = subprocess.run(
        own, cwd=here.path, env=here.environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_agent_asks_before_it_keeps_its_answer_and_goes_on_with_what_it_knows(tmp_path: Path) -> None:
    here = made(tmp_path, "agent")
    assert "a function; its calls are checked as it makes them" in here.run("plan", "check", "agent").out
    asked = here.run("run", "agent", "-i", QUESTION)
    assert (asked.code, "Keep this answer?" in asked.err) == (8, True)
    done = here.run("run", "agent", "-i", QUESTION, "--yes")
    assert (done.code, "notes: 2" in done.out) == (0, True)
    assert "5 steps of 6 restored from the journal" in done.err
    assert (here.path / "out" / "answer.txt").read_text().startswith("After a crash a task goes on")


def test_the_runbook_asks_and_writes_down_how_it_ended(tmp_path: Path) -> None:
    here = made(tmp_path, "runbook")
    assert here.run("run", "runbook").code == 8
    (pause,) = here.run("inbox", "--json").json["items"]
    assert here.run("reject", pause["id"], "--note", "not now", "--wait").code == 1
    assert (here.path / "runbook.log").read_text() == "web: restart failed, up false\n"
    assert "restarted: true" in here.run("run", "runbook", "--yes").out
    again = here.run("run", "runbook", "--new", "--json")
    assert again.lines[-1]["task"]["outputs"] == {"up": True, "restarted": False}
    assert here.run("run", "runbook", "-i", "service=../etc").code == 3


def test_files_that_are_there_stay(tmp_path: Path) -> None:
    here = made(tmp_path, "agent")
    (here.path / "agent.py").write_text("mine")
    refused = Project(tmp_path).run("init", "mine", "-t", "agent")
    assert (refused.code, "everstep init mine -t agent --force" in refused.err) == (9, True)
    assert (here.path / "agent.py").read_text() == "mine"
    assert Project(tmp_path).run("init", "mine", "-t", "nothing").code == 2
