"""The wire to PostgreSQL goes wrong in every way (F22): `python -m tests.fault.wires [--all N] [--seed S]`.

Workers of a fleet reach their database over a wire that is late, stands still on one way, lets bytes through one by
one, is reset, or is half open: what they say is taken, and never arrives. With root one of them is on a host of its
own, whose link goes down. Each is over after a while; then every worker has to have a hand in tasks again, in the time
in which it gives an answer up and a moment more. At the end all tasks have ended, and the checker reads journal and
effects. One line of JSON at the end; exit 1 on a violation, or if somebody did not come back.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

from everstep import Engine
from everstep.adapters.stores.postgres.connect import ANSWER_S
from everstep.torture.history import read_effects
from tests.fault.fleet import LEASE_S, Fleet
from tests.fault.host import Host
from tests.fault.test_fleet import manned, until
from tests.postgres import schema
from tests.proxy import Proxy, Weather

KINDS: Final = ("delay", "trickle", "stall up", "stall down", "half open", "reset", "link down")
WORKERS: Final = 3
BACK_S: Final = ANSWER_S + 10.0
"""An answer is given up, then a connection is made within the time that L5 allows."""
LASTS_S: Final = (0.2, 2 * LEASE_S)
TASKS: Final = 20
"""More than enough to be at work for one turn of the wire."""
EVIDENCE: Final = Path("torture-logs/wires")
"""Where the logs are kept of a trial in which somebody did not come back."""


class Wires:
    """A fleet, and the wire it hangs on."""

    def __init__(self, fleet: Fleet, proxy: Proxy, host: Host | None) -> None:
        self.fleet = fleet
        self.seen: Counter[str] = Counter()
        self.back_s: dict[str, float] = {}
        self._proxy = proxy
        self._host = host
        self._tasks = 0

    @property
    def kinds(self) -> tuple[str, ...]:
        """What can go wrong here."""
        return KINDS if self._host is not None else KINDS[:-1]

    async def go_wrong(self, engine: Engine, kind: str, seconds: float) -> None:
        """For so long; then until every worker is back at work."""
        await self._more(engine)
        self.seen[kind] += 1
        if kind == "reset":
            self._proxy.cut(goodbye=False)
        elif kind == "link down":
            assert self._host is not None
            self._host.link(up=False)
            await asyncio.sleep(seconds)
            self._host.link(up=True)
        else:
            self._proxy.turn(cast("Weather", kind))
            await asyncio.sleep(seconds)
            self._proxy.turn(None)
        fair = time.monotonic()
        at_work = {worker.pid for worker in self.fleet.workers}
        known = len(read_effects(self.fleet.effects))
        while at_work:
            assert time.monotonic() - fair < BACK_S, f"after '{kind}' these do not come back: {sorted(at_work)}"
            await self._more(engine)
            await asyncio.sleep(0.05)
            effects = read_effects(self.fleet.effects)
            at_work -= {effect.pid for effect in effects[known:]}
            known = len(effects)
        self.back_s[kind] = max(self.back_s.get(kind, 0.0), round(time.monotonic() - fair, 2))

    async def end(self, engine: Engine) -> None:
        """All tasks."""
        await self.fleet.finish(engine, self._tasks, 600)

    async def _more(self, engine: Engine) -> None:
        """Tasks, until there are enough at work."""
        await self.fleet.heed(engine)
        live = self._tasks - (await engine.desk.info()).tasks.get("completed", 0)
        if live < TASKS:
            self._tasks += TASKS
            await self.fleet.submit(engine, self._tasks)


@contextmanager
def hosted() -> Iterator[Host | None]:
    """Another host, where one can be made."""
    if os.getuid() != 0:
        yield None
        return
    with Host() as host:
        yield host


async def play(folder: Path, kinds: list[tuple[str, float]], *, seed: int = 0) -> dict[str, Any]:
    """One fleet through all of these."""
    with hosted() as host, schema() as url, Proxy(url, "0.0.0.0" if host is not None else "127.0.0.1") as proxy:
        fleet = Fleet(folder, url, call_s=0.05, worker_url=proxy.url, tasks=8)
        wires = Wires(fleet, proxy, host)
        async with manned(fleet, WORKERS - (host is not None)), fleet.engine() as engine:
            if host is not None:
                fleet.settle(proxy.url.replace("127.0.0.1", host.ours))
                fleet.hire(1, "--name", "twin", before=host.enter)
                await until(lambda: fleet.ready == WORKERS)
            for kind, seconds in kinds:
                if kind in wires.kinds:
                    await wires.go_wrong(engine, kind, seconds)
            await wires.end(engine)
        violations = fleet.judge()
    return {
        "seed": seed,
        **wires.seen,
        "wires": wires.seen.total(),
        "back_s": wires.back_s,
        "violations": [str(one) for one in violations[:10]],
    }


def drawn(count: int, seed: int) -> list[tuple[str, float]]:
    """All kinds in turn, each for as long as chance says."""
    chance = random.Random(seed)
    return [(KINDS[n % len(KINDS)], chance.uniform(*LASTS_S)) for n in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=int, default=80)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everstep-wires-") as folder:
        try:
            said = asyncio.run(play(Path(folder), drawn(given.all, given.seed), seed=given.seed))
        except AssertionError:
            shutil.copytree(folder, EVIDENCE, dirs_exist_ok=True)
            raise
    print(json.dumps(said))
    return 1 if said["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
