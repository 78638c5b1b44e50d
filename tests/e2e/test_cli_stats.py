"""`everstep stats` as people see it: figures of a plan and of a task, on a screen of 80 columns."""

from pathlib import Path

import pytest

from tests.e2e.commands import Project

PLAN = """\
name: a-plan-whose-name-is-rather-long-for-a-table
steps:
  - {id: first, tool: text.join, with: {texts: [a, b]}}
  - {id: nap, tool: wait, with: {for: 300ms}}
  - {id: last, tool: text.join, with: {texts: [c, d]}}
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.environment["COLUMNS"] = "80"
    made.write("long.plan.yaml", PLAN)
    return made


@pytest.mark.req("M.1", "M.4")
def test_a_plan_and_a_task_fit_the_screen(here: Project) -> None:
    assert here.run("stats").out == "last 24 h: 0 tasks ended\n0 calls, 0 retries\n"
    for _ in range(2):
        here.run("run", "long.plan.yaml", "--new", "-q")
    shown = here.run("stats")
    assert shown.out.startswith("last 24 h: 2 tasks ended, 100 % well\n")
    assert "text.join      4  100 %" in shown.out
    task = here.run("stats", "@last")
    assert "CRITICAL PATH" in task.out
    assert "nap  <- slowest" in task.out
    told = here.run("stats", "@last", "--json").json
    assert sum(one["total_s"] for one in told["phases"]) == pytest.approx(told["wall_s"], rel=0.01)
    plan = here.run("stats", "a-plan-whose-name-is-rather-long-for-a-table", "--since", "1h", "--json").json
    assert (plan["hours"], plan["plans"][0]["n"]) == (1, 2)
    assert [one["tool"] for one in plan["tools"]] == ["wait", "text.join"], "what takes longest comes first"
    for done in (shown, task):
        assert max(len(line) for line in done.out.splitlines()) <= 80


def test_what_is_not_there_is_said(here: Project) -> None:
    here.run("run", "long.plan.yaml", "-q")
    assert (here.run("stats", "nothing").code, here.run("stats", "t_nothing").code) == (5, 5)
    assert here.run("stats", "--since", "1y").code == 2
    assert here.run("stats", "@last", "--since", "1h").code == 2
