"""How much work one call through the proxy costs us, counted instead of timed: the limits may only fall."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from everstep import Engine, tool
from everstep.doors.mcp.desk import DoorDesk, DoorLimits
from everstep.doors.mcp.opening import now_ms, own_channel
from everstep.doors.mcp.proxy import ProxyCalls
from everstep.doors.mcp.published import Book
from tests.counted import LOOP, READER, WRITER, counting, flushes_of, writer_of
from tests.unit.doors.mcp.stage import OLD

CALLS: Final = 20
MOST: Final = {
    "calls_on_the_loop": 835,
    "calls_of_the_writer": 180,
    "calls_of_readers": 0.5,  # of all of them together: somebody may look at the clock; of a call, nothing is read
    "statements": 12.5,
    "transactions": 2.1,  # the call before it is made, its outcome before it is told; a heartbeat may fall between
    "flushes": 2.1,
}
"""Of one call: without what the SDK does, and the server behind it."""


@tool.pure("mcp.little.add")
async def add(n: int) -> dict:  # type: ignore[type-arg]
    """Add"""
    return {"text": str(n), "content": [{"type": "text", "text": str(n)}], "structured": None}


@pytest.mark.req("X.5")
async def test_a_call_through_the_proxy_costs_no_more_than_this(tmp_path: Path) -> None:
    remote: Any = SimpleNamespace(name="little", tools=[{"name": "add"}])
    with counting() as counted:
        async with Engine(tmp_path / "everstep.db", tools=[add]) as engine:
            desk = DoorDesk(own_channel(engine, engine.settings), Book(()), DoorLimits(), now_ms)
            calls = ProxyCalls(desk, remote)
            for n in range(3):  # what is worked out once per tool is not counted
                await calls.call(OLD, "add", {"n": n}, {})
            writer, flushes = writer_of(engine.desk), flushes_of(engine.desk)
            counted.begin(writer)
            for n in range(CALLS):
                said = await calls.call(OLD, "add", {"n": 100 + n}, {})
                assert said["content"] == [{"type": "text", "text": str(100 + n)}]
            counted.end()
            done = {
                "calls_on_the_loop": counted.calls[LOOP],
                "calls_of_the_writer": counted.calls[WRITER],
                "calls_of_readers": counted.calls[READER],
                "statements": sum(not one.startswith("--") for one in counted.statements),
                "transactions": sum(one.startswith("COMMIT") for one in counted.statements),
                "flushes": flushes_of(engine.desk) - flushes,
            }
    found = {name: count / CALLS for name, count in done.items()}
    over = {name: f"{found[name]}, at most {most}" for name, most in MOST.items() if found[name] > most}
    assert not over, f"a call costs {found}"
