"""Counted units on a real server: after kill -9, a pause and a retry each of them was made exactly once."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from everstep import Engine
from everstep.testing.sim import sim_tools
from everstep.torture import checker
from tests.fault.units_engine import UNITS, WALLS, plan_of, units

TOOLS = ["sim.units", "units.process"]


class Counting:
    """Counts units; on the arrival of some of them something else happens first, and maybe no answer."""

    def __init__(self) -> None:
        self.made: Counter[int] = Counter()
        self.before: dict[int, Callable[[], bool]] = {}
        """What to do when a unit comes, once; False: it was not made."""
        counting = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                unit = int(self.path.partition("unit=")[2])
                first = counting.before.pop(unit, None)
                if first is not None and not first():
                    return
                counting.made[unit] += 1
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def each_once(self) -> bool:
        return self.made == Counter(dict.fromkeys(range(UNITS), 1))


@pytest.fixture
def counting() -> Iterator[Counting]:
    one = Counting()
    yield one
    one.close()


@pytest.mark.req("4.3", "DoD.4", "TR.1")
@pytest.mark.parametrize("tool", TOOLS)
def test_each_unit_once_over_kills(counting: Counting, tmp_path: Path, tool: str) -> None:
    store = tmp_path / "everstep.db"
    running: list[subprocess.Popen[bytes]] = []

    def kill() -> bool:
        os.kill(running[-1].pid, signal.SIGKILL)
        return False

    kills = (2, 5) if tool == "sim.units" else (4,)
    counting.before = dict.fromkeys(kills, kill)
    for life in range(len(kills) + 1):
        command = [sys.executable, "-m", "tests.fault.units_engine", str(store), counting.url, tool]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        said, _ = running[-1].communicate(timeout=120)
        assert (running[-1].returncode, said) == ((0, b"completed") if life == len(kills) else (-signal.SIGKILL, b""))
    assert counting.each_once, counting.made
    assert [violation._asdict() for violation in checker.check(store)] == []


@pytest.mark.req("4.3", "4.1")
@pytest.mark.parametrize("tool", TOOLS)
async def test_each_unit_once_over_pauses_and_a_retry(counting: Counting, tmp_path: Path, tool: str) -> None:
    store = tmp_path / "everstep.db"
    async with Engine(store, tools=[*sim_tools(), units], config=WALLS) as engine:
        loop = asyncio.get_running_loop()

        def pause() -> bool:
            asyncio.run_coroutine_threadsafe(task.pause(), loop).result(60)
            return True

        pauses = (1, 4) if tool == "sim.units" else (3,)
        counting.before = {**dict.fromkeys(pauses, pause), 6: lambda: False}
        task = await engine.start(plan_of(tool, counting.url))
        for done in pauses:
            async with asyncio.timeout(120):
                paused = await (await task.refresh()).result(on_pause="return")
            assert (paused.status, sum(counting.made.values())) == ("paused", done + 1)
            await task.resume()
        async with asyncio.timeout(120):
            result = await (await task.refresh()).result()
        retried = [event async for event in task.events(follow=False) if event.type == "step.retry_scheduled"]
    assert (result.status, result.outputs) == ("completed", {"a": {"units": UNITS, "first": 6}})
    assert len(retried) == 1, "the server hung up on one unit"
    assert counting.each_once, counting.made
    assert [violation._asdict() for violation in checker.check(store)] == []
