"""All who watch are dropped at once, by a server that is killed; each comes back from a random place of what it saw.

    python -m tests.fault.dropped                 1,000 who come back, into the results
    python -m tests.fault.dropped --all 50        so many

Back is who is told that it is live. Whoever is back has everything from its place to the end of its task, each event
once and in order; who names a place that never was is told to begin anew.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from everstep.client import Client
from everstep.torture.results import Line, Results, verdict
from tests.e2e.cutting import Mortal
from tests.fault.watchers import Heard, holes, naps, standing, told, watching

ALL, BACK_S = 1_000, 60.0
TASKS, SHORT, LONG, NAP_S = 20, 40, 300, 2.0
EVERY_LINE, EVERY_AHEAD = 10, 25
"""Every tenth watches all tasks; every so many names a place that the journal does not have."""
AT_ONCE = 40
"""Who comes for the first time waits for its turn; who was dropped does not."""
BEYOND = 100_000


@dataclass(slots=True)
class Watcher:
    """One who watches, is dropped, and comes back."""

    number: int
    task: str | None
    """None: all of them."""
    before: Heard = field(default_factory=Heard)
    after: Heard = field(default_factory=Heard)
    place: int = 0
    """How many of the events it has seen before it takes for seen."""
    back_s: float = 0.0

    @property
    def ahead(self) -> bool:
        return self.task is not None and self.number % EVERY_AHEAD == 1

    @property
    def first(self) -> str:
        return "/v1/events?after=0-00000000" if self.task is None else f"/v1/tasks/{self.task}/events?after=0&ticks=0"

    @property
    def again(self) -> str:
        if self.task is None:
            cursor = self.before.events[self.place - 1][2] if self.place else "0-00000000"
            return f"/v1/events?after={cursor}"
        place = BEYOND if self.ahead else self.place
        return f"/v1/tasks/{self.task}/events?after={place}&until=end&ticks=0"


async def come(mortal: Mortal, one: Watcher, turns: asyncio.Semaphore, tasks: Sequence[str]) -> "asyncio.Task[None]":
    """For the first time: a task that hears until it is dropped, once it is live."""
    live = asyncio.Event()
    async with turns:
        socket = await watching(f"http://127.0.0.1:{mortal.port}", mortal.token, one.first)
        hearing = asyncio.create_task(told(socket, one.before, live, tasks))
        await live.wait()
    return hearing


async def come_back(mortal: Mortal, one: Watcher, began: float, tasks: Sequence[str]) -> "asyncio.Task[None]":
    """From its place; a task that hears to the end, once it is live."""
    live = asyncio.Event()
    socket = await watching(f"http://127.0.0.1:{mortal.port}", mortal.token, one.again)
    hearing = asyncio.create_task(told(socket, one.after, live, tasks if one.task is None else ()))
    await live.wait()
    one.back_s = time.monotonic() - began
    return hearing


async def drop(mortal: Mortal, watchers: int, chance: random.Random) -> Line:
    """All of it."""
    async with Client(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as client:
        tasks = [(await client.create(plan=naps(SHORT, LONG, NAP_S)))["id"] for _ in range(TASKS)]
    every = [Watcher(n, None if n % EVERY_LINE == 0 else tasks[n % TASKS]) for n in range(watchers)]
    turns = asyncio.Semaphore(AT_ONCE)
    first = await asyncio.gather(*(come(mortal, one, turns, tasks) for one in every))
    began = time.monotonic()
    mortal.kill()
    await asyncio.gather(*first)
    await mortal.start()
    for one in every:
        one.place = chance.randint(0, len(one.before.events))
    second = await asyncio.gather(*(come_back(mortal, one, began, tasks) for one in every))
    async with Client(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as client:
        for task in tasks:
            await client.cancel(task)
        await asyncio.gather(*second)
        last = {task: [event["seq"] async for event in client.events(task, until_end=True)][-1] for task in tasks}
    wrong = [found for one in every for found in judge(one, last)]
    late = [round(one.back_s, 1) for one in every if one.back_s > BACK_S]
    wrong += [f"{len(late)} were back after more than {BACK_S:g} s: {late[:5]}"] if late else []
    seen = Counter(resync_required=sum(one.after.resync is not None for one in every))
    back = sorted(one.back_s for one in every)
    return {
        "verdict": verdict(wrong), "trials": watchers, "kills": 1, "violations": wrong[:20], "seen": seen,
        "events": sum(len(one.after.events) for one in every),
        "back_s": {"p50": round(back[len(back) // 2], 2), "max": round(back[-1], 2)},
    }  # fmt: skip


def judge(one: Watcher, last: dict[str, int]) -> list[str]:
    """What is wrong with what it has heard."""
    who = f"watcher {one.number}"
    if one.task is not None:
        after = one.after.seqs[0] - 1 if one.ahead and one.after.seqs else one.place
        wrong = [*holes(one.after.seqs, after, last[one.task], who)]
        if (one.after.resync is not None) != one.ahead:
            wrong.append(f"{who} was told of {one.after.resync}, ahead: {one.ahead}")
        return wrong
    known = Counter(task for task, _, _ in one.before.events[: one.place])
    return [found for task in last for found in holes(one.after.seqs_of(task), known[task], last[task], who)]


async def trial(watchers: int) -> Line:
    """On a server of its own."""
    async with standing() as mortal:
        return await drop(mortal, watchers, random.Random(watchers))


def play(watchers: int) -> Line:
    """One drop of so many."""
    return asyncio.run(trial(watchers))


def main() -> int:
    """All of them at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--all", type=int, default=ALL)
    given = parser.parse_args()
    line = Results.of_this_commit().once("F62", given.all, partial(play, given.all))
    print("\n".join(line["violations"]))
    print(
        f"{line['trials']} came back: {line['verdict']}, {line['events']} events, back {line['back_s']} {line['seen']}"
    )
    return int(line["verdict"] != "passed")


if __name__ == "__main__":
    sys.exit(main())
