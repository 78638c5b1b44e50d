"""Prefect on SQLite, results persisted: `python -m bench.peers.with_prefect CELL FOLDER` (PREFECT_HOME says where)."""

from typing import Any

from prefect import flow, task

from bench.peers.cells import main, measure, request, told, work
from bench.workload import STEPS, Cell


@task(persist_result=True)
async def step(name: str, asked: dict[str, Any]) -> dict[str, Any]:
    return await work(name, asked)


@flow(persist_result=True)
async def ten_steps(name: str) -> int:
    for number in range(STEPS):
        await step(name, request(number))
    return STEPS


async def perform(cell: Cell, _folder: str) -> None:
    async def carry(number: int) -> None:
        await ten_steps(f"{cell.name}-{number}")

    told(await measure(cell, carry))


if __name__ == "__main__":
    main(perform)
