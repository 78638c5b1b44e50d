"""Commit to client: many WebSocket clients on 50 tasks, 20 events a second in total; some of them may not read at all.

    python -m bench.streams                     1,000 clients, 30 s
    python -m bench.streams --slow 200          200 of them never read, or a byte a second

The server is a process of its own. What is measured is from the return of the commit to the moment a client has the
event; beside it, from the time that the event carries, which is before its flush. Exit 1 where a target is missed.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from bench.kept import at_most, keep
from everstep import Engine, Plan, tool
from everstep.domain.events import ActorKind
from everstep.doors.http import listen
from everstep.doors.serve import NetworkDoor
from everstep.facade.access import NewToken
from everstep.ports.store import Journaled
from everstep.settings import load_settings

ROOT = Path(__file__).parents[1]
TASKS = 50
EVENTS_S = 20
SOCKETS_PER_TOKEN = 30
OUTPUT_CHARS = 8_000
TARGETS = {"p95_ms": 100.0, "p99_ms": 250.0, "lost": 0, "doubled": 0, "grown_mb": 128.0}


# --- the server ---


async def serve(folder: Path, tokens: int, seconds: float) -> None:
    """An engine with 50 tasks of slow steps, until somebody closes stdin; says where it is, then how it went."""
    period_s = 2 * TASKS / EVENTS_S  # a step is two events

    @tool("bench.step", effect="pure")
    async def step(n: int) -> str:
        """As many steps as the target wants events."""
        await asyncio.sleep(period_s)
        return f"{n}" + "x" * OUTPUT_CHARS

    settings = load_settings(
        {"store": str(folder / "everstep.db"), "serve.port": 0, "limits.output": "1GiB"}, cwd=folder, env={}
    )
    door = NetworkDoor(settings, listen(settings.serve), testing=True)
    engine = Engine(config=settings, tools=[step])
    await engine.open(door.open)
    committed = note_commits(engine)
    wanted = NewToken(
        name="bench", owner="local", actor_kind=ActorKind.SERVICE, actor_id="bench", scopes=frozenset({"read"})
    )
    issued = [(await engine.desk.access.issue(wanted)).value for _ in range(tokens)]
    count = round(seconds / period_s) + 60
    steps: list[Any] = [{"id": f"s{n}", "tool": "bench.step", "with": {"n": n}} for n in range(count)]
    plan = Plan.from_dict({"name": "bench", "steps": steps})
    tasks = []
    for _ in range(TASKS):
        tasks.append((await engine.start(plan)).id)
        await asyncio.sleep(period_s / TASKS)
    say({"url": (await door.ready(engine)).url, "tokens": issued, "tasks": tasks})
    await asyncio.to_thread(sys.stdin.readline)
    say({"ended": dict(door.entrance.streams.ended) if door.entrance is not None else {}, "committed": committed})
    await asyncio.to_thread(sys.stdin.readline)
    door.refuse_more()


def note_commits(engine: Engine) -> dict[str, float]:
    """When each event was durable, by task and seq."""
    feed = engine.desk._kit.feed
    publish, committed = feed.publish, dict[str, float]()

    def noted(events: Sequence[Journaled]) -> None:
        now = time.time()
        for event in events:
            committed[f"{event.task} {event.seq}"] = now
        publish(events)

    feed.publish = noted  # type: ignore[method-assign]
    return committed


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


# --- the clients ---


class Heard:
    """What all readers have heard together."""

    def __init__(self) -> None:
        self.got: list[tuple[str, float, float]] = []
        self.lost = 0
        self.doubled = 0
        self.ticks = 0
        self.measuring = False
        self.closed: list[int | None] = []


async def read(url: str, token: str, task: str, heard: Heard, ready: asyncio.Semaphore) -> None:
    """One client that reads: every event is one more than the last."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed

    headers = {"authorization": f"Bearer {token}"}
    path = f"ws{url.removeprefix('http')}/v1/tasks/{task}/events"
    async with connect(path, additional_headers=headers, compression=None, proxy=None, max_queue=256) as one:
        ready.release()
        last = None
        try:
            while True:
                text = await one.recv(decode=False)
                now = time.time()
                if not text.startswith(b'{"type":"event"'):
                    heard.ticks += text.startswith(b'{"type":"tick"')
                    continue
                event = json.loads(text)["event"]
                seq = event["seq"]
                if last is not None:
                    heard.lost += max(0, seq - last - 1)
                    heard.doubled += seq <= last
                last = seq
                if heard.measuring:
                    at = datetime.fromisoformat(event["at"]).timestamp()
                    heard.got.append((f"{event['task']} {seq}", now, at))
        except ConnectionClosed as closed:
            heard.closed.append(None if closed.rcvd is None else closed.rcvd.code)


