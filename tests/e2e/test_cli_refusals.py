"""Everything somebody can get wrong: one screen, the command that helps, the right exit code, and no stack trace."""

import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.e2e.commands import EVERSTEP, Project, project

GOOD = "name: good\nsteps:\n  - {id: a, tool: my.say, with: {text: hi}}\noutputs: {text: '${a.text}'}\n"
TYPED = """\
name: typed
inputs: {topic: string, n: {type: integer, minimum: 1}}
steps:
  - {id: a, tool: my.say, with: {text: "${inputs.topic}"}}
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.write("good.plan.yaml", GOOD)
    made.write("typed.plan.yaml", TYPED)
    return made


def as_root() -> bool:
    return os.geteuid() == 0


@pytest.mark.req("8.4", "N.3")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        # usage
        (["rnu"], 2, ["no command 'rnu'", "did you mean 'run'?", "everstep run --help"]),
        (["status"], 2, ["did you mean 'ls'?"]),
        (["--jsn", "ls"], 2, ["no option '--jsn'", "did you mean '--json'?"]),
        (["run"], 2, ["missing argument 'PLAN'", "everstep run --help"]),
        (["run", "good", "--priority", "9"], 2, ["9 is not in the range"]),
        (["run", "good", "--timeout", "5 minutes"], 2, ["'5 minutes' is not a duration, write 500ms, 30s, 1h30m"]),
        (["run", "good", "-i", "nonsense"], 2, ["'nonsense' is no input", "NAME=VALUE"]),
        (["run", "good", "--label", "x"], 2, ["'x' is no label"]),
        (["-C", "nowhere", "ls"], 2, ["cannot enter 'nowhere'"]),
        (["--json", "plan"], 2, ["missing command", "everstep plan --help"]),
        (["completion"], 2, ["missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish"]),
        (["plan", "chek", "x"], 2, ["no command 'chek'", "did you mean 'check'?"]),
        (["ls", "--status", "runing"], 2, ["'runing' is not a status", "did you mean 'running'"]),
        (["show", "t_1"], 2, ["'t_1' is too short"]),
        # plans and inputs
        (["run", "godo.plan.yaml"], 5, ["no file 'godo.plan.yaml'", "did you mean 'good.plan.yaml'"]),
        (["run", "godo"], 5, ["no plan 'godo'", "did you mean 'good'"]),
        (["run", "."], 2, ["'.' is a folder, a plan is a file", "everstep run good.plan.yaml"]),
        (["run", "nomodule:plan"], 5, ["no module 'nomodule'"]),
        (["run", "my_tools:plan"], 5, ["'my_tools' has no 'plan'"]),
        (["run", "my_tools:say"], 3, ["is no plan but of type FunctionTool"]),
        (["run", "typed"], 3, ["input 'topic' is missing", "[inputs_invalid]", "-i topic=VALUE -i n=VALUE"]),
        (["--server", "127.0.0.1:1", "ls"], 2, ["no address of a server", "http://"]),
        (["--server", "http://127.0.0.1:1", "--token-file", "ci.token", "ls"], 4, ["there is no file", "ci.token"]),
        (["run", "typed", "--inputs", "good.plan.yaml"], 3, ["holds no JSON", "correct the file"]),
        (["run", "typed", "-i", "topic=x", "-i", "n=abc"], 3, ["[inputs_invalid]", "-i NAME:=JSON"]),
        (["run", "typed", "-i", "topic=x", "-i", "n=many"], 3, ["must be an integer", "[input.invalid]"]),
        (["run", "typed", "-i", "tpoic=x", "-i", "n=0"], 3, ["did you mean 'topic'", "must be at least 1"]),
        (["run", "typed", "--inputs", "missing.json"], 5, ["'missing.json' cannot be read"]),
        (["run", "good", "--until", "nowhere"], 2, ["no step 'nowhere'"]),
        (["run", "good", "--key", "t_x"], 2, ["key"]),
        # what is not there
        (["show", "nothing"], 5, ["no task 'nothing'"]),
        (["pause", "t_zzzz"], 5, ["no task 't_zzzz'"]),
        (["watch", "t_zzzz"], 5, ["no task 't_zzzz'"]),
        (["answer", "p_zzzz", "skip"], 5, ["everstep"]),
        (["tools", "file.wrte"], 5, ["no tool 'file.wrte'", "did you mean 'file.write'"]),
        (["explain", "stor_locked"], 5, ["no code 'stor_locked'", "did you mean 'store_locked'"]),
        (["db", "check"], 5, ["there is no store"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value and " " not in value[0] else None,
)
def test_what_is_wrong_is_said_with_what_helps(here: Project, words: list[str], code: int, said: list[str]) -> None:
    done = here.run(*words)
    assert done.code == code, done.err
    assert "error: " in done.err
    assert "  do:  " in done.err
    for text in said:
        assert text in done.err, done.err
    assert len(done.err.splitlines()) <= 24
    assert not (here.path / ".everstep").exists(), "a refusal makes no store"


@pytest.mark.req("8.4")
def test_a_group_alone_shows_its_commands(here: Project) -> None:
    done = here.run("plan")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: everstep plan")
    assert "Find every problem of a plan" in done.err


BAD_PLANS = {
    "empty": ("", "[plan."),
    "not a map": ("- a\n- b\n", "[plan."),
    "bad YAML": ("name: x\nsteps: [\n", "[plan.bad_syntax]"),
    "alias": ("name: x\nsteps: &a\n  - {id: a, tool: wait, with: {for: 1s}}\n", "[plan.yaml_alias]"),
    "unknown key": ("name: x\nsteps:\n  - {id: a, tool: my.say, args: {text: hi}}\n", "did you mean 'with'"),
    "unknown tool": ("name: x\nsteps:\n  - {id: a, tool: my.sya, with: {text: hi}}\n", "did you mean 'my.say'"),
    "bad reference": (
        "name: x\nsteps:\n  - {id: a, tool: my.say, with: {text: '${inputs.b}'}}\n",
        "[plan.unknown_input]",
    ),
    "binary": ("\x00\x01", "[plan."),
}


@pytest.mark.parametrize("name", BAD_PLANS)
def test_a_bad_plan_is_shown_where_it_is_bad(here: Project, name: str) -> None:
    text, said = BAD_PLANS[name]
    here.write("bad.plan.yaml", text)
    for command in (["run"], ["plan", "check"]):
        done = here.run(*command, "bad.plan.yaml")
        assert done.code == 3
        assert said in done.out + done.err
        assert "bad.plan.yaml" in done.out + done.err
    assert not (here.path / ".everstep").exists()


def test_all_problems_are_shown_at_once_with_lines(here: Project) -> None:
    here.write(
        "bad.plan.yaml",
        "name: bad\nsteps:\n  - {id: a, tool: my.say, with: {txt: hi}}\n  - {id: a, tool: no.such, retries: 3}\n",
    )
    done = here.run("run", "bad.plan.yaml")
    assert done.code == 3
    assert "bad.plan.yaml:3:" in done.err
    assert "bad.plan.yaml:4:" in done.err
    assert "^^" in done.err
    refused = here.run("run", "bad.plan.yaml", "--json")
    (result,) = refused.lines
    assert (result["type"], result["ok"], result["exit_code"]) == ("result", False, 3)
    assert len(result["error"]["details"]["problems"]) >= 3
    checked = here.run("plan", "check", "bad.plan.yaml", "--json")
    assert (checked.code, checked.json["valid"]) == (3, False)


def test_a_plan_that_is_not_text_or_too_large(here: Project) -> None:
    (here.path / "bytes.plan.yaml").write_bytes(b"name: \xff\xfe")
    assert "not UTF-8 at byte 6" in here.run("run", "bytes.plan.yaml").err
    here.write("large.plan.yaml", "# " + "x" * 300_000)
    large = here.run("run", "large.plan.yaml")
    assert (large.code, "256 KiB" in large.err) == (3, True)


@pytest.mark.skipif(as_root(), reason="root may read and write everything")
def test_files_that_may_not_be_read_or_written(here: Project) -> None:
    (here.path / "good.plan.yaml").chmod(0)
    unreadable = here.run("run", "good.plan.yaml")
    assert (unreadable.code, "chmod u+r" in unreadable.err) == (4, True)
    (here.path / "good.plan.yaml").chmod(0o600)
    here.path.chmod(0o500)
    try:
        assert here.run("run", "good").code in (4, 6)
        assert here.run("init", "sub").code == 4
        assert here.run("demo").code == 4
    finally:
        here.path.chmod(0o700)


@pytest.mark.req("Dep.4")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('stroe = "x.db"\n', ["everstep.toml:1", "'stroe' is not a setting", "did you mean 'store'"]),
        ("engine = 3\n", ["everstep.toml"]),
        ('[engine]\ntasks = "many"\n', ["everstep.toml:2", "'engine.tasks'"]),
        ("not toml", ["everstep.toml"]),
        ('tools = ["no_such_module"]\n', ["cannot load the tools of 'no_such_module'"]),
    ],
)
def test_a_wrong_setting_is_named_with_its_line(here: Project, text: str, said: list[str]) -> None:
    here.write("everstep.toml", text)
    done = here.run("run", "good")
    assert done.code == 3
    assert "[config_invalid]" in done.err
    for one in said:
        assert one in done.err
    assert here.run("doctor").code == 1


def test_a_mistake_in_the_tools_is_theirs_and_does_not_hide_the_tasks(here: Project) -> None:
    assert here.run("run", "good").code == 0
    here.write("my_tools.py", "def broken(:\n")
    done = here.run("run", "good")
    assert done.code == 3
    assert "SyntaxError" in done.err
    assert "my_tools.py, line 1" in done.err
    assert here.run("ls").code == 0
    here.write("my_tools.py", "x = {}\nx['missing']\n")
    assert "KeyError: 'missing' (my_tools.py:2)" in here.run("run", "good").err


def test_a_task_whose_tools_are_gone_is_not_waited_for(here: Project) -> None:
    name = here.run("run", "good", "--detach").out.strip()
    here.write("everstep.toml", "")
    done = here.run("resume", name)
    assert done.code == 3
    assert "waits for my.say, which this project does not have" in done.err


def test_a_store_that_is_none(here: Project) -> None:
    here.write("notes.db", "these are my notes")
    done = here.run("run", "good", "--store", "notes.db")
    assert (done.code, "[store_refused]" in done.err) == (6, True)
    assert (here.path / "notes.db").read_text() == "these are my notes"
    folder = here.run("ls", "--store", ".")
    assert (folder.code, "[store_refused]" in folder.err) == (6, True)


def test_a_store_of_a_newer_version(here: Project) -> None:
    assert here.run("run", "good").code == 0
    store = sqlite3.connect(here.path / ".everstep" / "everstep.db")
    store.execute("PRAGMA user_version = 99")
    store.close()
    done = here.run("ls")
    assert (done.code, "[store_refused]" in done.err) == (6, True)
    assert "use the newer program" in done.err


def test_a_holder_that_does_not_answer(here: Project) -> None:
    here.write("held.plan.yaml", "name: held\nsteps:\n  - {id: long, tool: my.hold, with: {until: go}}\n")
    holder = here.start("run", "held")
    while not (here.path / "go.begun").exists():
        assert holder.poll() is None
    holder.send_signal(signal.SIGSTOP)
    try:
        done = here.run("run", "good")
        assert (done.code, "[store_locked]" in done.err) == (6, True)
        assert f"process {holder.pid}" in done.err
        assert "holds it and does not answer" in done.err
        sick = here.run("doctor")
        assert (sick.code, f"kill {holder.pid}" in sick.out) == (1, True)
    finally:
        holder.kill()
        holder.communicate()


MANY = """
import asyncio
from everstep import Engine
from my_tools import say

