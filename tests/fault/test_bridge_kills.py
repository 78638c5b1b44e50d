"""The four verbs of the bridge, killed around each of their commits: no task without its progress, no verb by half."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine
from everstep.mcp import PROGRESS, TaskBridge, read_progress
from everstep.wire.handoff import variables_json
from tests.fault.mutants import SOURCE
from tests.unit.doors.mcp.stage import Work
from tests.unit.doors.mcp.test_python import pipeline

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
MINE: dict[str, Any] = {"mine": 1, "other": 2}
POINTS = [
    *(f"create.commit.{when}" for when in ("before", "after")),
    *(f"command.commit.{when}" for when in ("before", "after")),
    *(f"intent.commit.{when}:2" for when in ("before", "after")),
    *(f"outcome.commit.{when}:{hit}" for when in ("before", "after") for hit in (1, 2)),
]


async def standing(engine: Engine, task: str) -> Any:
    """The task, when it waits for somebody or has ended."""
    while True:
        state = await engine.desk.get(task, engine.who)
        if state.terminal or state.pauses:
            return state
        await asyncio.sleep(0.02)


async def story(store: Path) -> None:
    """The four verbs, as far as they have not been done yet."""
    async with Engine(store, tools=Work().tools()) as engine:
        bridge, known = TaskBridge(engine), await engine.list()
        task = known[0].id if known else await bridge.create_workflow_task(pipeline(), {})
        state = await standing(engine, task)
        if not state.handover.variables and not state.terminal:
            await bridge.set_task_variables(task, MINE)
        if state.steps["fetch"].output is None and not state.terminal:
            await bridge.continue_workflow_task(task, "fetch_data", {"source": "mirror"})
        if not state.terminal:
            await bridge.complete_workflow_task(task, {"done": True})


def step_result(variables: Any, name: str) -> bool:
    """Whether a result is shown of it, not an error."""
    value = variables.get(f"_workflow.result.{name}")
    return value is not None and "error" not in value


async def whole(store: Path) -> int:
    """Every task has its progress, and every verb was done or not; how many tasks there are."""
    async with Engine(store, tools=Work().tools(), worker=False) as engine:
        tasks = await engine.list()
        for one in tasks:
            state = await engine.desk.get(one.id, engine.who)
            variables = variables_json(state, one.id)
            steps = read_progress(variables[PROGRESS]).steps
            assert [step.name for step in steps] == ["fetch", "transform", "store"]
            ended = {step.name for step in steps if step.status == "completed"}
            assert ended == {name for name in ("fetch", "transform", "store") if step_result(variables, name)}
            assert {name: variables[name] for name in MINE if name in variables} in ({}, MINE)
            assert (one.status == "completed") == (one.outputs == {"done": True})
            assert (one.status == "completed") == ([step.status for step in steps[1:]] == ["skipped", "skipped"])
        return len(tasks)


@pytest.mark.req("FNDX-04", "EXEC-01.a", "CONT-02")
@pytest.mark.parametrize("point", POINTS)
def test_killed_at(tmp_path: Path, point: str) -> None:
    store = tmp_path / "work.db"
    environ = {**os.environ, "PYTHONPATH": str(SOURCE), "EVERSTEP_FAILPOINTS": f"{point}=sigkill"}
    program = f"import asyncio, pathlib; from {__name__} import story; asyncio.run(story(pathlib.Path({str(store)!r})))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environ, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == -9, done.stderr.decode()[-2000:]
    assert asyncio.run(whole(store)) == (0 if point == "create.commit.before" else 1)
    asyncio.run(story(store))
    assert asyncio.run(whole(store)) == 1
