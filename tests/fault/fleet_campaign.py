"""The long trial of a fleet: `python -m tests.fault.fleet_campaign [TASKS] [SEED] [SERVERS FREEZES COMMITS]`.

Workers are killed and frozen, the server is killed, connections are cut and answers to COMMIT swallowed, at random,
until every task has ended and so many server kills, frozen workers and lost answers were seen; then workers die one by
one. The checker reads the journal and the log of what the tools did, and every death is held against the time in which
others have to take over. One line of JSON at the end; exit 1 on a violation, on a death that was taken over too late,
or if something that must be seen was not.
"""

import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from everstep import Engine
from tests.fault.deaths import Deaths
from tests.fault.fleet import JANITOR_S, LEASE_S, Fleet
from tests.fault.test_fleet import log_of, manned, until
from tests.postgres import Server, schema
from tests.proxy import Proxy

WORKERS: Final = 4
AT_A_TIME: Final = 400
"""So many that three workers have room for what the fourth leaves: what is measured is recovery, not a full house."""
MORE: Final = 100
"""Further tasks, until enough was seen: few, so that it ends soon after."""
CALL_S: Final = 1.0
TAKEN_OVER_S: Final = LEASE_S + 1.2 * JANITOR_S + 2.0
MUST_SEE: Final = (
    "kill",
    "freeze",
    "server",
    "cut",
    "before",
    "after",
    "answers_lost",
    "joined_again",
    "late_writes_refused",
    "taken_over_s",
)


WEIGHTS: Final = {"kill": 2, "freeze": 10, "server": 2.5, "cut": 2, "before": 7.5, "after": 7.5}
"""So that all floors are reached at about the same time."""
FROZEN_MAX: Final = 2
EVIDENCE: Final = Path("torture-logs/fleet")
"""Where journal, effects and logs are kept of a trial that found something."""


@dataclass(frozen=True)
class Floors:
    """How often each has to be seen before it is enough."""

    servers: int = 1
    freezes: int = 1
    commits: int = 1

    def reached(self, deaths: Deaths, proxy: Proxy) -> bool:
        """All of them."""
        seen = deaths.seen
        return seen["server"] >= self.servers and seen["freeze"] >= self.freezes and proxy.cuts >= self.commits


@dataclass(frozen=True)
class World:
    """What can be disturbed, and who takes notes."""

    fleet: Fleet
    server: Server
    proxy: Proxy
    deaths: Deaths


async def disturb(world: World, chance: random.Random, floors: Floors) -> None:
    """Until enough was seen."""
    fleet, server, proxy, deaths = world.fleet, world.server, world.proxy, world.deaths
    frozen: set[asyncio.Task[None]] = set()
    try:
        while not floors.reached(deaths, proxy):
            await asyncio.sleep(chance.uniform(0.1, 1.0))
            what = chance.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
            deaths.seen[what] += 1
            if what == "server":
                with deaths.outage():
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
            elif what in ("kill", "freeze"):
                victim = chance.choice(fleet.workers)
                deaths.note(victim.pid)
                if what == "kill":
                    fleet.kill(victim)
                    continue
                frozen.add(asyncio.create_task(fleet.stop(victim, chance.uniform(0.5, 3) * LEASE_S)))
                if len(frozen) == FROZEN_MAX:
                    _, frozen = await asyncio.wait(frozen, return_when=asyncio.FIRST_COMPLETED)
            elif what == "cut":
                proxy.cut()
            else:
                proxy.cut_commit("before" if what == "before" else "after")
    finally:
        await asyncio.gather(*frozen)


async def one_by_one(fleet: Fleet, engine: Engine, tasks: int, deaths: Deaths) -> None:
    """Nothing else goes wrong, so others have to take over in time."""
    deaths.calm_down()
    for what in ("kill", "freeze") * 3:
        tasks += AT_A_TIME // 10
        await fleet.submit(engine, tasks)
        finishing = asyncio.create_task(fleet.finish(engine, tasks, 3600))
        await asyncio.sleep(2 * CALL_S)
        busiest = deaths.busiest(fleet.url)
        victim = next(one for one in fleet.workers if one.pid == busiest)
        deaths.note(victim.pid)
        if what == "kill":
            fleet.kill(victim)
        else:
            await fleet.stop(victim, 2 * LEASE_S)
        await finishing


