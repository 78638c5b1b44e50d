"""Temporal: `python -m bench.kill.with_temporal FOLDER ADDRESS at-least-once|at-most-once`.

A worker and a client in this process, the dev server beside it. `at-most-once`: effects that must not be repeated have
`maximum_attempts=1`; when one is lost, a person looks at the world and says what it came to.
"""

import asyncio
import sys
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy, WorkflowIDConflictPolicy
from temporalio.exceptions import ActivityError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from bench.kill.world import World
from bench.peers.cells import until_it_answers

LOST_S = 2
"""After so long a call whose worker is silent is given up: two hundred times as long as it lasts."""
world = World(sys.argv[1])
at_most_once = sys.argv[3] == "at-most-once"


@activity.defn
async def step(name: str, value: int) -> int:
    return await world.call(name, value)


@activity.defn
async def look(name: str, value: int) -> int:
    """The person: what was made stands; what was not is made now."""
    made = world.made(name)
    return made if made is not None else await world.call(name, value)


@workflow.defn
class Trial:
    @workflow.run
    async def run(self, value: int) -> list[Any]:
        asked: dict[str, int] = {}
        for name, once in world.steps:
            policy = RetryPolicy(maximum_attempts=1) if once and at_most_once else RetryPolicy(
                initial_interval=timedelta(milliseconds=50)
            )  # fmt: skip
            within = timedelta(seconds=LOST_S)
            try:
                value = await workflow.execute_activity(
                    step, args=[name, value], start_to_close_timeout=within, retry_policy=policy
                )
            except ActivityError:
                asked[name] = asked.get(name, 0) + 1
                value = await workflow.execute_activity(look, args=[name, value], start_to_close_timeout=within)
        return [value, asked]


async def main(address: str) -> None:
    client = await until_it_answers(lambda: Client.connect(address))
    assert isinstance(client, Client)
    async with Worker(
        client,
        task_queue="trial",
        workflows=[Trial],
        activities=[step, look],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        again = WorkflowIDConflictPolicy.USE_EXISTING
        handle = await client.start_workflow(
            Trial.run, args=[world.start], id="trial", task_queue="trial", id_conflict_policy=again
        )
        value, asked = await handle.result()
        history = [event async for event in handle.fetch_history_events()]
        done = sum(event.HasField("activity_task_completed_event_attributes") for event in history)
        world.tell(value, [name for (name, _), _ in zip(world.steps, range(done), strict=False)], asked)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2]))
