"""Limits that hold while others work: `python -m bench.limits [each|siblings|mix|share ...]` prints each figure.

each       every kind of hog alone: when it is stopped, what is recorded, what is left, the lag of the loop (AC 7)
siblings   three tasks, alone or beside a memory bomb, a CPU burner, a fork bomb within a tenth (TP.4)
mix        everything that goes wrong at once, while somebody reads over HTTP: p95 below 250 ms (N.2, 7.6)
share      a program that burns CPU, with a control group and without: at most 0.55 of a core in any 10 s (7.2)
"""

import argparse
import asyncio
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import psutil

from bench.hogs import FREE, HOGS, each, hog_plan
from bench.kept import Figure, at_most, keep
from everstep import Engine, Plan
from everstep.adapters.isolation import watch
from everstep.adapters.isolation.child import Bounds, Child, Program
from everstep.adapters.isolation.group import best_roots
from everstep.domain.values import JsonObject
from everstep.testing.sim import sim_tools
from everstep.testing.sim_hungry import hungry_tools

STEPS: Final = 40
NAP_S: Final = 0.1
SIBLINGS_MAX: Final = 1.10
API_MS: Final = 250
SHARE_MAX: Final = 0.55


def sibling_plan() -> Plan:
    steps: list[Any] = [{"id": f"s{n}", "tool": "sim.sleep", "with": {"seconds": NAP_S}} for n in range(STEPS)]
    return Plan.from_dict({"name": "sibling", "steps": steps})


async def siblings(folder: Path) -> list[Figure]:
    """Three tasks, alone and in company."""
    async with Engine(folder / "s.db", tools=[*sim_tools(), *hungry_tools()], config=FREE) as engine:

        async def three() -> float:
            async def one() -> float:
                began = time.perf_counter()
                await (await engine.start(sibling_plan())).result()
                return time.perf_counter() - began

            return median(await asyncio.gather(*(one() for _ in range(3))))

        async def company(name: str) -> None:
            while True:
                await (await engine.start(hog_plan(name))).result()

        figures = []
        await three()
        for name in ("memory bomb", "CPU burner", "fork bomb"):
            alone = await three()
            hog = asyncio.create_task(company(name))
            beside = await three()
            hog.cancel()
            figures.append(
                at_most(f"three tasks beside a {name}, of {alone:.2f} s alone", beside / alone, SIBLINGS_MAX, "")
            )
    return figures


