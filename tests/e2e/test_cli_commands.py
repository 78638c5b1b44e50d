"""The commands around a task: help, init, plan, tools, doctor, db, explain, completion."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.commands import EVERSTEP, Project, project
from tests.postgres import schema

GOOD = "name: good\nsteps:\n  - {id: a, tool: my.say, with: {text: hi}}\noutputs: {text: '${a.text}'}\n"


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.write("good.plan.yaml", GOOD)
    return made


def test_help_lists_everything_and_loads_nothing(here: Project) -> None:
    done = here.run("--help")
    assert done.code == 0
    for name in ("run", "watch", "ls", "show", "pause", "inbox", "answer", "plan", "doctor", "demo", "init"):
        assert f"\n  {name} " in done.out
    code = (
        "import sys, everstep.doors.cli.main as m\n"
        "try: m.main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'apsw', 'msgspec', 'yaml', 'asyncio', 'jsonschema_rs'} & set(sys.modules)\n"
        "print(heavy or 'none')"
    )
    assert here.python(code).splitlines()[-1] == "none"


def test_help_of_a_command_made_of_commands_has_its_examples_line_by_line(here: Project) -> None:
    assert "\nExamples:\n  everstep mcp\n  everstep mcp install cursor --write\n" in here.run("mcp", "--help").out


def cpu_s(here: Project, *words: str) -> float:
    """CPU time of a command, which a busy machine does not stretch as it does the clock on the wall."""
    before = os.times()
    silent = subprocess.DEVNULL
    subprocess.run([*EVERSTEP, *words], cwd=here.path, env=here.environment, check=True, stdout=silent, stderr=silent)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_help_comes_at_once(here: Project) -> None:
    assert min(cpu_s(here, "--help") for _ in range(5)) <= 0.25


@pytest.mark.parametrize("command", ["run", "watch", "ls", "show", "pause", "answer", "plan", "db", "demo", "doctor"])
def test_every_command_explains_itself(here: Project, command: str) -> None:
    done = here.run(command, "-h")
    assert done.code == 0
    assert done.out.startswith(f"Usage: everstep {command}")


def test_version(here: Project) -> None:
    assert here.run("--version").out.startswith("everstep ")
    assert here.run("version", "--json").json["python"] == ".".join(map(str, sys.version_info[:3]))


def test_global_options_stand_anywhere(here: Project) -> None:
    assert here.run("--json", "ls").json == here.run("ls", "--json").json == {"items": [], "next_cursor": None}
    here.write("sub/x.plan.yaml", GOOD)
    assert here.run("-C", "sub", "plan", "check", "x.plan.yaml").code == 0
    assert here.run("run", "good", "--store", "other.db").code == 0
    assert (here.path / "other.db").exists()
    assert not (here.path / ".everstep").exists()


def test_init_makes_a_project_that_works_and_passes_its_test(tmp_path: Path) -> None:
    here = Project(tmp_path)
    made = here.run("init", "first")
    assert made.code == 0
    assert made.out.split() == [
        f"first/{name}" for name in ("everstep.toml", "hello.plan.yaml", "hello_tools.py", "test_hello.py")
    ]
    inside = Project(tmp_path / "first")
    done = inside.run("run", "hello", "-i", "name=Ana")
    assert (done.code, "text: Hello, Ana!" in done.out) == (0, True)
    assert (tmp_path / "first" / "out" / "hello.txt").read_text() == "Hello, Ana!\n"
    tested = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(inside.path),
            "test_hello.py",
        ],
        cwd=inside.path,
        env=inside.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    again = here.run("init", "first")
    assert (again.code, "--force" in again.err) == (9, True)
    assert here.run("init", "first", "--force", "--json").json["files"]


def test_a_plan_is_estimated_by_what_its_tools_took_before(here: Project) -> None:
    before = here.run("plan", "estimate", "good")
    assert (before.code, "together  no history yet" in before.out) == (0, True)
    assert not (here.path / ".everstep").exists()
    assert here.run("run", "good").code == 0
    told = here.run("plan", "estimate", "good", "--json").json
    assert (told["task"]["basis"], told["task"]["n"]) == ("history", 1)
    assert 0 <= told["task"]["p10"] <= told["task"]["p50"] <= told["task"]["p90"]
    assert "estimate: about " in here.run("run", "good", "--new", "--dry-run").out
    assert "together  about " in here.run("plan", "estimate", "good").out


def test_plan_check_show_and_format(here: Project) -> None:
    done = here.run("plan", "check", "good.plan.yaml")
    assert (done.code, done.out) == (0, "good.plan.yaml: ok, 1 step\n")
    assert here.run("plan", "check", "-", text=GOOD).code == 0
    nothing = {"valid": True, "problems": [], "asks": [], "untrusted": []}
    assert here.run("plan", "check", "good.plan.yaml", "--json").json == nothing
    reaching = """name: r
