"""Events that are published while a watcher reads the backlog and has not joined the live stream yet.

    python -m tests.fault.seam                    500 watchers, into the results
    python -m tests.fault.seam --all 50           so many

They come, at any place, while a task does one step after another as fast as it can. Each has to hear all that follows
its place, once and in order. Whether something fell into the seam is seen from outside: the journal had come further
when a watcher was live than when it was greeted.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from functools import partial

from everstep.client import Client
from everstep.torture.results import Line, Results, verdict
from tests.e2e.cutting import Mortal
from tests.fault.watchers import Heard, holes, naps, standing, told, watching

ALL, CHUNK, AT_ONCE, STEPS = 500, 50, 25, 300
EVERY_LINE = 5
"""Every fifth watches all tasks."""
SEAMS_MIN = 0.2
"""At least into this share of the seams something has to fall, or nothing was tried."""


async def watch(mortal: Mortal, task: str, after: int | None) -> Heard:
    """From a place to the end; None: all tasks, from the beginning."""
    path = "/v1/events?after=0-00000000"
    if after is not None:
        path = f"/v1/tasks/{task}/events?after={after}&until=end&ticks=0"
    heard = Heard()
    async with watching(f"http://127.0.0.1:{mortal.port}", mortal.token, path) as socket:
        await told(socket, heard, asyncio.Event(), () if after is not None else (task,))
    return heard


async def rush(mortal: Mortal, client: Client, watchers: int, chance: random.Random) -> tuple[list[str], int]:
    """One task, and those who come meanwhile; what is wrong, and into how many seams something fell."""
    task = (await client.create(plan=naps(STEPS, 0, 0)))["id"]
    head, coming = 0, list[tuple[int | None, asyncio.Task[Heard]]]()
    for number in range(watchers):
        after = None if number % EVERY_LINE == 0 else chance.randint(0, head)
        coming.append((after, asyncio.create_task(watch(mortal, task, after))))
        head = (await client.get(task))["seq"]  # so that each comes a little later
    heard = [(after, await one) for after, one in coming]
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