def mix(folder: Path) -> list[Figure]:
    """Reads over HTTP, with the server at rest and while everything goes wrong."""
    (folder / "hungry.py").write_text(
        "from everstep.testing.sim_hungry import *\nfrom everstep.testing.sim_hungry import hungry_tools\n",
        encoding="utf-8",
    )
    (folder / "everstep.toml").write_text(
        'tools = ["hungry"]\nlog_level = "error"\n[containment]\nuid_base = 0\n[containment.require]\nsim = {'
        + ", ".join(f'{tool.partition(".")[2]} = "limited"' for tool in sorted({tool for tool, _, _ in HOGS.values()}))
        + "}\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "everstep", "serve", "--testing", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(json.loads(server.stdout.readline())["url"].rpartition(":")[2])
        token = (folder / ".everstep/token").read_text(encoding="ascii").strip()
        rest = read_for(10, port, token)
        done, over = [0], threading.Event()
        feeding = threading.Thread(target=feed, args=(port, token, over, done))
        feeding.start()
        worst = read_for(40, port, token)
        over.set()
        feeding.join()
        children = psutil.Process(server.pid).children(recursive=True)
        server.terminate()
        server.wait(60)
    _, left = psutil.wait_procs(children, timeout=10)
    return [
        at_most(f"p95 of {rest[0]} reads at rest, p50 {rest[1]:.1f} ms", rest[2], API_MS),
        at_most(f"p95 of {worst[0]} reads beside {done[0]} hogs, p50 {worst[1]:.1f} ms", worst[2], API_MS),
        at_most("processes left over", len(left), 0, ""),
    ]


def ask(port: int, token: str, method: str, path: str, body: JsonObject | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    reply = connection.getresponse()
    said = json.loads(reply.read() or b"null")
    connection.close()
    return reply.status, said


def feed(port: int, token: str, over: threading.Event, done: list[int]) -> None:
    """A few of every kind at the same time, all the time."""
    names = [*HOGS]
    while not over.is_set():
        status, said = ask(port, token, "GET", "/v1/tasks?status=running,queued&limit=50")
        if status == 200 and len(said["items"]) < 4:
            tool, arguments, more = HOGS[names[done[0] % len(names)]]
            step = {"id": "a", "tool": tool, "with": arguments, "retry": 0, "on_error": "continue", **more}
            status, said = ask(port, token, "POST", "/v1/tasks", {"plan": {"name": "hog", "steps": [step]}})
            assert status in (201, 503), said
            done[0] += status == 201
        time.sleep(0.1)


def read_for(seconds: float, port: int, token: str) -> tuple[int, float, float]:
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        for path in ("/v1/tasks?limit=50", "/v1/health"):
            began = time.perf_counter()
            status, said = ask(port, token, "GET", path)
            times.append((time.perf_counter() - began) * 1000)
            assert status == 200, said
            time.sleep(0.05)
    cuts = quantiles(times, n=20)
    return len(times), cuts[9], cuts[18]


async def share(folder: Path) -> list[Figure]:
    """How much of a core a program gets that has worked for long, with a control group and without."""
    roots = best_roots()
    figures = [Figure("share of a core in any 10 s, niced only", f"{await worst_share(folder, ('cgroup',)):.2f}")]
    if roots is None:
        return [Figure("share by a control group", "there is none here"), *figures]
    worst = await worst_share(folder, ())
    return [at_most(f"share of a core in any 10 s by cgroup {roots.version}", worst, SHARE_MAX, ""), *figures]


async def worst_share(folder: Path, without: tuple[str, ...], seconds: float = 60) -> float:
    """The most that two loops without end get in any ten seconds, of so many after they were found to be busy."""
    words = ("/bin/sh", "-c", "while :; do :; done & while :; do :; done")
    child = Child(Program(argv=words, cwd=str(folder), bounds=Bounds(cpu_s=600), without=without))
    running = asyncio.create_task(child.run())
    samples: list[tuple[float, float]] = []
    busy_from: float | None = None
    while not running.done() and (busy_from is None or samples[-1][0] < busy_from + seconds):
        await asyncio.sleep(0.25)
        samples.append((time.monotonic(), child._watched.cpu_s))
        if busy_from is None and samples[-1][1] > watch.BUSY_CPU_S + 0.5:
            busy_from = samples[-1][0]
    running.cancel()
    await asyncio.wait((running,))
    return windows([one for one in samples if busy_from is not None and one[0] >= busy_from])


def windows(samples: list[tuple[float, float]]) -> float:
    found = [0.0]
    for at, used in samples:
        later = next(((then, more) for then, more in samples if then >= at + 10), None)
        if later is not None:
            found.append((later[1] - used) / (later[0] - at))
    return max(found)


def main() -> int:
    stories: dict[str, Callable[[Path], list[Figure]]] = {
        "each": lambda folder: asyncio.run(each(folder)),
        "siblings": lambda folder: asyncio.run(siblings(folder)),
        "mix": mix,
        "share": lambda folder: asyncio.run(share(folder)),
    }
    parser = argparse.ArgumentParser(prog="bench.limits", description=__doc__)
    parser.add_argument("story", nargs="*", default=[*stories])
    missed = False
    for story in parser.parse_args().story:
        with tempfile.TemporaryDirectory(prefix="everstep-limits-") as folder:
            figures = stories[story](Path(folder))
        for one in figures:
            print(f"{one.what:60} {one.value:>10}  {one.target:>10}  {'' if one.met is not False else 'MISSED'}")
            missed = missed or one.met is False
        keep(f"Limits while others work: {story}", f"python -m bench.limits {story}", figures)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