steps:
  - {id: found, tool: text.split, with: {text: a b}}
  - {id: put, tool: file.write, with: {path: "${found.parts[0]}.txt", text: "${found.parts[0]}"}}
  - {id: each, for_each: "${found.parts}", tool: file.write, with: {path: b.txt, text: "${item}"}}
"""
    told = here.run("plan", "check", "-", text=reaching).out.splitlines()
    assert told[1] == "  effects: 1 step pure, 2 steps idempotent"
    assert told[2].endswith("reaches: put.path from found (asks first), put.text from found, each.text from found")
    shown = here.run("plan", "show", "good")
    assert "  1  a  my.say  pure" in shown.out
    assert shown.out.splitlines()[-1].startswith("  sha256:")
    as_json = here.run("plan", "fmt", "good.plan.yaml", "--to", "json")
    assert json.loads(as_json.out)["name"] == "good"
    assert here.run("plan", "fmt", "good.plan.yaml", "--check").code == 1
    assert here.run("plan", "fmt", "good.plan.yaml").code == 0
    assert here.run("plan", "fmt", "good.plan.yaml", "--check").code == 0
    here.write("commented.plan.yaml", f"# why\n{GOOD}")
    refused = here.run("plan", "fmt", "commented.plan.yaml")
    assert (refused.code, "--drop-comments" in refused.err) == (9, True)
    assert here.run("plan", "fmt", "commented.plan.yaml", "--drop-comments").code == 0
    assert "# why" not in (here.path / "commented.plan.yaml").read_text()


def test_warnings_are_errors_when_strict(here: Project) -> None:
    here.write("warn.plan.yaml", f"inputs: {{unused: {{type: string, default: x}}}}\n{GOOD}")
    loose = here.run("plan", "check", "warn.plan.yaml")
    assert (loose.code, "[plan.unused_input]" in loose.out) == (0, True)
    assert here.run("plan", "check", "warn.plan.yaml", "--strict").code == 3


def test_what_a_crash_would_ask_is_said_in_one_line(here: Project) -> None:
    here.write("once.plan.yaml", "name: once\nsteps:\n  - {id: mail, tool: my.send, with: {to: ana}}\n")
    assert "a crash or timeout inside mail would ask you" in here.run("plan", "check", "once.plan.yaml").out
    assert "a crash or timeout inside mail would ask you" in here.run("run", "once").err


def test_the_schema_knows_this_projects_tools(here: Project) -> None:
    schema = here.run("plan", "schema")
    assert "my.say" in schema.out
    assert here.run("plan", "schema", "--out", "plan.schema.json").code == 0
    assert json.loads((here.path / "plan.schema.json").read_text())


def test_tools(here: Project) -> None:
    listed = here.run("tools")
    assert "my.send" in listed.out
    assert "once" in listed.out
    hold = next(line for line in listed.out.splitlines() if line.startswith("my.hold "))
    assert hold.split(maxsplit=2) == ["my.hold", "pure", "Take until a file is there."]
    one = here.run("tools", "my.hold")
    assert one.out.count("Take until a file is there.") == 1
    assert "until  string  required" in one.out
    more = 'from everstep import tool\n@tool.pure("my.words")\ndef words(text: str) -> list[str]:\n    """Cut it."""\n'
    here.write("more_tools.py", f"{more}    return text.split()\n")
    here.write("everstep.toml", 'tools = ["my_tools", "more_tools"]\n')
    assert "output\n  array of string\n" in here.run("tools", "my.words").out
    checked = here.run("tools", "check", "my.words")
    assert checked.code == 0
    assert "16 checks had no calls to try" in checked.err, "what was not tried is not said to hold"
    assert here.run("tools", "my.hold", "--json").json["effect"] == "pure"


@pytest.mark.req("DoD.5")
def test_doctor_says_what_stands_around_the_browser(here: Project) -> None:
    """By starting it; not a word about it where there is none."""
    assert "browser" not in {one["name"] for one in here.run("doctor", "--json").json["checks"]}
    with (here.path / "everstep.toml").open("a") as settings:
        settings.write("\n[browser]\nenabled = true\n")
    (row,) = [one for one in here.run("doctor", "--json").json["checks"] if one["name"] == "browser"]
    lacking = "missing: " in row["detail"]
    assert row["status"] == ("warning" if lacking else "ok")
    assert row["detail"].startswith("limited: " if lacking else "restricted: no way out but our proxy, user ")
    with (here.path / "everstep.toml").open("a") as settings:
        settings.write('executable = "/nowhere"\n')
    (row,) = [one for one in here.run("doctor", "--json").json["checks"] if one["name"] == "browser"]
    assert (row["status"], "there is no Chromium here" in row["detail"]) == ("warning", True)


def test_doctor(here: Project) -> None:
    well = here.run("doctor")
    assert (well.code, "all well" in well.err) == (0, True)
    assert here.run("run", "good").code == 0
    (here.path / ".everstep" / "everstep.db").chmod(0o644)
    sick = here.run("doctor", "--json")
    assert (sick.code, sick.json["ok"]) == (1, False)
    (failed,) = [check for check in sick.json["checks"] if check["status"] == "failed"]
    assert failed["fix"].startswith("chmod 600 ")
    assert here.run("doctor", "--fix").code == 0


def test_doctor_asks_the_database_whether_it_is_there(here: Project) -> None:
    def store(url: str) -> dict[str, str]:
        checks = here.run("--store", url, "doctor", "--json").json["checks"]
        assert {"lock", "file modes", "disk"}.isdisjoint(one["name"] for one in checks), "those are of a file"
        (found,) = [one for one in checks if one["name"] == "store"]
        return dict(found)

    with schema() as url, schema(migrated=False) as empty:
        assert store(url)["status"] == "ok"
        assert (store(empty)["status"], store(empty)["fix"]) == ("failed", "everstep db migrate")
    away = store("postgresql://nobody:secret@127.0.0.1:1/tasks")
    assert (away["status"], "does not answer" in away["detail"], "secret" in str(away)) == ("failed", True, False)


def test_a_move_is_not_told_to_sign_in_as_somebody_else(here: Project) -> None:
    assert here.run("run", "good").code == 0
    asked = here.run("db", "move", "postgresql://ana:secret@127.0.0.1:1/tasks")
    assert (asked.code, "everstep db move TARGET_URL --yes" in asked.err, "secret" in asked.err) == (2, True, False)


def test_the_store_is_looked_after(here: Project) -> None:
    assert here.run("run", "good").code == 0
    info = here.run("db", "info", "--json").json
    assert (info["tasks"]["completed"], info["durability"]) == (1, "power")
    assert "1 completed" in here.run("db", "info").out
    checked = here.run("db", "check", "--json").json
    assert (checked["ok"], checked["problems"], checked["audit_head"][:7]) == (True, [], "sha256:")
    assert here.run("db", "backup", "copy.db").code == 0
    assert here.run("db", "backup", "copy.db").code == 9
    assert here.run("db", "backup", "no/such/copy.db").code == 5
    assert here.run("ls", "--store", "copy.db", "--json").json["items"][0]["status"] == "completed"


def test_explain(here: Project) -> None:
    step = here.run("explain", "[http_503]")
    assert "transient: 3 retries" in step.out
    assert "exit      6" in here.run("explain", "store_locked").out
    assert here.run("explain", "timeout", "--json").json["effect_state"] == "unknown"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(here: Project, shell: str) -> None:
    done = here.run("completion", shell)
    assert done.code == 0
    assert "_EVERSTEP_COMPLETE" in done.out


def test_completion_completes(here: Project) -> None:
    done = here.run(COMP_WORDS="everstep pa", COMP_CWORD="1", _EVERSTEP_COMPLETE="bash_complete")
    assert "plain,pause" in done.out


def test_listing_a_thousand_tasks_costs_little_beyond_the_start(here: Project) -> None:
    """What `ls --all` adds to the start of a program that loads the same parts. The start itself is not judged here."""
    code = (
        "import asyncio\nfrom everstep import Engine\nfrom my_tools import say\n"
        "async def main():\n"
        "    async with Engine(tools=[say], worker=False) as engine:\n"
        "        await asyncio.gather(*(engine.start('good.plan.yaml') for _ in range(1000)))\n"
        "asyncio.run(main())\n"
    )
    here.write("everstep.toml", "")
    here.python(code)
    assert len(here.run("ls", "--all").out.splitlines()) == 2000
    start_s = min(cpu_s(here, "tools") for _ in range(3))
    assert min(cpu_s(here, "ls", "--all") for _ in range(3)) - start_s <= 0.3


FAILING = """
name: failing
steps:
  - {id: get, tool: tools.get, with: {}, retry: 0}
