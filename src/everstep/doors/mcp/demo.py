"""`everstep demo mcp-handoff`: the worked example without a client or a network: both sides are played here."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.doors.mcp.calls import Calls
from everstep.doors.mcp.channel import Caller
from everstep.doors.mcp.desk import Client, DoorDesk, DoorLimits
from everstep.doors.mcp.opening import now_ms, own_channel
from everstep.doors.mcp.prompts import Prompts
from everstep.doors.mcp.published import Book, Published
from everstep.doors.mcp.tasks import Tasks
from everstep.facade.engine import Engine
from everstep.ports.tool import Transient

MIRROR: Final = "http://mirror.test/x"
PLAN: Final[dict[str, Any]] = {
    "name": "data-pipeline",
    "description": "fetch, transform and store records",
    "inputs": {"source": {"type": "string", "description": "Where the records are"}},
    "steps": [
        {
            "id": "fetch",
            "bind": "raw_data",
            "tool": "fetch_data",
            "with": {"source": "${inputs.source}"},
            "retry": 0,
            "retryable": True,
            "guidance": "If ${inputs.source} stays down, use the mirror.",
        },
        {
            "id": "transform",
            "bind": "transformed",
            "tool": "transform_data",
            "with": {"data": "${raw_data}", "format": "rows"},
        },
        {"id": "store", "tool": "store_data", "with": {"payload": "${transformed.rows}"}},
    ],
}


@tool.pure("fetch_data")
async def fetch_data(source: str) -> dict[str, list[str]]:
    """Read records"""
    if source != MIRROR:
        raise Transient("connection refused")
    return {"lines": ["a,1"]}


@tool.pure("transform_data")
async def transform_data(data: dict[str, list[str]], format: str = "rows") -> dict[str, list[list[str]]]:  # noqa: ARG001 -- one format so far
    """Shape records"""
    return {"rows": [line.split(",") for line in data["lines"]]}


@tool("store_data")
async def store_data(payload: list[list[str]]) -> dict[str, int]:
    """Save rows"""
    return {"stored": len(payload)}


async def play(say: Callable[[str], None]) -> bool:
    """Create, execute, hand over, go on, complete; whether the task is complete in the end."""
    with tempfile.TemporaryDirectory() as folder:
        async with Engine(Path(folder) / "demo.db", tools=[fetch_data, transform_data, store_data]) as engine:
            book = Book([Published(plan=Plan.from_dict(PLAN).spec, task_support=True)])
            desk = DoorDesk(own_channel(engine, engine.settings), book, DoorLimits(), now_ms)
            return await _both_sides(desk, say)


async def _both_sides(desk: DoorDesk, say: Callable[[str], None]) -> bool:
    client = Client(caller=Caller(owner="local", name="demo"), elicits=True, tasks=True)

    async def quiet(_done: int, _total: int, _text: str) -> None:
        """Nobody watches."""

    say("a client asks for the workflow; the server does what it can:\n")
    begun = await Prompts(desk).get(client, "data-pipeline", {"source": "http://a.test/x"}, quiet)
    for message in begun["messages"]:
        say(f"{message['role']}: {message['content']['text'].rstrip()}\n")
    task = begun["_meta"]["task_id"]
    say("the client's model goes on with ordinary tool calls, from the mirror:\n")
    for name, arguments in (
        ("fetch_data", {"source": MIRROR}),
        ("transform_data", {"data": "<output from raw_data>", "format": "rows"}),
        ("store_data", {"payload": [["a", "1"]]}),
    ):
        made = await Calls(desk).call(client, name, dict(arguments), {"_task_id": task})
        say(f"  {name} -> {made['content'][0]['text']}")
    tasks = Tasks(desk)
    say(f"\nstatus: {(await tasks.get(client, task))['statusMessage']}")
    await tasks.cancel(client, {"taskId": task, "result": {"stored": 1, "source": "mirror"}})
    ended = await tasks.get(client, task)
    say(f"status: {ended['statusMessage']}  result: {ended['result']['content'][0]['text']}")
    return bool(ended["status"] == "completed")
