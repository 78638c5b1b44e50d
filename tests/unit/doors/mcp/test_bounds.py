"""What an operator bounds in `[mcp]`: how much a task shows and keeps, and how many sessions one owner has."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from everstep import Engine, EverstepError
from everstep.domain.errors import Validation
from everstep.domain.values import JsonValue
from everstep.doors.mcp.opening import limits_in
from everstep.mcp import TaskBridge, Workflow, WorkflowStep, constant
from everstep.settings import load_settings
from tests.unit.doors.mcp.stage import NEW, OLD, Work, plan_of, stage


@pytest.mark.parametrize("client", [NEW, OLD], ids=["2026-07-28", "2025-11-25"])
async def test_results_beyond_the_bound_are_named_not_shown(client: Any) -> None:
    """Those that fit are shown all the same; the named ones can be read."""
    steps = [{"id": f"s{n}", "tool": "big.thing", "with": {"size": 400}} for n in range(3)]
    stop = {"id": "stop", "tool": "fetch_data", "with": {"source": "a"}, "retry": 0}
    limits = limits_in(load_settings({"mcp.variables": "1KiB"}, env={}))
    async with stage(plan_of(*steps, stop), limits=limits) as on:
        task = (await on.prompt({}))["_meta"]["task_id"]
        shown = (await on.tasks.get(client, task))["_meta"]
        assert [isinstance(shown[f"_workflow.result.s{n}"], str) for n in range(3)] == [True, True, False]
        named = shown["_workflow.result.s2"]
        assert (named["truncated"], named["uri"]) == (True, f"task://{task}/steps/s2/output")
        assert "x" * 400 in str(await on.resources.read(client, named["uri"]))
        assert shown["_workflow.result.stop"] == {"error": "connection refused"}


async def test_what_a_program_keeps_with_a_task_is_bounded(tmp_path: Path) -> None:
    """What is refused changes nothing, and deleting makes room."""
    workflow = Workflow("w", "wait").step(WorkflowStep("a", "say").arg("text", constant("x"))).with_task_support(True)
    said = {"store": str(tmp_path / "store.db"), "mcp.variables": "2KiB"}
    async with Engine(config=load_settings(said, env={}, cwd=tmp_path), tools=Work().tools()) as engine:
        bridge = TaskBridge(engine)
        task = await bridge.create_workflow_task(workflow, {})
        await bridge.set_task_variables(task, {"first": "x" * 1500})
        with pytest.raises(Validation, match="2048 are allowed"):
            await bridge.set_task_variables(task, {"second": "y" * 1000})
        deep: Any = "z"
        for _ in range(11):
            deep = [deep]
        with pytest.raises(Validation, match="nested too deeply"):
            await bridge.set_task_variables(task, {"deep": deep})
        await bridge.set_task_variables(task, {"first": None, "second": "y" * 1000})
        state = await engine.desk.get(task, engine.who)
        assert state.handover is not None
        assert state.handover.variables == {"second": "y" * 1000}


@asynccontextmanager
async def session(app: Any, token: str) -> AsyncIterator[ClientSession]:
    """The official client of the older revision, which has sessions; closing it ends the session."""
    transport = httpx2.ASGITransport(app=app)
    async with (
        httpx2.AsyncClient(transport=transport, headers={"authorization": f"Bearer {token}"}) as http,
        streamable_http_client("http://localhost/mcp", http_client=http, terminate_on_close=True) as streams,
        ClientSession(streams[0], streams[1]) as client,
    ):
        await asyncio.wait_for(client.initialize(), 60)
        yield client


async def test_one_owner_has_so_many_sessions_and_one_that_ends_makes_room(tmp_path: Path) -> None:
    said: dict[str, JsonValue] = {"store": str(tmp_path / "store.db"), "mcp.sessions_per_owner": 2}
    async with Engine(config=load_settings(said, env={}, cwd=tmp_path)) as engine:
        app = engine.asgi()
        assert await _status(app, "none") == 401  # and from now on there is a token
        token = (tmp_path / "store.token").read_text().strip()
        async with AsyncExitStack() as open_now:
            for _ in range(2):
                await open_now.enter_async_context(session(app, token))
            assert await _status(app, token) == 429
        async with session(app, token) as again:
            assert "list_tasks" in [one.name for one in (await again.list_tools()).tools]


async def _status(app: Any, token: str) -> int:
    """What somebody hears who wants one more."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "one-more", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as http:
        return (await http.post("/mcp", json=body, headers=headers)).status_code


async def test_a_bound_of_nothing_is_refused_by_name() -> None:
    for key in ("mcp.sessions_per_owner", "mcp.variables"):
        with pytest.raises(EverstepError, match=key):
            load_settings({key: 0}, env={})
