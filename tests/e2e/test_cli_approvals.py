"""Approvals through the command line: shown, allowed, edited, refused, left waiting; each with its exit code."""

import json
import sqlite3
import time
from pathlib import Path

import pytest

from tests.e2e.commands import Project, project

ASKS = """\
name: asks
inputs: {to: {type: string, default: ana}}
steps:
  - {id: words, tool: my.say, with: {text: "Dear ${inputs.to}"}}
  - id: note
    tool: file.write
    with: {path: "out-${inputs.to}.txt", text: "${words.text}"}
    approve: {title: "Write to ${inputs.to}?", edit: [text]}
outputs: {path: "${note.path}"}
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.write("asks.plan.yaml", ASKS)
    return made


def waiting(here: Project, to: str = "ana") -> str:
    done = here.run("run", "asks", "-i", f"to={to}")
    assert done.code == 8, done.err
    assert not (here.path / f"out-{to}.txt").exists()
    pauses = here.run("inbox", "--json").json["items"]
    return str(next(one["id"] for one in pauses if to in one["title"]))


@pytest.mark.req("W.2")
def test_run_waits_and_prints_the_commands_and_approve_goes_on(here: Project) -> None:
    done = here.run("run", "asks")
    assert (done.code, done.out) == (8, "")
    assert "Waits for you: Write to ana?" in done.err
    assert "everstep approve p_" in done.err
    pause = here.run("inbox", "--json").json["items"][0]
    page = here.run("inbox", pause["id"])
    assert 'text = "Dear ana"' in page.out
    approved = here.run("approve", pause["id"], "--note", "fine")
    assert (approved.code, approved.out) == (0, "path: out-ana.txt\n")
    assert (here.path / "out-ana.txt").read_text() == "Dear ana"
    late = here.run("approve", pause["id"])
    assert (late.code, "has answered already" in late.err) == (9, True)
    closed = here.run("inbox", pause["id"], "--json").json
    assert (closed["status"], closed["grant"], closed["answered"]["note"]) == ("answered", "consumed", "fine")


def test_an_edit_changes_only_what_may_be_changed(here: Project) -> None:
    pause = waiting(here)
    wrong = here.run("approve", pause, "--set", "path=evil.txt")
    assert (wrong.code, "path may not be changed" in wrong.err) == (3, True)
    done = here.run("approve", pause, "--set", "text=Hello")
    assert done.code == 0
    assert (here.path / "out-ana.txt").read_text() == "Hello"


def test_an_editor_may_change_it(here: Project) -> None:
    pause = waiting(here)
    editor = here.write("editor.sh", "#!/bin/sh\nsed -i 's/Dear/Beloved/' \"$1\"\n")
    editor.chmod(0o700)
    done = here.run("approve", pause, "--edit", EDITOR=str(editor))
    assert done.code == 0, done.err
    assert (here.path / "out-ana.txt").read_text() == "Beloved ana"


def test_a_rejection_fails_the_task_and_needs_a_reason(here: Project) -> None:
    pause = waiting(here)
    assert here.run("reject", pause).code == 2
    done = here.run("reject", pause, "--note", "not now")
    assert (done.code, "not now" in done.err) == (1, True)
    assert not (here.path / "out-ana.txt").exists()


def test_several_at_once_each_with_its_own_result(here: Project) -> None:
    first, second = waiting(here, "ana"), waiting(here, "ben")
    done = here.run("approve", first, "p_" + "0" * 26, second, "--json")
    items = done.json["items"]
    assert done.code == 5
    assert [item.get("status") for item in items] == ["answered", None, "answered"]
    assert items[1]["error"]["code"] == "not_found"


def test_yes_approves_and_says_so(here: Project) -> None:
    done = here.run("run", "asks", "--yes")
    assert (done.code, done.out) == (0, "path: out-ana.txt\n")
    events = here.run("show", "@last", "--events").lines
    (answered,) = [event for event in events if event["type"] == "pause.answered"]
    assert answered["data"]["note"] == "--yes"


def test_the_inbox_can_be_watched(here: Project) -> None:
    pause = waiting(here)
    with here.start("inbox", "--watch", "--json") as watching:
        assert watching.stdout is not None
        assert f'"type":"opened","pause":{{"id":"{pause}"' in watching.stdout.readline()
        here.run("approve", pause, "--detach")
        assert f'"type":"closed","pause":{{"id":"{pause}"' in watching.stdout.readline()
        watching.terminate()


def test_the_inbox_is_watched_from_before_the_first_task_and_over_engines(here: Project) -> None:
    with here.start("inbox", "--watch", "--json") as watching:
        assert watching.stdout is not None
        while not (here.path / ".everstep/control.sock").exists():
            time.sleep(0.01)
        here.run("run", "asks", "--detach")
        opened = json.loads(watching.stdout.readline())
        assert (opened["type"], opened["pause"]["reason"]["type"]) == ("opened", "approvalRequired")
        assert here.run("cancel", opened["pause"]["task"]).code == 0
        closed = json.loads(watching.stdout.readline())
        assert (closed["type"], closed["pause"]["status"]) == ("closed", "withdrawn")
        watching.terminate()


@pytest.mark.req("WF-24", "Dep.3")
def test_the_audit_names_who_approved_what(here: Project) -> None:
    pause = waiting(here)
    here.run("approve", pause, "--set", "text=Hello", "--note", "kinder")
    items = here.run("db", "audit", "@last", "--json").json["items"]
    (answered,) = [item for item in items if item["type"] == "pause.answered"]
    assert (answered["actor"]["kind"], answered["from"], answered["step"]) == ("human", "paused", "note")
    assert answered["why"] == "edit; changed text; kinder"
    assert any(item["why"] == f"approved by {pause}" for item in items)


@pytest.mark.req("Dep.3")
def test_db_check_names_an_edited_line(here: Project) -> None:
    here.run("run", "asks", "--yes")
    sound = here.run("db", "check", "--json")
    assert (sound.code, sound.json["ok"], sound.json["audit_head"][:7]) == (0, True, "sha256:")
    with sqlite3.connect(here.path / ".everstep" / "everstep.db") as db:
        db.execute("UPDATE events SET body = replace(body, '--yes', 'never') WHERE type = 'pause.answered'")
        (seq,) = db.execute("SELECT seq FROM events WHERE type = 'pause.answered'").fetchone()
    broken = here.run("db", "check", "--json")
    assert (broken.code, [one["seq"] for one in broken.json["problems"]]) == (1, [seq])
