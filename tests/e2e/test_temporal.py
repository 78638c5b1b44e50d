"""What is Temporal's own: its workflow, its histories, its cancel; and that a store has one kind of engines."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from everstep import Engine, Pause, Plan, Task, durable, tool
from everstep.adapters.temporal import workflow
from everstep.adapters.temporal.workflow import NAME, CarriedTask
from everstep.domain.values import JsonObject
from everstep.engine.apart import Apart
from everstep.errors import EverstepError
from everstep.torture.checker import check
from tests.e2e.carriers import QUICK
from tests.temporal import server_address

HISTORIES = Path(__file__).parent / "histories"
DECIDED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
PATIENCE_S = 120
pytestmark = pytest.mark.req("X.3")


class Held:
    """A tool that waits."""

    def __init__(self) -> None:
        self.begun, self.release = asyncio.Event(), asyncio.Event()
        self.calls = 0


@pytest.fixture
def address() -> str:
    """Of the server of this run."""
    return server_address()


@tool("there.add", effect="pure")
async def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


@durable("sum-there", version="1")
async def sum_up(ctx: Any, n: int) -> dict[str, int]:
    """One call after the other."""
    total = 0
    for one in range(n):
        total = await ctx.call(add, {"a": total, "b": one})
    return {"total": total}


def holds(held: Held) -> tuple[object, ...]:
    @tool("there.hold", effect="idempotent")
    async def hold() -> str:
        """Wait."""
        held.calls += 1
        held.begun.set()
        await held.release.wait()
        return "held"

    @tool("there.hold_once")
    async def hold_once() -> str:
        """Wait, and never again."""
        return str(await hold())

    return hold, hold_once


def config(address: str, queue: str, **engine: str) -> JsonObject:
    return {
        "engine": {**QUICK, "stale_after": "1s", "kind": "temporal", **engine},
        "temporal": {"address": address, "queue": queue},
    }


@pytest.fixture
async def held() -> Held:
    return Held()


@pytest.fixture
async def engine(address: str, held: Held, tmp_path: Path) -> AsyncIterator[Engine]:
    """On one file: a worker and its own door."""
    tools = (add, sum_up, *holds(held))
    async with Engine(tmp_path / "everstep.db", tools=tools, config=config(address, uuid4().hex)) as opened:
        yield opened
        held.release.set()
    assert check(tmp_path / "everstep.db") == []


async def ended(task: Task) -> str:
    return (await asyncio.wait_for(task.result(), PATIENCE_S)).status


def hold_plan(name: str = "there.hold") -> Plan:
    return Plan.from_dict({"name": "h", "steps": [{"id": "a", "tool": name}]})


async def test_a_durable_function(engine: Engine) -> None:
    result = await asyncio.wait_for(engine.run(sum_up, {"n": 4}), PATIENCE_S)
    assert (result.status, result.outputs) == ("completed", {"total": 6})


async def test_a_worker_that_fails_is_replaced(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(Apart, "trouble", lambda _self, what, error: said.append(f"{what}: {error.__cause__}"))
    driver: Any = vars(engine.desk._runtime.loop)["_driver"]
    await asyncio.wait_for(engine.run(sum_up, {"n": 1}), PATIENCE_S)
    failing = [*driver._workers]
    assert len(failing) == 2
    for worker in failing:
        worker._activity_worker._fail_worker_exception_queue.put_nowait(RuntimeError("what nobody foresaw"))
    result = await asyncio.wait_for(engine.run(sum_up, {"n": 4}), PATIENCE_S)
    assert result.outputs == {"total": 6}
    assert len(driver._workers) == 2
    assert not {*failing} & {*driver._workers}
    assert said == ["a worker of Temporal failed: what nobody foresaw"] * 2


async def test_who_cancels_the_workflow_cancels_the_task(engine: Engine, address: str, held: Held) -> None:
    task = await engine.start(hold_plan())
    await asyncio.wait_for(held.begun.wait(), PATIENCE_S)
    client = await Client.connect(address)
    assert (await client.get_workflow_handle(task.id).query("turn"))["open"][0]["step"] == "a"
    await client.get_workflow_handle(task.id).cancel()
    assert await ended(task) == "cancelled"


async def test_a_workflow_that_is_terminated_is_begun_again(engine: Engine, address: str, held: Held) -> None:
    task = await engine.start(hold_plan())
    await asyncio.wait_for(held.begun.wait(), PATIENCE_S)
    client = await Client.connect(address)
    await client.get_workflow_handle(task.id).terminate("to see what happens")
    held.begun.clear()
    await task.pause()  # somebody says something about it
    await task.resume()
    await asyncio.wait_for(held.begun.wait(), PATIENCE_S)
    held.release.set()
    assert await ended(task) == "completed"
    assert held.calls == 2, "it may be repeated, and nobody knows what became of the first call"


async def test_a_call_that_is_delivered_twice_is_made_once(
    engine: Engine, address: str, held: Held, tmp_path: Path
) -> None:
    """A reset workflow asks for the call again under the same lease, while the first one is under way."""
    task = await engine.start(hold_plan("there.hold_once"))
    await asyncio.wait_for(held.begun.wait(), PATIENCE_S)
    client = await Client.connect(address)
    handle = client.get_workflow_handle(task.id)
    turns = [one.event_id async for one in handle.fetch_history_events() if one.event_type == DECIDED]
    await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=task.id),
            reason="to have it delivered again",
            workflow_task_finish_event_id=turns[1],  # the one that asked for the call
            request_id=task.id,
        )
    )
    pause = await asked(engine, task)
    assert pause.type == "uncertainOutcome"
    assert held.calls == 1
    log = (tmp_path / "logs" / "everstep.log").read_text()
    assert "asked again for a call that has begun" in log
    await pause.happened("held")
    assert await ended(task) == "completed"
    assert held.calls == 1


async def asked(engine: Engine, task: Task) -> Pause:
    """The question, once it is asked."""
    async with asyncio.timeout(PATIENCE_S):
        async for event in task.events():
            if event.type == "pause.opened":
                break
    (pause,) = await engine.inbox()
    return pause


@pytest.mark.parametrize("parallel", [1, 3])
async def test_a_long_history_is_left_behind(
    engine: Engine, address: str, monkeypatch: pytest.MonkeyPatch, parallel: int
) -> None:
    """Between two calls; where calls overlap all the time none is begun until those under way have ended."""
    monkeypatch.setattr(workflow, "EVENTS_MAX", 40)
    monkeypatch.setattr(workflow, "EVENTS_FULL", 60)
    steps: list[Any] = [{"id": f"s{n}", "tool": "there.add", "with": {"a": n, "b": 1}, "needs": []} for n in range(18)]
    task = await engine.start(Plan.from_dict({"name": "long", "steps": steps, "parallel": parallel}))
    assert await ended(task) == "completed"
    client = await Client.connect(address)
    await client.get_workflow_handle(task.id).result()
    first = (await client.get_workflow_handle(task.id).fetch_history()).events[0]
    assert first.workflow_execution_started_event_attributes.continued_execution_run_id, "this is not the first part"
    told = [event.type async for event in task.events(follow=False)]
    assert (told.count("task.started"), told.count("attempt.started")) == (1, 18), "one holder, and no call twice"


async def test_a_store_has_one_kind(address: str, tmp_path: Path) -> None:
    store, there = tmp_path / "everstep.db", config(address, uuid4().hex)
    async with Engine(store, config=there):
        pass
    with pytest.raises(EverstepError) as refused:
        await Engine(store).open()
    assert refused.value.code == "store_refused"
    assert "embedded" in str(refused.value)
    assert "engine.kind" in str(refused.value.what_to_do)
    async with Engine(store, worker=False):
        """Who carries nothing is of no kind."""
    async with Engine(tmp_path / "other.db"):
        pass
    with pytest.raises(EverstepError) as refused:
        await Engine(tmp_path / "other.db", config=there).open()
    assert refused.value.code == "store_refused"


async def test_histories_replay(engine: Engine, address: str) -> None:
    """Those of this run, and those that were recorded when the workflow had its form of today."""
    steps: list[Any] = [{"id": f"s{n}", "tool": "there.add", "with": {"a": n, "b": 1}} for n in range(3)]
    steps.insert(1, {"id": "w", "tool": "wait", "with": {"for": "50ms"}})
    task = await engine.start(Plan.from_dict({"name": "r", "steps": steps}))
    assert await ended(task) == "completed"
    client = await Client.connect(address)
    await client.get_workflow_handle(task.id).result()
    fresh = await client.get_workflow_handle(task.id).fetch_history()
    recorded = [WorkflowHistory.from_json(file.stem, file.read_text()) for file in sorted(HISTORIES.glob("*.json"))]
    assert recorded
    replayer = Replayer(workflows=[CarriedTask], workflow_runner=UnsandboxedWorkflowRunner())
    for history in (fresh, *recorded):
        await replayer.replay_workflow(history)


def test_nothing_of_it_is_imported_otherwise(tmp_path: Path) -> None:
    code = "import sys, everstep.bootstrap, everstep.doors.cli.worker_command; print('temporalio' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ), capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == ["False"]
    assert NAME == "everstep.task"
