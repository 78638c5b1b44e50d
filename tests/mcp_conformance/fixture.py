"""The server that the official conformance suite is run against: this door, with the suite's tools, and no gate.

python tests/mcp_conformance/fixture.py PORT CALL_LOG
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvicorn

from everstep import Ctx, Engine, Impossible, NeedsInput, Plan, tool
from everstep.doors.mcp.calls import Calls
from everstep.doors.mcp.desk import Client, DoorDesk, DoorLimits
from everstep.doors.mcp.http import HttpDoor
from everstep.doors.mcp.opening import now_ms, own_channel
from everstep.doors.mcp.published import Book, Published
from everstep.doors.mcp.server import McpDoor

SLOW_S = 3.0
"""Longer than a call may take before it becomes a task."""
LOG = Path(sys.argv[2]) if len(sys.argv) > 2 else Path("calls.log")

CONFIRM: dict[str, Any] = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}


def note(name: str) -> None:
    with LOG.open("a") as log:
        log.write(f"{name}\n")


@tool.pure("greet")
async def greet(name: str = "you") -> str:
    """Greet somebody"""
    note("greet")
    return f"Hello, {name}!"


@tool.pure("slow_compute")
async def slow_compute(seconds: float = 0.0, label: str = "") -> str:
    """Compute for a while"""
    note("slow_compute")
    await asyncio.sleep(max(seconds, SLOW_S))
    return f"computed {seconds} {label}"


@tool.pure("failing_job")
async def failing_job() -> str:
    """Fail after a while"""
    note("failing_job")
    await asyncio.sleep(SLOW_S)
    raise Impossible("the job failed")


@tool.pure("protocol_error_job")
async def protocol_error_job() -> str:
    """Break after a while"""
    note("protocol_error_job")
    await asyncio.sleep(SLOW_S)
    raise RuntimeError("panic")


@tool.pure("confirm_delete")
async def confirm_delete(filename: str = "a.txt", *, ctx: Ctx) -> str:
    """Delete a file, once somebody has agreed"""
    if ctx.answer is None:
        raise NeedsInput(f"Delete {filename}?", schema=CONFIRM)
    note("confirm_delete")
    return f"deleted {filename}"


@tool.pure("test_simple_text")
async def test_simple_text() -> str:
    """Say something"""
    note("test_simple_text")
    return "This is a simple text response for testing."


@tool.pure("test_error_handling")
async def test_error_handling() -> str:
    """Fail at once"""
    note("test_error_handling")
    raise Impossible("This tool intentionally returns an error for testing")


ALIASES = {"multi-input": "multi_input", "test-tool-with-task": "test_tool_with_task"}
PLANS: list[dict[str, Any]] = [
    {
        "name": "test-tool-with-task",
        "description": "Ask first, then compute",
        "inputs": {"name": "string"},
        "steps": [{"id": "done", "tool": "greet", "with": {"name": "${inputs.name}"}}],
        "outputs": {"greeting": "${done}"},
    },
    {
        "name": "multi-input",
        "description": "Ask two things at once",
        "parallel": 2,
        "steps": [
            {"id": "first", "needs": [], "tool": "ask", "with": {"question": "First?", "schema": CONFIRM}},
            {"id": "second", "needs": [], "tool": "ask", "with": {"question": "Second?", "schema": CONFIRM}},
            {"id": "done", "needs": ["first", "second"], "tool": "greet", "with": {"name": "both"}},
        ],
    },
]


def published() -> list[Published]:
    return [Published(plan=Plan.from_dict(one).spec, tool=True) for one in PLANS]


async def main(port: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tools: list[Any] = [greet, slow_compute, failing_job, protocol_error_job]
        tools += [confirm_delete, test_simple_text, test_error_handling]
        async with Engine(Path(folder) / "fixture.db", tools=tools) as engine:
            exposed = [one.spec.name for one in tools]
            book = Book(published(), exposed, task_only=["failing_job"])
            book.workflows = {ALIASES.get(name, name): one for name, one in book.workflows.items()}
            limits = DoorLimits(task_after_s=SLOW_S / 2, trust_elicitation="always")
            desk = DoorDesk(own_channel(engine, engine.settings), book, limits, now_ms)
            door = HttpDoor(Fixture(desk), "1.0")
            server = uvicorn.Server(uvicorn.Config(door, port=port, log_level="error", lifespan="off"))
            await server.serve()
            await door.close()


class FixtureCalls(Calls):
    """Calls, written down: a check that passes without one proves nothing."""

    async def call(self, client: Client, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
        note(name)
        return await super().call(client, name, arguments, meta)


class Fixture(McpDoor):
    """The door with these calls."""

    def __init__(self, desk: DoorDesk) -> None:
        super().__init__(desk, owner="local", stdio=False)
        self.calls = FixtureCalls(desk)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
