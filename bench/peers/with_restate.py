"""Restate: its SDK served from this process, its server beside it: `python -m bench.peers.with_restate CELL PORTS`."""

import asyncio

import httpx
import hypercorn.asyncio
import hypercorn.config
import restate

from bench.peers.cells import main, measure, request, told, until_it_answers, work
from bench.workload import STEPS, Cell

MANY = 2**31 - 1
service = restate.Service("Bench")


@service.handler()
async def run(ctx: restate.Context, task: str) -> int:
    for number in range(STEPS):
        await ctx.run_typed(f"s{number}", work, restate.RunOptions(), task, request(number))
    return STEPS


async def perform(cell: Cell, ports: str) -> None:
    ingress, admin, own = ports.split(",")
    config = hypercorn.config.Config()
    config.bind = [f"127.0.0.1:{own}"]
    config.h2_max_concurrent_streams = config.keep_alive_max_requests = config.keep_alive_timeout = MANY
    config.loglevel = "error"
    serving = asyncio.create_task(
        hypercorn.asyncio.serve(restate.app([service]), config, shutdown_trigger=asyncio.Event().wait)
    )
    limits = httpx.Limits(max_connections=2000, max_keepalive_connections=2000)
    async with httpx.AsyncClient(timeout=600, limits=limits) as client:

        async def register() -> None:
            uri = {"uri": f"http://127.0.0.1:{own}", "force": True}
            (await client.post(f"http://127.0.0.1:{admin}/deployments", json=uri)).raise_for_status()

        async def carry(number: int) -> None:
            task = f"{cell.name}-{number}"
            url = f"http://127.0.0.1:{ingress}/Bench/run"
            (await client.post(url, json=task, headers={"idempotency-key": task})).raise_for_status()

        await until_it_answers(register)
        told(await measure(cell, carry))
    serving.cancel()


if __name__ == "__main__":
    main(perform)