"""
DOWN = '''
from everstep import Transient, tool


@tool("tools.get", effect="pure")
async def get() -> int:
    """Ask a server that is down."""
    raise Transient("the server is down")
'''


@pytest.mark.req("8.1", "8.3")
def test_errors_and_breakers_over_all_tasks(here: Project) -> None:
    here.write("down.py", DOWN)
    here.write("everstep.toml", 'tools = ["down"]\n')
    here.write("failing.plan.yaml", FAILING)
    assert here.run("breakers").code == 0
    assert here.run("logs", "--errors", "--json").json["items"] == []
    for _ in range(5):
        assert here.run("run", "failing.plan.yaml", "--new").code == 1
    listed = here.run("logs", "--errors").out.splitlines()
    assert len(listed) == 5
    assert "transient" in listed[0]
    assert "[tool_transient]  the server is down" in listed[0]
    assert len(here.run("logs", "--errors", "--tool", "tools.get", "--since", "1h", "--json").json["items"]) == 5
    assert here.run("logs", "--errors", "--category", "logic", "--json").json["items"] == []
    assert here.run("logs", "--category", "logic").code == 2
    (breaker,) = here.run("breakers", "--json").json["items"]
    assert (breaker["state"], breaker["failures"]) == ("open", 5)
    assert "tools.get" in here.run("breakers").out
    assert "closed" in here.run("breakers", "reset", breaker["id"][:6]).out
    assert here.run("breakers", "--json").json["items"] == []
    assert here.run("breakers", "reset", breaker["id"]).code == 5
    assert here.run("breakers", "reset").code == 2


@pytest.mark.req("8.4")
@pytest.mark.parametrize("code", ["os_denied", "limit_memory", "not_found", "store_full"])
def test_explain_says_what_to_do(here: Project, code: str) -> None:
    assert "\n  do        " in here.run("explain", code).out
