"""The life of a task through the command line: run, look, pause, resume, cancel, answer; each with its exit code."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.commands import Project, project

HELLO = """\
name: hello
title: Hello, ${inputs.name}
inputs: {name: {type: string, default: world}, n: {type: integer, default: 1}}
steps:
  - {id: words, title: Find the words, tool: my.say, with: {text: "Hello, ${inputs.name}"}}
  - {id: note, tool: file.write, with: {path: out.txt, text: "${words.text}"}}
outputs: {text: "${words.text}", count: "${inputs.n}"}
"""
HELD = """\
name: held
steps:
  - {id: first, tool: my.say, with: {text: one}}
  - {id: long, tool: my.hold, with: {until: go}}
  - {id: last, tool: my.say, with: {text: two}}
outputs: {text: "${last.text}"}
"""
SENDS = """\
name: sends
steps:
  - {id: first, tool: my.say, with: {text: one}}
  - {id: mail, tool: my.send, with: {to: ana, until: go}}
outputs: {text: "${mail.text}"}
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.write("hello.plan.yaml", HELLO)
    made.write("held.plan.yaml", HELD)
    made.write("sends.plan.yaml", SENDS)
    return made


def until_begun(here: Project, name: str = "go") -> None:
    """Wait until the call that holds has begun."""
    import time

    while not (here.path / f"{name}.begun").exists():
        time.sleep(0.01)


def test_run_prints_outputs_and_nothing_else_on_stdout(here: Project) -> None:
    done = here.run("run", "hello", "-i", "name=Ana", "-i", "n=3")
    assert (done.code, done.out) == (0, "count: 3\ntext: Hello, Ana\n")
    assert "step.completed words" in done.err
    assert done.err.rstrip().splitlines()[-1].startswith("completed in ")
    assert (here.path / "out.txt").read_text() == "Hello, Ana"


def test_json_is_a_stream_with_a_result_at_its_end(here: Project) -> None:
    done = here.run("run", "hello", "--json")
    *frames, result = done.lines
    assert {frame["type"] for frame in frames} <= {"event", "tick"}
    assert (result["type"], result["ok"], result["exit_code"]) == ("result", True, 0)
    assert result["task"]["outputs"] == {"text": "Hello, world", "count": 1}
    assert done.err == ""


def test_quiet_says_only_the_last_line(here: Project) -> None:
    done = here.run("-q", "run", "hello")
    assert re.fullmatch(r"completed in [0-9.]+s\n", done.err)


def test_looking_at_what_happened(here: Project) -> None:
    assert here.run("run", "hello", "--title", "My own title", "--label", "team=blue", "--key", "first").code == 0
    listed = here.run("ls")
    assert re.match(r" ok t_[0-9a-z]{8}  My own title +2/2 ", listed.out)
    assert "completed" in listed.out.splitlines()[1]
    (item,) = here.run("ls", "--json").json["items"]
    for name in ("@last", "first", item["id"], item["id"][:8]):
        assert here.run("show", name, "--json").json["id"] == item["id"]
    page = here.run("show", "@last").out
    assert " ok Find the words" in page
    assert "  text: Hello, world" in page
    assert here.run("show", "@last", "words", "--input").json == {"text": "Hello, world"}
    assert here.run("show", "@last", "words", "--output").json == {"text": "Hello, world"}
    assert "tool my.say, effect pure" in here.run("show", "@last", "words").out
    assert here.run("show", "@last", "--input").json["name"] == "world"
    assert here.run("show", "@last", "--plan").json["name"] == "hello"
    events = here.run("show", "@last", "--events").lines
    assert [event["seq"] for event in events] == [*range(1, len(events) + 1)]
    assert events[-1]["type"] == "task.completed"
    assert here.run("ls", "--status", "failed").err == "no task fits\n"


def test_the_same_key_gives_the_same_task(here: Project) -> None:
    first = here.run("run", "hello", "--key", "k1", "--json").lines[-1]["task"]["id"]
    again = here.run("run", "hello", "--key", "k1", "--json")
    assert (again.code, again.lines[-1]["task"]["id"]) == (0, first)
    other = here.run("run", "hello", "--key", "k1", "-i", "name=Bo")
    assert (other.code, "[idempotency_conflict]" in other.err) == (9, True)


