"""Streams under fire: many clients behind a network that cuts every 2 s, while the server is killed again and again.

    python -m bench.cuts                        20 clients, a kill every 5 s, two minutes

Every client must hold 1…n, dense, each once; one of all tasks the same for each task. Exit 1 if one does not.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from everstep.client import Client
from tests.e2e.commands import Project
from tests.e2e.cutting import Mortal, Proxy, naps

STEP_S = 0.2
STEPS_MAX = 400
"""A plan has room for so many."""


async def play(seconds: float, clients: int, kill_s: float, cut_s: float) -> dict[str, Any]:
    """One campaign."""
    with tempfile.TemporaryDirectory(prefix="es-") as folder:
        mortal = Mortal(Project(Path(folder)))
        await mortal.start()
        proxy = Proxy(mortal.port)
        url = f"http://127.0.0.1:{mortal.port}"
        try:
            async with proxy.standing():
                async with Client(url, token=mortal.token) as direct:
                    steps = min(STEPS_MAX, round(seconds / STEP_S))
                    plan = naps(steps, seconds / steps)
                    tasks = [(await direct.create(plan=plan))["id"] for _ in range(4)]
                through = f"http://127.0.0.1:{proxy.port}"
                following = [
                    asyncio.create_task(one_task(through, mortal.token, tasks[number % len(tasks)]))
                    for number in range(clients)
                ]
                every = asyncio.create_task(all_tasks(through, mortal.token, set(tasks)))
                cutting = asyncio.create_task(cut_every(cut_s, proxy))
                kills, until = 0, time.monotonic() + seconds
                while time.monotonic() < until:
                    await asyncio.sleep(random.uniform(0.5, 1.5) * kill_s)
                    mortal.kill()
                    kills += 1
                    await mortal.start()
                told = await asyncio.wait_for(asyncio.gather(*following), 600)
                of_all = await asyncio.wait_for(every, 600)
                cutting.cancel()
        finally:
            mortal.kill()
    lengths = {task: len(seqs) for task, seqs in of_all.items()}
    bad = sum(seqs != list(range(1, len(seqs) + 1)) for seqs in [*told, *of_all.values()])
    bad += sum(len(seqs) != lengths[tasks[number % len(tasks)]] for number, seqs in enumerate(told))
    return {"clients": clients + 1, "kills": kills, "cuts": proxy.cuts, "events": sum(map(len, told)), "bad": bad}


async def cut_every(seconds: float, proxy: Proxy) -> None:
    while True:
        await asyncio.sleep(seconds)
        proxy.hang_up()


async def one_task(url: str, token: str, task: str) -> list[int]:
    async with Client(url, token=token) as client:
        return [event["seq"] async for event in client.events(task, until_end=True)]


async def all_tasks(url: str, token: str, tasks: set[str]) -> dict[str, list[int]]:
    seen: dict[str, list[int]] = {}
    left = set(tasks)
    async with Client(url, token=token) as client:
        async for event in client.events(after="0-00000000"):
            seen.setdefault(event["task"], []).append(event["seq"])
            if event["type"] == "task.completed":
                left.discard(event["task"])
            if not left:
                break
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.cuts", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--kill-every", type=float, default=5.0)
    parser.add_argument("--cut-every", type=float, default=2.0)
    given = parser.parse_args()
    found = asyncio.run(play(given.seconds, given.clients, given.kill_every, given.cut_every))
    print(json.dumps(found))
    return 1 if found["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