async def replace_the_refused(fleet: Fleet) -> None:
    """Whoever came while there was no database has left again."""
    while True:
        await asyncio.sleep(0.5)
        for worker in [one for one in fleet.workers if one.poll() is not None]:
            fleet.workers.remove(worker)
            fleet.hire()


async def storm(fleet: Fleet, engine: Engine, tasks: int, disturbing: "asyncio.Task[None]") -> int:
    """Tasks, and some more as long as somebody disturbs; how many there were."""
    every = 0
    while every == 0 or not disturbing.done():
        every += tasks if every == 0 else MORE
        await fleet.submit(engine, every)
        await fleet.finish(engine, every, 3600)
    await disturbing
    return every


async def campaign(folder: Path, tasks: int, seed: int, floors: Floors) -> dict[str, object]:
    chance, deaths = random.Random(seed), Deaths()
    server = Server()
    server.start()
    try:
        with schema(server.url) as url, Proxy(url) as proxy:
            fleet = Fleet(folder, url, call_s=CALL_S, worker_url=proxy.url, tasks=AT_A_TIME)
            began = time.monotonic()
            async with manned(fleet, WORKERS), fleet.engine() as engine:
                disturbing = asyncio.create_task(disturb(World(fleet, server, proxy, deaths), chance, floors))
                replacing = asyncio.create_task(replace_the_refused(fleet))
                tasks = await storm(fleet, engine, tasks, disturbing)
                stormed = time.monotonic() - began
                await until(lambda: fleet.ready_now == WORKERS)
                replacing.cancel()
                await asyncio.wait([replacing])
                assert replacing.cancelled(), replacing.exception()
                await one_by_one(fleet, engine, tasks, deaths)
            violations = fleet.judge()
            took = deaths.taken_over(url)
            return {
                "seed": seed,
                "tasks": tasks,
                "storm_s": round(stormed),
                **deaths.seen,
                **heard(log_of(fleet)),
                "answers_lost": proxy.cuts,
                "deaths": len(took),
                "recovered": sum(len(one.tasks) for one in took),
                "taken_over_in_the_storm_s": spread([one.seconds for one in took if not one.calm]),
                "taken_over_s": [one.seconds for one in took if one.calm],
                "at_most_s": TAKEN_OVER_S,
                "acted_on_waking": fleet.acted_on_waking,
                "violations": [str(one) for one in violations[:10]],
            }
    finally:
        server.stop()


def heard(log: str) -> Counter[str]:
    """What the workers themselves have said."""
    said: Counter[str] = Counter()
    for line in map(json.loads, log.splitlines()):
        if line["message"] == "late writes were refused":
            said["late_writes_refused"] += line["fields"]["count"]
        said["joined_again"] += line["message"] == "joined again"
        said["errors_logged"] += line["level"] == "error"
    return said


def spread(seconds: list[float]) -> dict[str, float]:
    """The middle, the most of nine in ten, and the worst."""
    ordered = sorted(seconds)
    ranks = {"p50": 0.5, "p90": 0.9, "max": 1.0}
    return {name: ordered[min(len(ordered) - 1, int(rank * len(ordered)))] for name, rank in ranks.items() if ordered}


def main() -> int:
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory(prefix="everstep-campaign-") as folder:
        said = asyncio.run(campaign(Path(folder), tasks, seed, Floors(*map(int, sys.argv[3:6]))))
        if said["violations"]:
            shutil.copytree(folder, EVIDENCE, dirs_exist_ok=True)
    print(json.dumps(said))
    unseen = [name for name in MUST_SEE if not said.get(name)]
    late = [seconds for seconds in cast("list[float]", said["taken_over_s"]) if seconds > TAKEN_OVER_S]
    if unseen or late:
        print(f"not seen: {unseen}; taken over too late: {late}", file=sys.stderr)
    return 1 if said["violations"] or unseen or late else 0


if __name__ == "__main__":
    sys.exit(main())
