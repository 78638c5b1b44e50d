"""The server that the official conformance suite is run against: this door, with the suite's tools, and no gate.

python tests/mcp_conformance/fixture.py PORT CALL_LOG
"""

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from everstep import Ctx, Engine, Impossible, NeedsInput, Plan, tool  # noqa: E402 -- a program, not a package
from everstep.doors.http.names import names_of  # noqa: E402
from everstep.doors.mcp.bridge import call_result  # noqa: E402
from everstep.doors.mcp.calls import Calls  # noqa: E402
from everstep.doors.mcp.desk import Client, DoorDesk, DoorLimits  # noqa: E402
from everstep.doors.mcp.door import McpDoor  # noqa: E402
from everstep.doors.mcp.http import HttpDoor  # noqa: E402
from everstep.doors.mcp.opening import now_ms, own_channel  # noqa: E402
from everstep.doors.mcp.prompts import Prompts  # noqa: E402
from everstep.doors.mcp.published import Book, Published  # noqa: E402
from everstep.doors.mcp.refusals import MISSING_CAPABILITY, Refused  # noqa: E402
from everstep.doors.mcp.resources import Resources  # noqa: E402
from everstep.doors.mcp.talk import SILENT, Talk, Tell  # noqa: E402
from tests.mcp_conformance.core import LISTED, RESOURCES, ROUNDS, SHOWN, SIMPLE, TOOLS  # noqa: E402

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


TRIGGERS = {"test_trigger_tool_change": "test_error_handling", "test_trigger_prompt_change": "test_simple_text"}
"""Calls that publish one workflow more, with a step of this tool."""
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
    return [Published(plan=Plan.from_dict(one).spec, tool=one not in SIMPLE) for one in (*PLANS, ROUNDS, *SIMPLE)]


async def main(port: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tools: list[Any] = [greet, slow_compute, failing_job, protocol_error_job]
        tools += [confirm_delete, test_simple_text, test_error_handling, *TOOLS]
        async with Engine(Path(folder) / "fixture.db", tools=tools) as engine:
            exposed = [one.spec.name for one in tools]
            book = Book(published(), exposed, task_only=["failing_job"])
            book.workflows = {name.replace("-", "_"): one for name, one in book.workflows.items()}
            limits = DoorLimits(task_after_s=SLOW_S / 2, trust_elicitation="always", sessions_per_owner=1000)
            desk = DoorDesk(own_channel(engine, engine.settings), book, limits, now_ms)
            door = HttpDoor(Fixture(desk), "1.0")
            app = named_right(door)
            server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="off"))
            await server.serve()
            await door.close()


def named_right(app: Any) -> Any:
    """The part of our gate that needs no token: under which name we are asked, and from where."""
    names = names_of((), (), secure=False)

    async def checked(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        host, origin = headers.get("host", ""), headers.get("origin")
        if names.is_host(host) and (origin is None or names.is_origin(origin, host, scope["scheme"])):
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 403, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return checked


class FixtureCalls(Calls):
    """Calls, written down: a check that passes without one proves nothing."""

    async def offered(self, client: Client) -> list[dict[str, Any]]:
        listed = await super().offered(client)
        triggers = [
            {"name": name, "description": "Change a list", "inputSchema": {"type": "object"}} for name in TRIGGERS
        ]
        return [*({**one, "inputSchema": LISTED.get(one["name"], one["inputSchema"])} for one in listed), *triggers]

    async def call(
        self, client: Client, name: str, arguments: dict[str, Any], meta: dict[str, Any], *, talk: Talk = SILENT
    ) -> dict[str, Any]:
        note(name)
        if name == "test_missing_capability":
            raise Refused(MISSING_CAPABILITY, "This needs a model", {"requiredCapabilities": {"sampling": {}}})
        if name in TRIGGERS:
            plan: dict[str, Any] = {"name": "one-more", "steps": [{"id": "hello", "tool": TRIGGERS[name], "with": {}}]}
            self._desk.book.publish(Published(plan=Plan.from_dict(plan).spec))
            return call_result("changed")
        return shown(name, await super().call(client, name, arguments, meta, talk=talk))

    async def resumed(
        self, client: Client, asked: str, responses: dict[str, Any], *, talk: Talk = SILENT
    ) -> dict[str, Any]:
        if "user_name" in responses:  # as the suite calls its question
            _, view = await self._desk.held(client, asked.partition(".")[0])
            story = await self._desk.story(client, view.handle)
            responses = {next(iter(story.state.pauses)): responses["user_name"]}
        return await super().resumed(client, asked, responses, talk=talk)


def shown(name: str, made: dict[str, Any]) -> dict[str, Any]:
    """What the suite wants to see: content as a tool made it, and questions by its own names."""
    given = (made.get("structuredContent") or {}).get("content")
    if given is not None:
        return {"content": given, "isError": False}
    if name == "test_input_required_result_elicitation" and "inputRequests" in made:
        return {**made, "inputRequests": {"user_name": next(iter(made["inputRequests"].values()))}}
    return made


class FixturePrompts(Prompts):
    """Workflows, and what no workflow shows."""

    def offered(self) -> list[dict[str, Any]]:
        return [*super().offered(), *({"name": name, "description": "Show something"} for name in SHOWN)]

    async def get(self, client: Client, name: str, arguments: Mapping[str, str], tell: Tell) -> dict[str, Any]:
        if name in SHOWN:
            return {"messages": [{"role": "user", "content": one} for one in SHOWN[name]]}
        return await super().get(client, name, arguments, tell)


class FixtureResources(Resources):
    """Plans and tasks, and what the suite reads."""

    def plans(self) -> list[dict[str, Any]]:
        return [*super().plans(), *({"uri": uri, "name": uri} for uri in RESOURCES)]

    async def read(self, client: Client, uri: str) -> dict[str, Any]:
        if uri in RESOURCES:
            return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
        return await super().read(client, uri)


class Fixture(McpDoor):
    """The door with these."""

    def __init__(self, desk: DoorDesk) -> None:
        super().__init__(desk, owner="local", stdio=False)
        self.calls = FixtureCalls(desk)
        self.prompts = FixturePrompts(desk)
        self.resources = FixtureResources(desk)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
