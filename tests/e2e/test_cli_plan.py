"""`everstep plan ls` and `plan prompt`: what can be started by name, and what a model needs to write more."""

import json
import re
from pathlib import Path

import pytest

from everstep.wire.planschema import plan_schema
from tests.e2e.commands import TOOLS, Project, project

GOOD = "name: good\ntitle: A good one\nsteps:\n  - {id: a, tool: my.say, with: {text: hi}}\n"
WRONG = "name: wrong\nsteps:\n  - {id: a, tool: my.sya, with: {text: hi}}\n"
WARNED = f"inputs: {{unused: {{type: string, default: x}}}}\n{GOOD}"
FUNCTION = '''
from everstep import durable


@durable("agent", version="1")
async def agent(ctx, topic: str) -> dict:
    """Look into a topic."""
    return await ctx.call(say, {"text": topic})
'''


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.write("my_tools.py", f"{TOOLS}\n{FUNCTION}")
    made.write("good.plan.yaml", GOOD)
    made.write("plans/later.plan.yaml", GOOD.replace("good", "later"))
    made.write("warned.plan.yaml", WARNED)
    made.write("wrong.plan.yaml", WRONG)
    made.write("broken.plan.yaml", "name: broken\nsteps: 1\n")
    return made


def test_plans_and_functions_are_listed_with_what_is_wrong(here: Project) -> None:
    done = here.run("plan", "ls")
    assert [" ".join(line.split()) for line in done.out.splitlines()] == [
        "agent function Look into a topic.",
        "broken 1 problem",
        "good 1 step A good one",
        "later 1 step A later one",
        "warned 1 step A good one 1 warning",
        "wrong 1 step 1 problem",
    ]
    assert "everstep plan check broken.plan.yaml" in done.err
    assert not (here.path / ".everstep").exists(), "looking makes no store"


def test_the_list_for_programs_holds_how_plans_have_fared(here: Project) -> None:
    assert here.run("run", "good").code == 0
    listed = {one["name"]: one for one in here.run("plan", "ls", "--json").json["items"]}
    assert (listed["good"]["success"], listed["good"]["steps"], listed["good"]["problems"]) == (1.0, 1, [])
    assert listed["good"]["file"] == "good.plan.yaml"
    assert listed["agent"]["file"] is None
    (problem,) = listed["wrong"]["problems"]
    assert (listed["wrong"]["valid"], problem["line"], problem["suggestion"]) == (False, 3, "my.say")
    assert listed["broken"]["problems"][0]["message"] == "'steps' must be a list, not a number"


def test_where_there_is_no_plan_the_next_move_is_named(tmp_path: Path) -> None:
    done = project(tmp_path).run("plan", "ls")
    assert (done.code, done.out, "everstep init" in done.err) == (0, "", True)


def test_the_prompt_holds_goal_rules_tools_and_schema(here: Project) -> None:
    text = here.run("plan", "prompt", "Say hello to Ana").out
    assert "\n## Goal\n\nSay hello to Ana\n" in text
    assert "\n### my.send (once)\nSomething that must not happen twice.\narguments: {" in text
    assert "\n### file.write (idempotent)\n" in text
    assert "x-everstep" not in text
    schema = re.search(r"```json\n(.*)\n```", text)
    assert schema is not None
    assert json.loads(schema[1]) == plan_schema()
    assert not (here.path / ".everstep").exists()


def test_the_form_that_the_prompt_shows_is_a_good_plan(here: Project) -> None:
    form = re.search(r"```yaml\n(.*?)```", here.run("plan", "prompt", "x").out, re.DOTALL)
    assert form is not None
    assert here.run("plan", "check", "-", "--strict", text=form[1]).code == 0


def test_the_prompt_goes_where_it_is_wanted(here: Project) -> None:
    written = here.run("plan", "prompt", "Say hello", "--out", "prompt.md")
    assert (written.code, written.out) == (0, "")
    text = (here.path / "prompt.md").read_text()
    assert here.run("plan", "prompt", "Say hello", "--json").json == {"prompt": text}
    assert here.run("plan", "prompt", "Say hello", "--out", "no/such/prompt.md").code == 4
    assert here.run("plan", "prompt", " ").code == 2