async def main():
    async with Engine(tools=[say], worker=False, config={"limits": {"live_tasks": 100000}}) as engine:
        for start in range(0, 3000, 500):
            await asyncio.gather(*(engine.start("good.plan.yaml") for _ in range(500)))

asyncio.run(main())
"""


def test_ids_that_begin_alike(here: Project) -> None:
    """Of 3,000 ids some begin with the same four characters: there are a million beginnings, and four million pairs."""
    here.write("everstep.toml", "")
    here.python(MANY)
    items = here.run("ls", "--all", "--json").json["items"]
    seen = [item["id"][:6] for item in items]
    twice = next(begin for begin in seen if seen.count(begin) > 1)
    done = here.run("show", twice)
    assert done.code == 2
    assert f"'{twice}' begins" in done.err
    assert "give more characters" in done.err


def test_json_refusals_are_one_object(here: Project) -> None:
    done = here.run("show", "nothing", "--json")
    assert done.code == 5
    assert done.json["error"]["code"] == "not_found"
    assert "error: no task 'nothing'" in done.err
    usage = here.run("--json", "rnu")
    assert (usage.code, usage.json["error"]["code"]) == (2, "bad_request")


def test_our_own_bug_leaves_a_report(here: Project) -> None:
    here.write(
        "sitecustomize.py", "import everstep.doors.cli.find as f\nf.LAST = None\nf.path_of = lambda *a, **k: 1 / 0\n"
    )
    assert here.run("run", "good").code == 0
    done = here.run("show", "good", PYTHONPATH=str(here.path))
    assert done.code == 70
    assert "a bug in everstep: ZeroDivisionError" in done.err
    report = Path(done.err.split("report it with ")[1].split()[0])
    assert "ZeroDivisionError" in report.read_text()
    report.unlink()


@pytest.mark.parametrize("words", ["ls", "ls --json", "show @last --events", "tools", "run good --json --new"])
def test_a_reader_that_has_seen_enough(here: Project, words: str) -> None:
    """Nothing is said about it; 141 is what the shell shows for a program whose reader went away."""
    assert here.run("run", "good").code == 0
    first, done = os.pipe()
    os.close(first)
    try:
        left = subprocess.run(
            [*EVERSTEP, *words.split()],
            cwd=here.path,
            env=here.environment,
            stdin=subprocess.DEVNULL,
            stdout=done,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(done)
    assert left.returncode == 141, left.stderr
    assert "Traceback" not in left.stderr
    assert "BrokenPipe" not in left.stderr
