"""How do I publish a plan to MCP clients, so that a model starts it, and finishes it when it cannot go on?"""

import asyncio
import os
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from everstep import Engine, Transient, tool
from everstep.mcp import McpServer, Workflow, WorkflowStep, field, prompt_arg


@tool.pure("fetch_data")
async def fetch_data(source: str) -> dict[str, Any]:
    """Read records"""
    if "mirror" not in source:
        raise Transient("connection refused")
    return {"rows": [["a", 1]]}


@tool("store_data")
async def store_data(payload: list[Any]) -> dict[str, int]:
    """Save rows"""
    return {"stored": len(payload)}


async def serve() -> None:
    workflow = (
        Workflow("data-pipeline", "fetch and store records")
        .argument("source", "Where the records are")
        .step(WorkflowStep("fetch", "fetch_data").arg("source", prompt_arg("source")).bind("raw"))
        .step(WorkflowStep("store", "store_data").arg("payload", field("raw", "rows")))
        .with_task_support(True)  # noqa: FBT003
    )
    engine = Engine("pipeline.db", tools=[fetch_data, store_data], config={"retry.times": 0})
    await McpServer(engine).prompt_workflow(workflow).serve_stdio()


async def drive() -> tuple[Any, Any]:
    """What a client does; any client: the last message tells the model which calls remain."""
    command = StdioServerParameters(command=sys.executable, args=[__file__, "--serve"], env=dict(os.environ))
    async with stdio_client(command) as streams, ClientSession(*streams) as client:
        await client.initialize()
        told = await client.get_prompt("data-pipeline", {"source": "http://down.test"})
        task: Any = {"_task_id": (told.meta or {})["task_id"]}
        await client.call_tool("fetch_data", {"source": "http://mirror.test"}, meta=task)
        stored = await client.call_tool("store_data", {"payload": "<field 'rows' from raw>"}, meta=task)
        return told.messages[-1].content, stored.structured_content


if "--serve" in sys.argv:
    asyncio.run(serve())
else:
    handed_over, stored = asyncio.run(drive())
    print(handed_over, stored)

    assert "Call store_data with" in handed_over.text
    assert stored == {"stored": 1}
