"""Record histories of the workflow for the replay test: `python -m tests.e2e.record_histories`.

To be done once for every form of the workflow that was released, never again for the same one: what is recorded stands
for tasks that are under way while somebody updates.
"""

import asyncio
import re
import tempfile
from pathlib import Path

from temporalio.client import Client

from everstep import Engine, Plan, Task, Transient, tool
from everstep.domain.values import JsonObject, JsonValue
from tests.e2e.carriers import QUICK
from tests.temporal import dev_server

HISTORIES = Path(__file__).parent / "histories"
seen = {"n": 0}
begun = asyncio.Event()


@tool("told.shaky", effect="pure")
async def shaky() -> int:
    """Fail the first time."""
    seen["n"] += 1
    if seen["n"] == 1:
        raise Transient("not yet")
    return seen["n"]


@tool("told.hold", effect="idempotent")
async def hold() -> None:
    """Until it is ended."""
    begun.set()
    await asyncio.Event().wait()


def step(id: str, name: str, **arguments: str) -> JsonObject:
    return {"id": id, "tool": name, "with": {**arguments}}


async def main() -> None:
    """A task that retries, waits and does things beside each other; one that is paused at once; both to their ends."""
    with dev_server() as server, tempfile.TemporaryDirectory() as folder:
        config: JsonObject = {"engine": {**QUICK, "kind": "temporal"}, "temporal": {"address": server.address}}
        async with Engine(Path(folder) / "everstep.db", tools=(shaky, hold), config=config) as engine:
            steps: list[JsonValue] = [
                step("a", "told.shaky"),
                step("b", "told.shaky"),
                step("w", "wait", **{"for": "50ms"}),
            ]
            line = await engine.start(Plan.from_dict({"name": "line", "parallel": 2, "steps": steps}))
            await line.result()
            held = await engine.start(Plan.from_dict({"name": "held", "steps": [step("h", "told.hold")]}))
            await begun.wait()
            await held.pause(mode="immediate")
            await _paused(held)
            begun.clear()
            await held.resume()
            await begun.wait()
            await held.cancel()
            await held.result()
            client = await Client.connect(server.address)
            for name, task in (("line", line), ("held", held)):
                handle = client.get_workflow_handle(task.id)
                await handle.result()
                said = (await handle.fetch_history()).to_json()
                said = re.sub(r'"[0-9]+@[^"]*"', '"worker"', said)  # whose machine it was is nobody's business
                (HISTORIES / f"{name}.json").write_text(said + "\n")


async def _paused(task: Task) -> None:
    async for event in task.events():
        if event.type == "task.paused":
            return


if __name__ == "__main__":
    asyncio.run(main())
