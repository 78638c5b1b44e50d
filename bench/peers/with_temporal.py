"""Temporal: a worker in this process, the dev server beside it: `python -m bench.peers.with_temporal CELL ADDRESS`."""

from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

with workflow.unsafe.imports_passed_through():
    from bench.peers.cells import main, measure, request, told, until_it_answers, work
    from bench.workload import STEPS, Cell

TIMEOUT = timedelta(seconds=600)


@activity.defn
async def step(task: str, asked: dict[str, Any]) -> dict[str, Any]:
    return await work(task, asked)


@workflow.defn
class TenSteps:
    @workflow.run
    async def run(self, task: str) -> int:
        for number in range(STEPS):
            await workflow.execute_activity(step, args=[task, request(number)], start_to_close_timeout=TIMEOUT)
        return STEPS


async def perform(cell: Cell, address: str) -> None:
    client = await until_it_answers(lambda: Client.connect(address))
    assert isinstance(client, Client)

    async def carry(number: int) -> None:
        name = f"{cell.name}-{number}"
        await client.execute_workflow(TenSteps.run, args=[name], id=name, task_queue="bench")

    async with Worker(
        client,
        task_queue="bench",
        workflows=[TenSteps],
        activities=[step],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=2000,
        max_concurrent_workflow_tasks=200,
        max_cached_workflows=2000,
    ):
        told(await measure(cell, carry))


if __name__ == "__main__":
    main(perform)
