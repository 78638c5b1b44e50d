"""DBOS as shipped: `python -m bench.peers.with_dbos CELL URL`."""

from typing import Any

from dbos import DBOS, SetWorkflowID

from bench.peers.cells import main, measure, request, told, work
from bench.workload import STEPS, Cell


@DBOS.step()
async def step(task: str, asked: dict[str, Any]) -> dict[str, Any]:
    return await work(task, asked)


@DBOS.workflow()
async def ten_steps(task: str) -> int:
    for number in range(STEPS):
        await step(task, request(number))
    return STEPS


async def perform(cell: Cell, url: str) -> None:
    DBOS(
        config={
            "name": "bench",
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": "local",
            "system_database_url": url,
        }
    )
    DBOS.launch()

    async def carry(number: int) -> None:
        with SetWorkflowID(f"{cell.name}-{number}"):
            await ten_steps(f"{cell.name}-{number}")

    told(await measure(cell, carry))


if __name__ == "__main__":
    main(perform)
