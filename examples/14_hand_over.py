"""The engine cannot go on. How does somebody else, most often a model, finish the task, and what is left for them?"""

import asyncio

from everstep import Engine, Transient, tool
from everstep.mcp import TaskBridge, Workflow, WorkflowStep, field, prompt_arg

calls: list[str] = []


@tool.pure("fetch_data")
async def fetch_data(source: str) -> dict[str, list[str]]:
    """Read records."""
    calls.append(f"fetch {source}")
    if source != "mirror":
        raise Transient("connection refused")
    return {"rows": ["a", "b"]}


@tool("store_data")
async def store_data(payload: list[str]) -> dict[str, int]:
    """Save rows."""
    calls.append(f"store {len(payload)}")
    return {"stored": len(payload)}


workflow = (
    Workflow("pipeline", "fetch and store records")
    .argument("source", "Where the records are")
    .step(WorkflowStep("fetch", "fetch_data").arg("source", prompt_arg("source")).bind("raw"))
    .step(WorkflowStep("store", "store_data").arg("payload", field("raw", "rows")))
)


async def main() -> tuple[str, object]:
    async with Engine("pipeline.db", tools=[fetch_data, store_data], config={"retry.times": 0}) as engine:
        bridge = TaskBridge(engine)
        task = await bridge.create_workflow_task(workflow, {"source": "down"})
        async for event in engine.events(task):
            if event.type == "task.paused":
                break  # `everstep show TASK --handoff` now lists what is done, and which calls remain

        await bridge.continue_workflow_task(task, "fetch_data", {"source": "mirror"})
        await bridge.continue_workflow_task(task, "store_data", {"payload": "<field 'rows' from raw>"})
        await bridge.complete_workflow_task(task, {"stored": 2})
        ended = await engine.get(task)
        return ended.status, ended.outputs


status, outputs = asyncio.run(main())
print(status, outputs, calls)

assert (status, outputs) == ("completed", {"stored": 2})
assert calls[-2:] == ["fetch mirror", "store 2"], "a placeholder that comes back stands for the recorded value"
