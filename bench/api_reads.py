"""Reads over HTTP with many tasks in the store: `python -m bench.api_reads [TASKS]` prints p50 and p95 of each in ms.

A task in five hundred is paused, one in two hundred has failed; titles differ, so that a search has to look at all.
The server is a process of its own; requests go one after the other over one connection.
"""

import asyncio
import http.client
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from bench.kept import at_most, keep
from everstep import Engine, Plan

Json: TypeAlias = dict[str, Any]

TASKS: Final = 100_000
AT_ONCE: Final = 400
ROUNDS: Final = 60
READS_MS: Final = 50
SEARCH_MS: Final = 200
DONE: Final[Json] = {"name": "done", "steps": [{"id": "a", "tool": "text.join", "with": {"texts": ["a", "b"]}}]}
FAILS: Final[Json] = {"name": "fails", "steps": [{"id": "a", "tool": "json.parse", "with": {"text": "{"}}]}
WAITS: Final[Json] = {"name": "waits", "steps": [{"id": "a", "tool": "ask", "with": {"question": "Which one?"}}]}


def plan_of(number: int) -> str:
    return "waits" if number % 500 == 0 else "fails" if number % 200 == 1 else "done"


async def fill(folder: Path, count: int) -> str:
    """Tasks as they are made by anybody; the id of one of them."""
    config = {"store": str(folder / ".everstep/everstep.db"), "durability": "process", "log_level": "error"}
    plans = {str(plan["name"]): Plan.from_dict(plan) for plan in (DONE, FAILS, WAITS)}
    async with Engine(config=config) as engine:

        async def one(number: int) -> str:
            task = await engine.start(plans[plan_of(number)], title=f"Research brief {number} on topic {number % 977}")
            await task.result(on_pause="return")
            return task.id

        middle = ""
        for begin in range(0, count, AT_ONCE):
            made = await asyncio.gather(*(one(number) for number in range(begin, min(begin + AT_ONCE, count))))
            middle = middle or made[-1]
        return middle


def reads(task: str) -> dict[str, tuple[str, int]]:
    """What is asked, and how long it may take."""
    return {
        "list": ("/v1/tasks?limit=100", READS_MS),
        "list, oldest first": ("/v1/tasks?limit=100&sort=created_at", READS_MS),
        "list, last changed first": ("/v1/tasks?limit=100&sort=-updated_at", READS_MS),
        "list by status": ("/v1/tasks?status=failed&limit=100", READS_MS),
        "list by status, none": ("/v1/tasks?status=cancelled&limit=100", READS_MS),
        "list by plan": ("/v1/tasks?plan=waits&limit=100", READS_MS),
        "list what needs somebody": ("/v1/tasks?needs_you=1&limit=100", READS_MS),
        "one task": (f"/v1/tasks/{task}", READS_MS),
        "its steps": (f"/v1/tasks/{task}/steps", READS_MS),
        "its events": (f"/v1/tasks/{task}/events?after=0", READS_MS),
        "inbox": ("/v1/inbox", READS_MS),
        "errors": ("/v1/errors", READS_MS),
        "owner": ("/v1/owner", READS_MS),
        "search, found": (f"/v1/tasks?q={quote('topic 976')}", SEARCH_MS),
        "search, not found": (f"/v1/tasks?q={quote('no such words')}", SEARCH_MS),
    }


def measure(folder: Path, task: str) -> dict[str, tuple[float, float, int]]:
    command = [sys.executable, "-m", "everstep", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(json.loads(server.stdout.readline())["url"].rpartition(":")[2])
        token = (folder / ".everstep/token").read_text(encoding="ascii").strip()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        figures = {}
        for name, (path, most) in reads(task).items():
            times = []
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                connection.request("GET", path, headers={"authorization": f"Bearer {token}"})
                reply = connection.getresponse()
                body = reply.read()
                times.append((time.perf_counter() - begin) * 1000)
                assert reply.status == 200, body
                time.sleep(0.02)  # fifty a second is what one token may ask
            cuts = quantiles(times, n=20)
            figures[name] = (cuts[9], cuts[18], most)
        connection.close()
        server.terminate()
    return figures


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else TASKS
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        folder = Path(name)
        begin = time.perf_counter()
        task = asyncio.run(fill(folder, count))
        print(f"{count} tasks made in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
        figures = measure(folder, task)
    for read, (middle, late, most) in figures.items():
        print(f"{read:26} p50 {middle:7.1f} ms   p95 {late:7.1f} ms   {'ok' if late <= most else f'OVER {most}'}")
    kept = [at_most(f"{read}, p95", late, most) for read, (_, late, most) in figures.items()]
    keep(f"Reads over HTTP with {count:,} tasks in the store", "python -m bench.api_reads", kept)
    return int(any(late > most for _, late, most in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
