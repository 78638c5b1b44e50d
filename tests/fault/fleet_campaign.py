"""The long trial of a fleet: `python -m tests.fault.fleet_campaign [TASKS] [SEED]`, part of `make torture`.

Workers are killed and frozen, the server is killed, connections are cut and answers to COMMIT swallowed, at random,
until every task has ended. Then the checker reads the journal and the log of what the tools did. One line of JSON at
the end; exit 1 on a violation, or if something that must be seen was not.
"""

import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fault.fleet import LEASE_S, Fleet
from tests.fault.test_fleet import log_of, manned
from tests.postgres import Server, schema
from tests.proxy import Proxy

WORKERS = 4


async def disturb(fleet: Fleet, server: Server, proxy: Proxy, chance: random.Random, seen: Counter[str]) -> None:
    """For ever."""
    while True:
        await asyncio.sleep(chance.uniform(0.1, 1.0))
        what = chance.choices(("kill", "freeze", "server", "cut", "before", "after"), (4, 3, 1, 4, 8, 8))[0]
        seen[what] += 1
        if what == "kill":
            fleet.kill(chance.choice(fleet.workers))
        elif what == "freeze":
            await fleet.stop(chance.choice(fleet.workers), chance.uniform(0.5, 3) * LEASE_S)
        elif what == "server":
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        elif what == "cut":
            proxy.cut()
        elif what == "before":
            proxy.cut_commit("before")
        else:
            proxy.cut_commit("after")


async def replace_the_refused(fleet: Fleet) -> None:
    """Whoever came while there was no database has left again."""
    while True:
        await asyncio.sleep(0.5)
        for worker in [one for one in fleet.workers if one.poll() is not None]:
            fleet.workers.remove(worker)
            fleet.hire()


async def campaign(folder: Path, tasks: int, seed: int) -> dict[str, object]:
    chance, seen = random.Random(seed), Counter[str]()
    server = Server()
    server.start()
    try:
        with schema(server.url) as url, Proxy(url) as proxy:
            fleet = Fleet(folder, url, call_s=0.05, worker_url=proxy.url)
            began = time.monotonic()
            async with manned(fleet, WORKERS), fleet.engine() as engine:
                troubles = [
                    asyncio.create_task(disturb(fleet, server, proxy, chance, seen)),
                    asyncio.create_task(replace_the_refused(fleet)),
                ]
                await fleet.submit(engine, tasks)
                await fleet.finish(engine, tasks, 3600)
                for trouble in troubles:
                    trouble.cancel()
                await asyncio.wait(troubles)
                failed = [task.exception() for task in troubles if not task.cancelled()]
                assert failed in ([], [None]), failed
            violations = fleet.judge()
            log = log_of(fleet)
            return {
                "seed": seed,
                "tasks": tasks,
                "seconds": round(time.monotonic() - began),
                **seen,
                "answers_lost": proxy.cuts,
                "stale_writes_refused": log.count("lease lost"),
                "joined_again": log.count("joined again"),
                "violations": [str(one) for one in violations[:10]],
            }
    finally:
        server.stop()


def main() -> int:
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory(prefix="everstep-campaign-") as folder:
        said = asyncio.run(campaign(Path(folder), tasks, seed))
    print(json.dumps(said))
    unseen = [name for name in ("kill", "freeze", "answers_lost", "joined_again") if not said.get(name)]
    return 1 if said["violations"] or unseen else 0


if __name__ == "__main__":
    sys.exit(main())
