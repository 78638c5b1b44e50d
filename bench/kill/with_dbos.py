"""DBOS: `python -m bench.kill.with_dbos FOLDER URL`. Its launch recovers what the last process left."""

import asyncio
import sys

from dbos import DBOS, SetWorkflowID

from bench.kill.world import World

world = World(sys.argv[1])


@DBOS.step()
async def step(name: str, value: int) -> int:
    return await world.call(name, value)


@DBOS.workflow()
async def trial(value: int) -> int:
    for name, _ in world.steps:
        value = await step(name, value)
    return value


async def main(url: str) -> None:
    DBOS(config={"name": "trial", "log_level": "ERROR", "application_version": "1", "executor_id": "local",
                 "system_database_url": url})  # fmt: skip
    DBOS.launch()
    with SetWorkflowID("trial"):
        handle = await DBOS.start_workflow_async(trial, world.start)
    value = await handle.get_result()
    steps = await DBOS.list_workflow_steps_async("trial")
    world.tell(value, [name for (name, _), _ in zip(world.steps, steps, strict=False)])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2]))
