"""Events that are published while a watcher reads the backlog and has not joined the live stream yet.

    python -m tests.fault.seam                    500 watchers, into the results
    python -m tests.fault.seam --all 50           so many

They come, at any place, while a task makes one call after another until all of them are live. Each has to hear all
that follows its place, once and in order. Whether something fell into the seam is seen from outside: the journal had
come further when a watcher was live than when it was greeted.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

from everstep.client import Client
from everstep.domain.errors import Conflict
from everstep.torture.results import Line, Results, verdict
from tests.e2e.cutting import Mortal
from tests.fault.watchers import Heard, holes, standing, told, watching

ALL, CHUNK, AT_ONCE, CALLS = 500, 50, 25, 5_000
EVERY_LINE = 5
"""Every fifth watches all tasks."""
SLOW = 1013
SEAMS_MIN = 0.1
"""At least into this share of the seams something has to fall, or nothing was tried."""


def calls() -> dict[str, Any]:
    """More calls than anybody waits for."""
    step = {"id": "a", "tool": "sim.sleep", "for_each": [*range(CALLS)], "with": {"seconds": 0}, "parallel": 8}
    return {"name": "calls", "steps": [step]}


async def watch(mortal: Mortal, task: str, after: int | None, live: asyncio.Event) -> Heard:
    """From a place to the end; None: all tasks, from the beginning. Who was let go for being slow comes back."""
    heard, place = Heard(), after or 0
    while True:
        path = f"/v1/tasks/{task}/events?after={place}&until=end&ticks=0"
        if after is None:
            path = f"/v1/events?after={(heard.events[-1][2] if heard.events else None) or '0-00000000'}"
        async with watching(f"http://127.0.0.1:{mortal.port}", mortal.token, path) as socket:
            await told(socket, heard, live, () if after is not None else (task,))
        if heard.code != SLOW:
            break
        heard.code, place = None, heard.events[-1][1] if heard.events else place
    live.set()  # or over before
    return heard


async def rush(mortal: Mortal, client: Client, watchers: int, chance: random.Random) -> tuple[list[str], int]:
    """One task, and those who come meanwhile; what is wrong, and into how many seams something fell."""
    task = (await client.create(plan=calls()))["id"]
    head, coming, live = 0, list[tuple[int | None, asyncio.Task[Heard]]](), [asyncio.Event() for _ in range(watchers)]
    for number in range(watchers):
        after = None if number % EVERY_LINE == 0 else chance.randint(0, head)
        coming.append((after, asyncio.create_task(watch(mortal, task, after, live[number]))))
        head = (await client.get(task))["seq"]  # so that each comes a little later
    for one in live:
        await one.wait()
    with suppress(Conflict):  # it has ended before
        await client.cancel(task)
    heard = [(after, await watching) for after, watching in coming]
    last = (await client.get(task))["seq"]
    who = {True: "who watches all tasks", False: "who watches one"}
    wrong = [found for after, one in heard for found in holes(one.seqs_of(task), after or 0, last, who[after is None])]
    return wrong, sum(one.live is not None and one.live != one.head for _, one in heard)


async def trial(first: int, watchers: int) -> Line:
    """On a server of its own."""
    wrong, seams, chance = list[str](), 0, random.Random(first)
    async with standing() as mortal, Client(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as client:
        for _ in range(0, watchers, AT_ONCE):
            found, fell = await rush(mortal, client, AT_ONCE, chance)
            wrong += found
            seams += fell
    if seams < SEAMS_MIN * watchers:
        wrong.append(f"something fell into only {seams} seams of {watchers}")
    seen = Counter(seams=seams)
    return {"verdict": verdict(wrong), "trials": watchers, "violations": wrong[:20], "seen": seen}


def play(first: int, watchers: int) -> Line:
    """So many."""
    return asyncio.run(trial(first, watchers))


def main() -> int:
    """All of them, fifty on each server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--all", type=int, default=ALL)
    given = parser.parse_args()
    results, bad, seams = Results.of_this_commit(), 0, 0
    for first in range(1, given.all, CHUNK):
        line = results.once("F63", first, partial(play, first, CHUNK))
        bad += line["verdict"] != "passed"
        seams += line["seen"]["seams"]
        print(f"{first} to {first + CHUNK - 1}: {line['verdict']} {line['seen']} {line['violations'][:3]}", flush=True)
    print(f"{given.all} watchers, something fell into {seams} seams, {bad} servers with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