def test_killed_and_run_again_it_goes_on_where_it_stopped(here: Project) -> None:
    first = here.start("run", "held")
    until_begun(here)
    first.kill()
    first.communicate()
    stalled = here.run("ls").out
    assert "1/3" in stalled
    (here.path / "go").touch()
    done = here.run("run", "held")
    assert (done.code, done.out) == (0, "text: two\n")
    assert "== 1 step of 3 restored from the journal: first" in done.err
    assert "== long was interrupted: called again, which is harmless" in done.err
    events = here.run("show", "@last", "--events").lines
    assert [event["step"] for event in events if event["type"] == "step.completed"] == ["first", "long", "last"]


def test_new_starts_another(here: Project) -> None:
    assert here.run("run", "held", "--until", "first").code == 8
    (here.path / "go").touch()
    done = here.run("run", "held", "--new")
    assert done.code == 0
    assert "restored" not in done.err
    assert len(here.run("ls", "--json").json["items"]) == 2


def test_an_edited_plan_names_the_unfinished_task_of_before(here: Project) -> None:
    assert here.run("run", "held", "--until", "first").code == 8
    before = here.run("ls", "--json").json["items"][0]["id"][:10]
    here.write("held.plan.yaml", HELD.replace("text: one", "text: uno"))
    (here.path / "go").touch()
    done = here.run("run", "held")
    assert done.code == 0
    assert f"everstep resume {before}, or everstep cancel {before}" in done.err


def test_until_pauses_and_run_goes_on(here: Project) -> None:
    paused = here.run("run", "held", "--until", "first")
    assert paused.code == 8
    assert re.search(r"Paused after first\. Nothing is lost\. Resume: everstep resume t_\w{8}", paused.err)
    (here.path / "go").touch()
    assert here.run("run", "held").code == 0


def test_detached_it_waits_for_somebody(here: Project) -> None:
    (here.path / "go").touch()
    left = here.run("run", "held", "--detach")
    name = left.out.strip()
    assert left.code == 0
    assert "nobody carries it yet: everstep resume" in left.err
    assert here.run("ls", "--json").json["items"][0]["status"] == "queued"
    assert here.run("resume", name).out == "text: two\n"


def test_others_that_wait_are_named(here: Project) -> None:
    assert here.run("run", "held", "--detach").code == 0
    done = here.run("run", "hello")
    assert done.code == 0
    assert "1 other unfinished task waits; carry it: everstep worker" in done.err


def test_pause_resume_and_cancel_of_a_task_nobody_carries(here: Project) -> None:
    name = here.run("run", "held", "--detach").out.strip()
    assert here.run("pause", name, "--note", "lunch", "--json").json["status"] == "paused"
    page = here.run("show", name).out
    assert "Resume: everstep resume" in page
    resumed = here.run("resume", name, "--detach", "--json")
    assert resumed.json["status"] == "queued"
    assert here.run("cancel", name).out.split()[1] == "cancelled"
    again = here.run("resume", name)
    assert (again.code, "[illegal_state]" in again.err) == (9, True)


def test_a_second_terminal_speaks_to_the_first(here: Project) -> None:
    first = here.start("run", "held", "--json")
    until_begun(here)
    assert here.run("ls", "--json").json["items"][0]["status"] == "running"
    assert "which answers" in here.run("doctor").out
    watching = here.start("watch", "--json")
    assert watching.stdout is not None
    watching.stdout.readline()
    paused = here.run("pause", "@last")
    assert "pausing" in paused.out
    (here.path / "go").touch()
    out, _ = first.communicate(timeout=60)
    assert first.returncode == 8
    assert json.loads(out.splitlines()[-1])["task"]["status"] == "paused"
    watching.communicate(timeout=60)
    assert watching.returncode == 8
    done = here.run("resume", "@last")
    assert (done.code, done.out) == (0, "text: two\n")


def test_a_follower_takes_over_when_the_engine_is_killed(here: Project) -> None:
    first = here.start("run", "held")
    until_begun(here)
    second = here.start("run", "held", "--json")
    assert second.stdout is not None
    second.stdout.readline()
    first.kill()
    first.communicate()
    (here.path / "go").touch()
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["task"]["status"] == "completed"


def test_cancelling_what_runs_ends_the_command_that_runs_it(here: Project) -> None:
    first = here.start("run", "held")
    until_begun(here)
    assert here.run("cancel", "@last").code == 0
    _, err = first.communicate(timeout=60)
    assert (first.returncode, "cancelled" in err.splitlines()[-1]) == (7, True)