def deaf(url: str, token: str) -> socket.socket:
    """One client that asks for everything and never reads."""
    host, port = url.removeprefix("http://").split(":")
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect((host, int(port)))
    key = b64encode(bytes(16)).decode()
    one.sendall(
        f"GET /v1/events?ticks=1 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    return one


async def sip(ears: Sequence[socket.socket]) -> None:
    """A byte a second of each, until it is cut off."""
    while True:
        await asyncio.sleep(1)
        for ear in ears:
            with suppress(OSError):
                ear.recv(1, socket.MSG_DONTWAIT)


async def measure(clients: int, slow: int, seconds: float, folder: Path) -> dict[str, Any]:
    """All clients against a server of its own."""
    tokens = -(-clients // SOCKETS_PER_TOKEN)
    server = subprocess.Popen(  # noqa: ASYNC220 -- once, before anything is measured
        [sys.executable, "-m", "bench.streams", "--serve", str(folder), str(tokens), str(seconds)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    process = psutil.Process(server.pid)
    try:
        where = json.loads(await asyncio.to_thread(server.stdout.readline))
        heard, ready = Heard(), asyncio.Semaphore(0)
        named = [where["tokens"][number // SOCKETS_PER_TOKEN] for number in range(clients)]
        readers = []
        for number in range(slow, clients):
            task = where["tasks"][number % TASKS]
            readers.append(asyncio.create_task(read(where["url"], named[number], task, heard, ready)))
            if number % 20 == 0:
                await asyncio.sleep(0.1)
        for _ in readers:
            await ready.acquire()
        await asyncio.sleep(3)
        before = process.memory_info().rss
        ears = [await asyncio.to_thread(deaf, where["url"], named[number]) for number in range(slow)]
        sipping = asyncio.create_task(sip(ears[::2]))
        cpu, began = process.cpu_times(), time.monotonic()
        heard.measuring = True
        most = before
        while time.monotonic() - began < seconds:
            await asyncio.sleep(0.5)
            most = max(most, process.memory_info().rss)
        heard.measuring = False
        spent = process.cpu_times()
        took = time.monotonic() - began
        server.stdin.write("\n")
        server.stdin.flush()
        told = json.loads(await asyncio.to_thread(server.stdout.readline))
        for one in (*readers, sipping):
            one.cancel()
        await asyncio.gather(*readers, sipping, return_exceptions=True)
        for ear in ears:
            ear.close()
        return {
            **figures(heard, told["committed"]),
            "clients": clients,
            "slow": slow,
            "slow_closed_1013": told["ended"].get("1013", 0),
            "readers_closed": len(heard.closed),
            "grown_mb": round((most - before) / 2**20, 1),
            "rss_mb": round(most / 2**20, 1),
            "server_cpu": round((spent.user + spent.system - cpu.user - cpu.system) / took, 2),
            "ticks_s": round(heard.ticks / took),
        }
    finally:
        server.kill()
        server.communicate()


def figures(heard: Heard, committed: dict[str, float]) -> dict[str, Any]:
    from_commit = sorted((now - committed[name]) * 1000 for name, now, _ in heard.got)
    from_event = sorted((now - at) * 1000 for _, now, at in heard.got)

    def at(share: float, ordered: list[float]) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) if ordered else float("inf")

    return {
        "events": len(from_commit),
        **{f"p{share * 100:g}_ms": at(share, from_commit) for share in (0.5, 0.95, 0.99)},
        "max_ms": at(1.0, from_commit),
        **{f"p{share * 100:g}_ms_with_flush": at(share, from_event) for share in (0.5, 0.95, 0.99)},
        "lost": heard.lost,
        "doubled": heard.doubled,
    }


def missed(found: dict[str, Any]) -> list[str]:
    """Targets that were not met."""
    targets = {name: most for name, most in TARGETS.items() if name != "p95_ms" or not found["slow"]}
    wrong = [f"{name}: {found[name]}, at most {most:g}" for name, most in targets.items() if found[name] > most]
    if found["slow_closed_1013"] < found["slow"]:
        wrong.append(f"closed with 1013: {found['slow_closed_1013']} of {found['slow']}")
    if found["readers_closed"]:
        wrong.append(f"{found['readers_closed']} clients that read were closed")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.streams", description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--slow", type=int, default=0, help="of these so many never read, or a byte a second")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--serve", nargs=3, metavar=("FOLDER", "TOKENS", "SECONDS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        folder, tokens, seconds = given.serve
        asyncio.run(serve(Path(folder), int(tokens), float(seconds)))
        return 0
    with tempfile.TemporaryDirectory(prefix="es-") as folder:
        found = asyncio.run(measure(given.clients, given.slow, given.seconds, Path(folder)))
    print(json.dumps(found))
    figures = [
        at_most(name, found[name], most, unit="")
        for name, most in TARGETS.items()
        if name != "p95_ms" or not found["slow"]
    ]
    who = f"{given.clients:,} clients" + (f", {given.slow} of which never read" if given.slow else "")
    keep(f"Events to {who}", f"python -m bench.streams --slow {given.slow}", figures, found)
    wrong = missed(found)
    for line in wrong:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
