"""The long trial of tasks that Temporal carries: `python -m tests.fault.temporal_campaign [KILLS] [SEED]`.

Workers, and every third time the Temporal server, are killed with `kill -9` all along the way and come back: half of
the workers in the middle of a call, the others in whatever moment it is. Whoever asks about an uncertain call is
answered from the log of what was done. Then the checker reads the journal and that log. One line of JSON at the end;
exit 1 on a violation, or if no call was cut off.
"""

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from everstep.torture.history import read_effects
from tests.fault.fleet import Fleet
from tests.fault.test_fleet import manned, progress
from tests.postgres import schema
from tests.temporal import DevServer, dev_server

WORKERS: Final = 2
CALL_S: Final = 0.2
LINES: Final = 20
"""That the steps of a task write down, if nothing goes wrong: a beginning and an end each."""
COUNTED: Final = ("attempt.started", "attempt.abandoned", "step.completed", "pause.opened", "task.completed")
PATIENCE_S: Final = 3600.0


async def trial(folder: Path, server: DevServer, url: str, *, kills: int, seed: int = 1) -> Fleet:
    """Until every task has ended, with so many kills on the way; then nobody is left."""
    chance, tasks = random.Random(seed), kills + 1
    fleet = Fleet(folder, url, call_s=CALL_S, temporal=server.address)
    async with manned(fleet, WORKERS), fleet.engine() as engine:
        await fleet.submit(engine, tasks)
        async with asyncio.TaskGroup() as group:
            finishing = group.create_task(fleet.finish(engine, tasks, PATIENCE_S))
            for number in range(kills):
                await progress(fleet, chance.randint(1, LINES) + LINES * number)
                if number % 3 == 1:
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
                else:
                    anybody = chance.choice(fleet.workers)
                    fleet.kill(anybody if number % 2 else await calling(fleet, finishing) or anybody)
    return fleet


async def calling(fleet: Fleet, finishing: "asyncio.Task[None]") -> "subprocess.Popen[bytes] | None":
    """A worker in the middle of a call, held there; None: all have ended."""
    while not finishing.done():
        for worker in fleet.workers:
            if _calls(fleet, worker.pid):
                os.killpg(worker.pid, signal.SIGSTOP)
                if _calls(fleet, worker.pid):
                    return worker
                os.killpg(worker.pid, signal.SIGCONT)
        await asyncio.sleep(0.02)
    return None


def _calls(fleet: Fleet, pid: int) -> bool:
    """Whether it has written down a beginning without an end."""
    lines = Counter(one.what for one in read_effects(fleet.effects) if one.pid == pid)
    return lines["start"] > lines["end"]


def counted(fleet: Fleet) -> Mapping[str, int]:
    """How often what happened; to be asked after the checker has read the journal."""
    with closing(sqlite3.connect(fleet.folder / "journal.db")) as journal:
        found = dict(journal.execute("SELECT type, count(*) FROM events GROUP BY type"))
    return {name: found.get(name, 0) for name in COUNTED}


def main(words: list[str]) -> int:
    """One trial, and its figures."""
    kills, seed = int(words[0]) if words else 30, int(words[1]) if words[1:] else 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, dev_server() as server, schema() as url:
        fleet = asyncio.run(trial(Path(folder), server, url, kills=kills, seed=seed))
        violations = [str(one) for one in fleet.judge()]
        seen = counted(fleet)
    figures = {"kills": kills, "of_the_server": (kills + 1) // 3, "seed": seed, **seen, "violations": violations}
    print(json.dumps({**figures, "seconds": round(time.monotonic() - began)}))
    return 1 if violations or not seen["attempt.abandoned"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