def test_a_crash_inside_a_call_that_must_not_repeat_asks(here: Project) -> None:
    first = here.start("run", "sends")
    until_begun(here)
    first.kill()
    first.communicate()
    asked = here.run("run", "sends")
    assert asked.code == 8
    assert "== mail was interrupted: nobody knows whether it happened" in asked.err
    assert "write 'on_uncertain: retry' under step 'mail', or @tool.idempotent above 'my.send'" in asked.err
    (pause,) = here.run("inbox", "--json").json["items"]
    assert f"everstep answer {pause['id'][:10]} happened --value JSON" in asked.err
    assert "uncertainOutcome, step mail" in here.run("inbox").out
    assert "answer it:" in here.run("inbox", pause["id"]).out
    wrong = here.run("answer", pause["id"], "happened", "--value", "{")
    assert (wrong.code, "[answer_invalid]" in wrong.err) == (3, True)
    unfit = here.run("answer", pause["id"], "happened", "--value", '{"no": 1}')
    assert (unfit.code, "[answer_invalid]" in unfit.err) == (3, True)
    unknown = here.run("answer", pause["id"], "perhaps")
    assert unknown.code == 3
    done = here.run("answer", pause["id"][:8], "happened", "--value", '{"text": "ana"}', "--note", "seen")
    assert (done.code, done.out) == (0, "text: ana\n")
    assert (here.path / "sent.txt").read_text() == "ana\n"
    late = here.run("answer", pause["id"], "not_happened")
    assert (late.code, "[already_answered]" in late.err) == (9, True), late.err
    assert "local has answered already through cli: happened" in late.err


def test_a_failing_function_shows_its_own_lines(here: Project) -> None:
    here.write("bug.plan.yaml", "name: bug\nsteps:\n  - {id: sum, tool: my.bug, with: {n: 1}}\n")
    done = here.run("run", "bug")
    assert done.code == 1
    assert "failed: bug in tool 'my.bug': KeyError: 'missing'" in done.err
    assert 'return {}["missing"] + n' in done.err
    assert "everstep/engine" not in done.err
    assert 'return {}["missing"] + n' in here.run("logs", "@last").out
    assert here.run("logs", "@last", "--json").lines[0]["step"] == "sum"


def test_a_partial_success_lists_its_issues(here: Project) -> None:
    here.write(
        "part.plan.yaml",
        "name: part\nsteps:\n  - {id: bad, tool: my.picky, with: {path: x}, on_error: continue}\n"
        "  - {id: good, needs: [], tool: my.say, with: {text: ok}}\noutputs: {text: '${good.text}'}\n",
    )
    done = here.run("run", "part")
    assert (done.code, done.out) == (0, "text: ok\n")
    assert "completed with 1 issue" in done.err
    assert "- bad failed: cannot use x" in done.err


def test_a_handed_over_error_is_answered_with_other_arguments(here: Project) -> None:
    here.write(
        "over.plan.yaml",
        "name: over\nsteps:\n  - {id: pick, tool: my.picky, with: {path: x}, on_error: pause}\n"
        "outputs: {text: '${pick.text}'}\n",
    )
    assert here.run("run", "over").code == 8
    no_value = here.run("answer", "@last", "retry_with")
    assert (no_value.code, "[answer_invalid]" in no_value.err) == (3, True)
    nobody = here.run("answer", "@last")
    assert (nobody.code, "everstep answer" in nobody.err) == (2, True)
    done = here.run("answer", "@last", "retry_with", "--set", "path=good.txt")
    assert (done.code, done.out) == (0, "text: good.txt\n")


def test_a_plan_in_python_brings_its_functions(here: Project) -> None:
    here.write("everstep.toml", "")
    here.write(
        "agent.py",
        "from everstep import Plan\nimport my_tools\nplan = Plan('agent')\n"
        "said = plan.step('said', my_tools.say, {'text': 'hi'})\nplan.output(text=said.text)\n",
    )
    done = here.run("run", "agent:plan")
    assert (done.code, done.out) == (0, "text: hi\n")
    here.write("everstep.toml", 'tools = ["my_tools"]\n')
    assert here.run("run", "agent:plan").code == 0


def test_a_dry_run_starts_nothing(here: Project) -> None:
    done = here.run("run", "sends", "--dry-run")
    assert done.code == 0
    assert "  2  mail   my.send  once" in done.out
    assert "inside mail would ask you whether it happened" in done.out
    assert "estimate: no history yet" in done.out
    assert not (here.path / ".everstep").exists()


