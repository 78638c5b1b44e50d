"""`everstep torture`: a plan of one's own, killed at the boundaries of its way."""

import json
from pathlib import Path

import pytest

from everstep.demos.scenario import SCENARIOS
from tests.e2e.commands import Project
from tests.fault.sieges import besiege

TOOLS = """
from pathlib import Path
from everstep import Secret, tool

@tool("notes.put", effect="idempotent")
def put(text: str) -> dict[str, str]:
    Path("put.txt").write_text(text)
    return {"text": text}

@tool("notes.add", effect="idempotent")
def add(text: str) -> dict[str, int]:
    with open("notes.txt", "a") as notes:
        notes.write(text + "\\n")
    return {"bytes": Path("notes.txt").stat().st_size}

@tool("notes.send")
def send(text: str, token: Secret) -> dict[str, str]:
    return {"sent": text}
"""
PLAN = """
name: notes
steps:
  - {id: put, tool: notes.put, with: {text: hello}}
  - {id: add, tool: notes.add, with: {text: "${put.text}"}}
  - {id: send, tool: notes.send, with: {text: bye, token: "${secrets.word}"}, approve: Send it?}
outputs: {bytes: "${add.bytes}"}
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.environment["EVERSTEP_SECRET_WORD"] = "a-word-nobody-says"
    project.write("notes.py", TOOLS)
    project.write("everstep.toml", 'tools = ["notes"]')
    project.write("notes.plan.yaml", PLAN)
    return project


@pytest.mark.req("X.1")
def test_a_tool_that_lies_about_its_effect_is_named(here: Project) -> None:
    """`notes.add` says that it may be called again; a crash after its effect shows what that comes to."""
    done = here.run(
        "torture", "notes.plan.yaml", "--real", "--yes", "--points", "call.execute.after:2", "--kills", "0",
    )  # fmt: skip
    assert done.code == 1
    assert (
        "notes.add (step add) says it is `idempotent`, but calling it again changed notes.txt, the outputs" in done.out
    )
    assert "again: everstep torture notes.plan.yaml --real --points call.execute.after:2" in done.out
    assert not (here.path / "notes.txt").exists(), "the user's own folder is not touched"
    assert not (here.path / ".everstep" / "everstep.db").exists()


@pytest.mark.req("X.1")
def test_where_a_crash_would_ask_is_told_and_the_report_is_written(here: Project) -> None:
    """With stand-ins, for tools and secrets: nothing is called, and no value of a secret is found anywhere."""
    words = (
        "torture",
        "notes.plan.yaml",
        "--points",
        "call.execute.after:3",
        "--kills",
        "1",
        "--report",
        "report.json",
    )
    done = here.run(*words, "--json")
    assert done.code == 0, done.out
    told = done.json
    assert (told["points"] > 20, told["kills"] >= 1, told["violations"]) == (True, True, [])
    assert [(one["step"], one["tool"], one["effect"]) for one in told["questions"]] == [("send", "notes.send", "once")]
    written = json.loads((here.path / "report.json").read_text())
    assert [trial["point"] for trial in written["trials"]] == ["call.execute.after:3", "random 1"]


def test_real_calls_that_cannot_be_taken_back_are_confirmed_first(here: Project) -> None:
    done = here.run("torture", "notes.plan.yaml", "--real")
    assert done.code != 0
    assert "this really calls notes.send" in done.err


def test_a_plan_that_does_not_end_by_itself_is_refused(here: Project) -> None:
    here.write("answers.json", json.dumps({"add": {"bytes": "many"}}))
    done = here.run("torture", "notes.plan.yaml", "--answers", "answers.json", "--kills", "0")
    assert done.code != 0
    assert "does not even come to its end undisturbed" in done.err
    assert "must be an integer" in done.err


@pytest.mark.req("X.1")
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_demo_plans_hold(tmp_path: Path, name: str) -> None:
    """A few boundaries of each; `make torture` takes all of them."""
    told = besiege(name, tmp_path, "--points", "4", "--kills", "0")
    assert (told["violations"], told["exit_code"]) == ([], 0)
    assert told["kills"] >= 4
