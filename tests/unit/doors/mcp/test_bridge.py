"""The verbs of the bridge: each is one transaction, on every store; `_workflow.progress` is there from the start."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine
from everstep.adapters.stores.memory import MemoryStore
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.domain.errors import Validation
from everstep.mcp import PROGRESS, StepProgress, TaskBridge, read_progress
from everstep.testing import TestEngine
from everstep.wire.handoff import variables_json
from everstep.wire.schema import compile_schema
from tests.unit.doors.mcp.stage import SOURCE, Work, stage
from tests.unit.doors.mcp.test_python import pipeline

STEP = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tool": {"type": "string"},
        "status": {"enum": ["pending", "completed", "failed", "skipped"]},
    },
    "required": ["name", "status"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "steps": {"type": "array", "items": STEP},
        "schemaVersion": {"const": 1},
    },
    "required": ["goal", "steps", "schemaVersion"],
    "additionalProperties": False,
}


@pytest.mark.req("FNDX-03")
async def test_the_progress_of_a_real_reply_keeps_to_its_schema() -> None:
    async with stage() as on:
        task = (await on.prompt(SOURCE))["_meta"]["task_id"]
        said = (await on.ask("GET", f"/v1/tasks/{task}/variables"))[PROGRESS]
        assert [*compile_schema(SCHEMA)(said)] == []
        assert said["goal"] == "data-pipeline: move records"
        assert said["steps"][0] == {"name": "fetch", "tool": "fetch_data", "status": "failed"}
        whole = read_progress(said)
        more = {**said, "later": {"x": 1}, "steps": [{**step, "later": True} for step in said["steps"]]}
        assert read_progress(more) == whole
        assert whole.steps[0] == StepProgress(name="fetch", status="failed", tool="fetch_data")


@pytest.mark.req("FNDX-03")
@pytest.mark.parametrize("value", [None, [], {"goal": "x"}, {"goal": "x", "steps": [1], "schemaVersion": 1}])
def test_what_is_no_progress_is_refused(value: Any) -> None:
    with pytest.raises(Validation):
        read_progress(value)


class Watched:
    """What a store is told to keep, transaction by transaction, as the names of events."""

    def __init__(self, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[list[str]] = []
        create = kind.create_tasks

        def noting(verb: Any) -> Any:
            def commit(store: Any, units: Any) -> Any:
                self.seen.extend([type(draft.body).__name__ for draft in unit.drafts] for unit in units)
                return verb(store, units)

            return commit

        def creating(store: Any, tasks: Any) -> Any:
            self.seen.extend([type(one.created.body).__name__] for one in tasks)
            return create(store, tasks)

        for name in ("commit_steps", "commit_commands"):
            monkeypatch.setattr(kind, name, noting(getattr(kind, name)))
        monkeypatch.setattr(kind, "create_tasks", creating)

    def take(self) -> list[list[str]]:
        seen, self.seen = self.seen, []
        return seen


@pytest.mark.req("FNDX-04")
@pytest.mark.parametrize("kind", [MemoryStore, SqliteStore])
async def test_each_verb_is_one_transaction(kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, tools = Watched(kind, monkeypatch), Work().tools()
    opened: Any = TestEngine(tools) if kind is MemoryStore else Engine(tmp_path / "work.db", tools=tools)
    async with opened as engine:
        bridge = TaskBridge(engine)
        task = await bridge.create_workflow_task(pipeline(), {"source": "a"})
        assert watched.take()[0] == ["TaskCreated"]
        assert read_progress(variables_json(await engine.desk.get(task, engine.who), task)[PROGRESS]).steps
        while not (await engine.desk.get(task, engine.who)).pauses:
            await (engine.clock.advance("10s") if kind is MemoryStore else asyncio.sleep(0.02))
        watched.take()
        await bridge.set_task_variables(task, {"mine": 1, "other": 2})
        assert watched.take() == [["TaskUpdated"]]
        await bridge.continue_workflow_task(task, "fetch_data", {"source": "mirror"})
        intent, outcome = watched.take()
        assert intent == ["PauseWithdrawn"]  # with what takes the task up, and the call
        assert {"StepCompleted", "TaskContinued"} <= set(outcome)
        await bridge.complete_workflow_task(task, {"done": True})
        (completed,) = watched.take()
        assert completed[-1] == "TaskCompleted"
        assert completed.count("StepSkipped") == 2
