"""Restate: `python -m bench.kill.with_restate FOLDER PORTS`. Its server beside it calls this process again."""

import asyncio
import sys

import httpx
import hypercorn.asyncio
import hypercorn.config
import restate

from bench.kill.world import World
from bench.peers.cells import until_it_answers

world = World(sys.argv[1])
service = restate.Service("Trial")


@service.handler()
async def run(ctx: restate.Context, value: int) -> list[object]:
    done: list[str] = []
    for name, _ in world.steps:
        value = await ctx.run_typed(name, world.call, restate.RunOptions(), name, value)
        done.append(name)
    return [value, done]


async def main(ports: str) -> None:
    ingress, admin, own = ports.split(",")
    config = hypercorn.config.Config()
    config.bind = [f"127.0.0.1:{own}"]
    config.loglevel = "error"
    serving = asyncio.create_task(
        hypercorn.asyncio.serve(restate.app([service]), config, shutdown_trigger=asyncio.Event().wait)
    )
    async with httpx.AsyncClient(timeout=60) as client:

        async def register() -> None:
            uri = {"uri": f"http://127.0.0.1:{own}", "force": True}
            (await client.post(f"http://127.0.0.1:{admin}/deployments", json=uri)).raise_for_status()

        async def ask() -> httpx.Response:
            url, key = f"http://127.0.0.1:{ingress}/Trial/run", {"idempotency-key": "trial"}
            return (await client.post(url, json=world.start, headers=key)).raise_for_status()

        await until_it_answers(register)
        said = await until_it_answers(ask)
        assert isinstance(said, httpx.Response)
        value, done = said.json()
        world.tell(value, done)
    serving.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[2]))