def test_the_timeout_leaves_the_task_as_it_is(here: Project) -> None:
    done = here.run("run", "held", "--timeout", "300ms")
    assert done.code == 8
    assert "Not finished in time" in done.err


@pytest.mark.parametrize("flag", ["--plain", "--json"])
def test_what_tools_print_is_no_result(here: Project, flag: str) -> None:
    here.write(
        "loud_tools.py",
        "from everstep import tool\n@tool.pure('loud.say')\ndef say() -> str:\n    print('LOUD')\n    return 'x'\n",
    )
    here.write("everstep.toml", 'tools = ["loud_tools"]\n')
    here.write("loud.plan.yaml", "name: loud\nsteps:\n  - {id: a, tool: loud.say}\noutputs: {text: '${a}'}\n")
    done = here.run("run", "loud", flag)
    assert done.code == 0
    assert "LOUD" not in done.out
    assert "LOUD" in done.err


def test_watch_waits_for_the_first_task_and_others_can_be_handed_to_it(here: Project) -> None:
    watching = here.start("watch", "--json")
    while not (here.path / ".everstep" / "control.sock").exists():
        assert watching.poll() is None
    running = here.start("run", "held")
    until_begun(here)
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["type"] in ("event", "tick")
    (here.path / "go").touch()
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (0, "text: two\n"), err
    last, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert json.loads(last.splitlines()[-1])["task"]["status"] == "completed"


def test_watch_asks_which_when_several_are_active(here: Project) -> None:
    for _ in range(2):
        assert here.run("run", "held", "--detach", "--new").code == 0
    done = here.run("watch")
    assert done.code == 2
    assert "2 tasks are active" in done.err
    one = here.run("watch", "@last", "--timeout", "200ms")
    assert one.code == 8
    assert "nobody carries it yet: everstep resume t_" in one.err


def test_watch_from_the_beginning_shows_the_whole_journal(here: Project) -> None:
    assert here.run("run", "hello").code == 0
    done = here.run("watch", "@last", "--from", "1", "--json")
    *frames, result = done.lines
    seqs = [frame["event"]["seq"] for frame in frames if frame["type"] == "event"]
    assert seqs == [*range(1, result["task"]["seq"] + 1)]


def test_pausing_can_be_waited_for(here: Project) -> None:
    first = here.start("run", "held")
    until_begun(here)
    pausing = here.start("pause", "@last", "--wait", "--note", "lunch")
    assert pausing.stderr is not None
    pausing.stderr.readline()
    (here.path / "go").touch()
    pausing.communicate(timeout=60)
    first.communicate(timeout=60)
    assert (pausing.returncode, first.returncode) == (0, 8)


def test_a_task_that_already_ended_is_shown_at_once(here: Project) -> None:
    assert here.run("run", "hello", "--key", "k").code == 0
    again = here.run("watch", "k")
    assert (again.code, again.out) == (0, "count: 1\ntext: Hello, world\n")


def test_logs_are_followed_until_the_task_ends(here: Project) -> None:
    here.write(
        "talkative.py",
        """from pathlib import Path
from everstep import Ctx, tool
import asyncio

@tool.pure("my.talk")
async def talk(*, ctx: Ctx) -> str:
    \"\"\"Say what it does.\"\"\"
    ctx.log.info("first")
    Path("talk.begun").touch()
    while not Path("talk.go").exists():
        await asyncio.sleep(0.01)
    ctx.log.info("second")
    return "done"
""",
    )
    here.write("everstep.toml", 'tools = ["talkative"]\n')
    rest_too = "  - {id: b, tool: wait, with: {for: 2s}}\n"  # the engine that tells the lines does not leave at once
    here.write("talk.plan.yaml", "name: talk\nsteps:\n  - {id: a, tool: my.talk}\n" + rest_too)
    running = here.start("run", "talk", "--json")
    until_begun(here, "talk")
    following = here.start("logs", "@last", "-f", "--json")
    assert following.stdout is not None
    line = following.stdout.readline()
    first = json.loads(line)
    assert (first.get("type"), first.get("step"), first.get("message")) == ("log", "a", "first"), line
    (here.path / "talk.go").touch()
    rest, _ = following.communicate(timeout=60)
    second, result = [json.loads(line) for line in rest.splitlines()]
    assert (second["type"], second["message"]) == ("log", "second")
    assert (result["type"], result["ok"], result["task"]["status"]) == ("result", True, "completed")
    assert following.returncode == 0
    running.communicate(timeout=60)
