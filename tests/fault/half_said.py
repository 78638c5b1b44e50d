"""Clients that hang up after k bytes of a request, or as soon as they have said it: a task is made as a whole, or not.

    python -m tests.fault.half_said               500 of them, into the results
    python -m tests.fault.half_said --all 50      so many

A request that was not said to its end makes nothing. One that was, makes the whole task or nothing, and its key is good
for asking again: however it went, there is one task at the end, and it does all of its steps.
"""

import argparse
import asyncio
import json
import random
import socket
import struct
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from everstep.client import Client
from everstep.domain.errors import NotFound
from everstep.torture.results import Line, Results, verdict
from tests.e2e.cutting import Mortal
from tests.fault.watchers import standing

ALL, CHUNK = 500, 50
WHOLE = 0.3
"""Of so many nothing is missing but somebody who waits for the reply."""
PIECES_MAX = 4
RESET = struct.pack("ii", 1, 0)
"""So that closing is a reset, not a good-bye."""


@dataclass(frozen=True)
class Half:
    """A request, and how far it gets."""

    key: str
    raw: bytes
    k: int
    pieces: tuple[int, ...]
    """Where it pauses for breath."""
    reset: bool
    before: bool
    """Something else was asked on the same connection."""

    @property
    def whole(self) -> bool:
        return self.k == len(self.raw)


def wish(key: str) -> dict[str, Any]:
    """What is asked for: three steps, and labels by which a task that is not whole would be known."""
    steps = [{"id": f"s{n}", "tool": "sim.sleep", "with": {"seconds": 0}} for n in range(3)]
    return {"plan": {"name": "half", "steps": steps}, "title": key, "labels": {"k": key, "é": "ü" * 40}}


def half_of(seed: int, port: int, token: str) -> Half:
    """With a length, or in chunks."""
    chance = random.Random(f"half {seed}")
    key, body = f"half-{seed}", json.dumps(wish(f"half-{seed}"), ensure_ascii=False).encode()
    head = (
        f"POST /v1/tasks HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\nidempotency-key: {key}\r\n"
    )
    if chance.random() < 0.3:
        at = chance.randrange(1, len(body))
        parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:at], body[at:], b""))
        raw = head.encode() + b"transfer-encoding: chunked\r\n\r\n" + parts
    else:
        raw = head.encode() + b"content-length: %d\r\n\r\n%s" % (len(body), body)
    k = len(raw) if chance.random() < WHOLE else chance.randrange(len(raw))
    pieces = sorted(chance.randrange(k + 1) for _ in range(chance.randrange(PIECES_MAX)))
    return Half(key, raw, k, tuple(pieces), chance.random() < 0.5, chance.random() < 0.3)


async def say(half: Half, port: int) -> None:
    """As far as it gets; then hang up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if half.before:
        writer.write(b"GET /v1/health HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % port)
        await reader.readuntil(b"\r\n\r\n")
    for begin, end in zip((0, *half.pieces), (*half.pieces, half.k), strict=True):
        writer.write(half.raw[begin:end])
        await writer.drain()
        await asyncio.sleep(0)
    if half.reset:
        one: socket.socket = writer.get_extra_info("socket")
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.close()


async def stands(client: Client, key: str) -> dict[str, Any] | None:
    """The task of a key."""
    try:
        return await client.get(key)
    except NotFound:
        return None


async def cut_short(mortal: Mortal, seeds: Sequence[int]) -> Line:
    """All of them, one after another; then each is asked for again."""
    wrong, seen = list[str](), Counter[str]()
    async with Client(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as client:
        halves = [half_of(seed, mortal.port, mortal.token) for seed in seeds]
        for half in halves:
            await say(half, mortal.port)
        for half in halves:
            found = await stands(client, half.key)
            seen[f"{'whole' if half.whole else 'cut'}, {'made' if found else 'nothing'}"] += 1
            if found and not half.whole:
                wrong.append(f"{half.key}: {half.k} of {len(half.raw)} bytes made {found['id']}")
            again = await client.create(key=half.key, **wish(half.key))
            if found and again["id"] != found["id"]:
                wrong.append(f"{half.key} is {found['id']} and {again['id']}")
            ended = [event async for event in client.events(again["id"], until_end=True)]
            done = [event["step"] for event in ended if event["type"] == "step.completed"]
            if (ended[-1]["type"], sorted(done)) != ("task.completed", ["s0", "s1", "s2"]):
                wrong.append(f"{half.key} ended with {ended[-1]['type']} after {done}")
        there = [task["title"] async for task in client.tasks()]
        if sorted(there) != sorted(half.key for half in halves):
            wrong.append(f"there are {len(there)} tasks of {len(halves)} keys")
    return {"verdict": verdict(wrong), "trials": len(halves), "violations": wrong[:20], "seen": seen}


async def trial(first: int, count: int) -> Line:
    """On a server of its own, which has to stand afterwards."""
    async with standing() as mortal:
        return await cut_short(mortal, range(first, first + count))


def play(first: int, count: int) -> Line:
    """So many."""
    return asyncio.run(trial(first, count))


def main() -> int:
    """All of them, fifty on each server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--all", type=int, default=ALL)
    given = parser.parse_args()
    results, bad, seen = Results.of_this_commit(), 0, Counter[str]()
    for first in range(1, given.all, CHUNK):
        line = results.once("F65", first, partial(play, first, CHUNK))
        bad += line["verdict"] != "passed"
        seen += Counter(line["seen"])
        print(f"{first} on: {line['verdict']} {line['seen']} {line['violations'][:3]}", flush=True)
    print(f"{given.all} requests: {dict(seen)}; {bad} servers with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
