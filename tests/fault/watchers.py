"""Who watches over a socket of its own and keeps everything it hears. Not the product's client: that one mends holes.

And the server they watch: a process of its own, with room for all of them.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.e2e.commands import Project
from tests.e2e.cutting import SIM, Mortal

OPEN_S = 90
"""A thousand who come at once have to wait for one another."""
ROOM = '[serve]\nrate = "1000000/1s"\n[events]\nsockets_per_token = 100000\n'
ENDS = ("task.completed", "task.failed", "task.cancelled")


@asynccontextmanager
async def standing(more: str = ROOM) -> AsyncIterator[Mortal]:
    """A served project that can be killed, with tools that only pretend."""
    with TemporaryDirectory(prefix="es-") as folder:
        mortal = Mortal(Project(Path(folder)))
        mortal.project.write("everstep.toml", SIM + more)
        await mortal.start()
        try:
            yield mortal
        finally:
            mortal.kill()


@dataclass(slots=True)
class Heard:
    """What one of them has heard on one connection."""

    events: list[tuple[str, int, str | None]] = field(default_factory=list)
    """Task, seq, and the cursor where all tasks are watched."""
    head: int | str | None = None
    """How far the journal was when it came."""
    live: int | str | None = None
    """How far it was when it had caught up."""
    resync: str | None = None
    code: int | None = None

    @property
    def seqs(self) -> list[int]:
        return [seq for _, seq, _ in self.events]

    def seqs_of(self, task: str) -> list[int]:
        return [seq for of, seq, _ in self.events if of == task]


def watching(url: str, token: str, path: str) -> connect:
    """A socket of the events at this path."""
    headers = {"authorization": f"Bearer {token}"}
    place = f"ws{url.removeprefix('http')}{path}"
    return connect(place, additional_headers=headers, compression=None, proxy=None, open_timeout=OPEN_S, max_queue=256)


async def told(socket: ClientConnection, heard: Heard, live: asyncio.Event, tasks: Sequence[str] = ()) -> None:
    """Everything, until somebody hangs up; or, of a stream of all, until each of these tasks has ended."""
    left = {*tasks}
    try:
        while True:
            frame = json.loads(await socket.recv(decode=False))
            match frame["type"]:
                case "hello":
                    heard.head = frame.get("head_seq", frame.get("cursor"))
                case "resync_required":
                    heard.resync = frame["reason"]
                case "live":
                    heard.live = frame.get("seq", frame.get("cursor"))
                    live.set()
                case "event":
                    event = frame["event"]
                    heard.events.append((event["task"], event["seq"], frame.get("cursor")))
                    if event["type"] in ENDS:
                        left.discard(event["task"])
                        if tasks and not left:
                            return
                case _:
                    pass
    except ConnectionClosed as closed:
        heard.code = None if closed.rcvd is None else closed.rcvd.code


def holes(seqs: Sequence[int], after: int, last: int, who: str) -> Iterator[str]:
    """What is wrong with these, if they should be all from there to there, each once and in order."""
    if [*seqs] != [*range(after + 1, last + 1)]:
        missing = sorted({*range(after + 1, last + 1)} - {*seqs})
        doubled = sorted({seq for seq in seqs if seqs.count(seq) > 1})
        yield f"{who} after {after}: {len(seqs)} to {last}, missing {missing[:5]}, doubled {doubled[:5]}"


def naps(short: int, long: int, seconds: float) -> dict[str, Any]:
    """A plan with a past soon, and then an event now and then until it is cancelled."""
    nap: dict[str, Any] = {"tool": "sim.sleep"}
    return {
        "name": "naps",
        "steps": [
            {"id": f"s{n}", **nap, "with": {"seconds": seconds if n >= short else 0}} for n in range(short + long)
        ],
    }
