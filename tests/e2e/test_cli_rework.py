"""retry, fork, patch, undo and cancel at the command line: screens, JSON, exit codes."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.e2e.commands import Project

TOOLS = '''
from pathlib import Path
from everstep import Misconfigured, tool

@tool("my.once")
def once(name: str = "x") -> dict:
    """Leave a line behind."""
    with Path("log.txt").open("a") as file:
        file.write(f"+{name}\\n")
    return {"name": name}

@tool("my.back")
def back(name: str) -> dict:
    """Take a line back."""
    with Path("log.txt").open("a") as file:
        file.write(f"-{name}\\n")
    return {}

@tool.pure("my.flaky")
def flaky(value: int = 0) -> dict:
    """Fails while there is no file `ok`."""
    if not Path("ok").exists():
        raise Misconfigured("there is no file ok")
    return {"value": value}
'''
PLAN = """
name: go
inputs: {n: {type: integer, default: 1}}
steps:
- {id: a, tool: my.once, with: {name: a}, undo: {tool: my.back, with: {name: "${a.name}"}}}
- {id: b, tool: my.flaky, with: {value: "${inputs.n}"}}
- {id: c, tool: my.once, with: {name: c}}
outputs: {value: "${b.value}"}
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("everstep.toml", 'tools = ["mytools"]\n')
    project.write("mytools.py", TOOLS)
    project.write("go.plan.yaml", PLAN)
    return project


def log(here: Project) -> list[str]:
    file = here.path / "log.txt"
    return file.read_text().splitlines() if file.exists() else []


def test_a_failed_task_is_retried_from_where_it_failed(here: Project) -> None:
    assert here.run("run", "go").code == 1
    told = here.run("retry", "@last", "--dry-run")
    assert (told.code, told.out) == (0, " kept    a\n again   b and c\n")
    (here.path / "ok").touch()
    done = here.run("retry", "@last", "--set", "b.value=7")
    assert (done.code, done.out) == (0, "value: 7\n"), done.err
    assert log(here) == ["+a", "+c"]
    task = here.run("show", "@last", "--json").json
    assert (task["generation"], task["status"]) == (2, "completed")


def test_effects_are_repeated_only_if_confirmed(here: Project) -> None:
    (here.path / "ok").touch()
    assert here.run("run", "go").code == 0
    asked = here.run("retry", "@last", "--from", "a")
    assert asked.code == 2
    assert "--yes" in asked.err
    assert log(here) == ["+a", "+c"]
    shown = here.run("retry", "@last", "--from", "a", "--dry-run", "--json").json
    assert [one["step"] for one in shown["repeats"]] == ["a", "c"]
    assert here.run("retry", "@last", "--from", "a", "--yes").code == 0
    assert log(here) == ["+a", "+c", "+a", "+c"]
    assert here.run("retry", "@last").code == 3, "no step failed"
    assert here.run("retry", "@last", "--from", "bb").code == 3


def test_a_fork_goes_its_own_way(here: Project) -> None:
    (here.path / "ok").touch()
    assert here.run("run", "go").code == 0
    first = here.run("show", "@last", "--json").json
    done = here.run("fork", first["id"], "--from", "b", "-i", "n=5")
    assert (done.code, done.out) == (0, "value: 5\n"), done.err
    second = here.run("show", "@last", "--json").json
    assert second["parent"] == {"task": first["id"], "step": "b", "link": "fork_of"}
    assert log(here) == ["+a", "+c", "+c"]
    assert here.run("fork", first["id"]).code == 2, "--from is needed"


