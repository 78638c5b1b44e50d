"""The hand-off over MCP is the same whoever carries the task: a step fails, and the client goes on from there."""

from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from everstep.torture.checker import check
from everstep.torture.dump import dump
from tests.e2e.carriers import KINDS
from tests.e2e.mcp_project import MODERN, make_project, wire
from tests.postgres import schema
from tests.temporal import server_address


@pytest.mark.req("X.3")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_hand_off(kind: str, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    said = project / "everstep.toml"
    with ExitStack() as stack:
        store = str(project / ".everstep" / "everstep.db")
        if kind != "embedded":
            store = stack.enter_context(schema())
            said.write_text(f'store = "{store}"\n{said.read_text()}')
        if kind == "temporal":
            there = f'[engine]\nkind = "temporal"\n[temporal]\naddress = "{server_address()}"\nqueue = "{uuid4()}"\n'
            said.write_text(said.read_text() + there)
        async with wire(project, MODERN) as client:
            begun = await client.good(
                "prompts/get", {"name": "data-pipeline", "arguments": {"source": "http://a.test/x"}}
            )
            task = begun["_meta"]["task_id"]
            assert begun["_meta"]["pause_reason"]["failedStep"] == "fetch"
            await client.call("fetch_data", {"source": "http://mirror.test/x"}, task)
            await client.call("transform_data", {"data": "<output from raw_data>", "format": "rows"}, task)
            last = await client.call("store_data", {"payload": [["a", 1]]}, task)
            assert {one["status"] for one in last["_meta"]["steps"]} == {"completed"}
            await client.good("tasks/cancel", {"taskId": task, "result": {"stored": 1}})
            assert (await client.good("tasks/get", {"taskId": task}))["status"] == "completed"
            assert await client.leave() == 0
        assert (project / "calls.log").read_text().split() == ["fetch", "fetch", "transform", "store"]
        journal = Path(store) if kind == "embedded" else dump(store, tmp_path / "journal.db")
        assert check(journal) == []