def test_a_patch_changes_what_is_left(here: Project) -> None:
    assert here.run("run", "go", "--until", "a").code == 8
    patch = here.write("p.json", json.dumps([{"op": "set", "id": "b", "with": {"value": 9}}]))
    dry = here.run("patch", "@last", str(patch), "--dry-run")
    assert (dry.code, dry.out) == (0, " set     b  my.flaky\n")
    assert here.run("patch", "@last", str(patch)).code == 0
    stale = here.run("patch", "@last", "-", text=json.dumps({"base_revision": 1, "ops": [{"op": "skip", "id": "c"}]}))
    assert stale.code == 9
    late = here.run("patch", "@last", "-", text=json.dumps([{"op": "skip", "id": "a"}]))
    assert late.code == 9
    bad = here.run("patch", "@last", "-", text=json.dumps([{"op": "append", "step": {"id": "x", "tool": "no.tool"}}]))
    assert bad.code == 3
    assert "no tool 'no.tool'" in bad.err, "what is wrong with it stands there"
    assert here.run("patch", "@last", "-", text="no json").code == 3
    (here.path / "ok").touch()
    done = here.run("resume", "@last")
    assert (done.code, done.out) == (0, "value: 9\n"), done.err
    ended = here.run("patch", "@last", "-", text=json.dumps([{"op": "skip", "id": "c"}]))
    assert ended.code == 9


def test_an_undo_takes_back_once(here: Project) -> None:
    (here.path / "ok").touch()
    assert here.run("run", "go").code == 0
    first = here.run("show", "@last", "--json").json["id"]
    dry = here.run("undo", first, "--dry-run")
    assert dry.code == 0
    assert " undo    a\n" in dry.out
    assert " stays   c  my.once has no undo" in dry.out
    assert here.run("undo", first).code == 0
    assert log(here) == ["+a", "+c", "-a"]
    again = here.run("undo", first)
    assert again.code == 9
    assert "has taken it back" in again.err


def test_several_tasks_are_cancelled_at_once(here: Project) -> None:
    ids = []
    for _ in range(2):
        assert here.run("run", "go", "--new", "--until", "a").code == 8
        ids.append(here.run("show", "@last", "--json").json["id"])
    done = here.run("cancel", *ids, "--json")
    assert done.code == 0
    assert [task["status"] for task in done.json["items"]] == ["cancelled", "cancelled"]


def test_a_child_is_carried_with_its_parent(here: Project) -> None:
    here.write(
        "parent.plan.yaml",
        "name: parent\nsteps:\n- {id: sub, tool: plan.run, with: {plan: go, inputs: {n: 3}}}\n"
        'outputs: {value: "${sub.value}"}\n',
    )
    (here.path / "ok").touch()
    done = here.run("run", "parent")
    assert (done.code, done.out) == (0, "value: 3\n"), done.err


def tree(folder: Path) -> dict[str, tuple[int, int, str]]:
    """All that a user sees there: names, modes, and of files times and contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status, file = path.lstat(), path.is_file()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if file else ""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns if file else 0, digest)
    return found


@pytest.mark.req("WF-26")
@pytest.mark.parametrize("ends", ["failed", "cancelled"])
def test_a_task_that_did_not_come_to_its_end_is_taken_back_as_a_whole(here: Project, ends: str) -> None:
    for name, text in (("a.txt", "one two"), ("b.txt", "bee"), ("old/c.txt", "sea"), ("old/d.txt", "dee")):
        here.write(f"site/{name}", text)
    (here.path / "site/b.txt").chmod(0o640)
    last = "tool: file.read, with: {path: nowhere}" if ends == "failed" else "tool: ask, with: {question: 'go on?'}"
    here.write(
        "change.plan.yaml",
        f"""
name: change
steps:
- {{id: write, tool: file.write, with: {{path: site/new/deep.txt, text: new}}}}
- {{id: edit, tool: file.edit, with: {{path: site/a.txt, edits: [{{find: two, replace: three}}]}}}}
- {{id: append, tool: file.append, with: {{path: site/b.txt, text: "!"}}}}
- {{id: move, tool: file.move, with: {{from: site/old/c.txt, to: site/c.txt}}}}
- {{id: copy, tool: file.copy, with: {{from: site/a.txt, to: site/copy.txt}}}}
- {{id: mkdir, tool: file.mkdir, with: {{path: site/empty}}}}
- {{id: delete, tool: file.delete, with: {{path: site/old, recursive: true}}}}
- {{id: last, {last}}}
""",
    )
    before = tree(here.path / "site")
    assert here.run("run", "change", "--json").code != 0
    if ends == "cancelled":
        assert here.run("cancel", "@last").code == 0
    shown = here.run("show", "@last", "--json").json
    assert shown["status"] == ends
    assert tree(here.path / "site") != before
    assert here.run("undo", shown["id"]).code == 0
    assert tree(here.path / "site") == before
