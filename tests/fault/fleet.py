"""A fleet under trial: real `everstep worker` processes on a real PostgreSQL, and a client that asks and answers.

The client drives everything through the public Engine; what is left behind is judged by the checker, from a dump of the
journal and the log in which the tools themselves wrote what they did.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from everstep import Engine, Pause, Plan, Task
from everstep.domain.values import JsonObject
from everstep.errors import EverstepError
from everstep.torture.checker import Bounds, check
from everstep.torture.dump import dump
from everstep.torture.history import Frozen, Logs, Violation, read_effects
from everstep.torture.world import Made

ROOT = Path(__file__).parents[2]
ENGINE: Final[JsonObject] = {
    "heartbeat": "200ms",
    "stale_after": "2s",
    "janitor": "300ms",
    "max_recoveries": 1000,
    "shutdown_grace": "2s",
}
LEASE_S = 2.0
JANITOR_S = 0.3
PATIENCE_S = 240.0
EFFECTS = ("pure", "once", "verifiable", "idempotent", "pure")


def plan(steps: int) -> dict[str, Any]:
    """Steps in line; two of ten must not be repeated."""
    line = [{"id": f"s{n}", "tool": f"trial.{EFFECTS[n % len(EFFECTS)]}", "with": {"value": n}} for n in range(steps)]
    return {"name": "crew", "steps": line}


class Fleet:
    """Workers, and who looks after them."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *,
        call_s: float = 0.002,
        worker_url: str | None = None,
        temporal: str = "",
        **engine: str | int,
    ) -> None:
        """`engine`: settings that this fleet's workers have beside the usual ones. `temporal`: who carries instead."""
        self.folder = folder
        self.url = url
        self.effects = folder / "effects.jsonl"
        self.effects.touch()
        self._made = Made(self.effects)
        self._environ = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests' / 'fault'}",
            "EVERSTEP_EFFECT_LOG": str(self.effects),
            "EVERSTEP_EFFECT_LOG_CALL_S": str(call_s),
        }
        settings = "\n".join(f"{key} = {json.dumps(value)}" for key, value in {**ENGINE, **engine}.items())
        if temporal:
            settings += f'\nkind = "temporal"\n[temporal]\naddress = "{temporal}"'
        self._settings = f'tools = ["crew_tools"]\n[engine]\n{settings}\n'
        self.settle(worker_url or url)
        (folder / "crew.plan.json").write_text(json.dumps(plan(10)))
        self.workers: list[subprocess.Popen[bytes]] = []
        self.frozen: list[Frozen] = []
        self.acted_on_waking = 0
        """Calls that a worker was about to make when it was frozen, and made when somebody else had made them."""

    def settle(self, store: str) -> None:
        """Where workers that are hired from now on find their tasks."""
        (self.folder / "everstep.toml").write_text(f"store = {json.dumps(store)}\n{self._settings}")

    def call(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A command in this folder, to its end."""
        how: dict[str, Any] = {"cwd": self.folder, "env": self._environ, "capture_output": True, "timeout": 60}
        return subprocess.run(self.command(*words), text=True, check=False, **how)

    def command(self, *words: str) -> list[str]:
        """A command of ours."""
        return [sys.executable, "-m", "everstep", *words]

    @property
    def ready(self) -> int:
        """How many have ever begun to work."""
        return (self.folder / "workers.log").read_text().count('"ready"')

    @property
    def ready_now(self) -> int:
        """How many of those that are here have begun to work."""
        said = (self.folder / "workers.log").read_text()
        return sum(f'"ready","pid":{worker.pid},' in said for worker in self.workers if worker.poll() is None)

    def hire(self, count: int = 1, *words: str, before: Sequence[str] = ()) -> None:
        """More workers; all have the same name, if nobody says otherwise. `before`: what their command begins with."""
        for _ in range(count):
            with (self.folder / "workers.log").open("ab") as log:
                self.workers.append(
                    subprocess.Popen(
                        [*before, *self.command("worker", "--json", *words)],
                        cwd=self.folder,
                        env=self._environ,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """At once, with all that it started; somebody new comes."""
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        self.workers.remove(worker)
        self.hire()

    async def stop(self, worker: subprocess.Popen[bytes], seconds: float) -> None:
        """Freeze it for longer than its lease, then let it go on."""
        os.killpg(worker.pid, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self.frozen.append(Frozen(worker.pid, time.time_ns() // 1_000_000))
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGCONT)

    def dismiss(self) -> list[int | None]:
        """All of them, in order; how they ended."""
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.send_signal(signal.SIGTERM)
        ends: list[int | None] = []
        for worker in self.workers:
            try:
                ends.append(worker.wait(60))
            except subprocess.TimeoutExpired:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
                ends.append(None)
        self.workers = []
        return ends

    def engine(self, store: str | None = None, *, worker: bool = False) -> Engine:
        """A client of the store that carries nothing, unless it has to."""
        sys.path.insert(0, str(ROOT / "tests" / "fault"))
        os.environ.setdefault("EVERSTEP_EFFECT_LOG", str(self.effects))
        os.environ.setdefault("EVERSTEP_EFFECT_LOG_CALL_S", "0")
        return Engine(store or self.url, config={"engine": ENGINE, "tools": ["crew_tools"]}, worker=worker)

    async def submit(self, engine: Engine, count: int) -> list[Task]:
        """So many tasks, each by its key."""
        loaded = Plan.load(self.folder / "crew.plan.json")
        return [await insist(partial(engine.start, loaded, key=f"k{n}")) for n in range(count)]

    async def finish(self, engine: Engine, count: int, patience_s: float = PATIENCE_S) -> None:
        """Until all have ended."""
        until = time.monotonic() + patience_s
        while True:
            tasks = (await insist(engine.desk.info)).tasks
            if tasks.get("completed") == count:
                return
            assert time.monotonic() < until, (tasks, (self.folder / "workers.log").read_text()[-3000:])
            await self.heed(engine)
            await asyncio.sleep(0.1)

    async def heed(self, engine: Engine) -> None:
        """Whoever asks about an uncertain call is answered from the log of what was done."""
        for pause in await insist(engine.inbox):
            with suppress(EverstepError):
                await self._answer(pause)

    async def _answer(self, pause: Pause) -> None:
        assert pause.type == "uncertainOutcome", pause
        made = self._made.of_step(pause.task, str(pause.step))
        await (pause.not_happened() if made is None else pause.happened(made.output))

    def judge(self) -> list[Violation]:
        """What journal and effects prove against us."""
        journal = dump(self.url, self.folder / "journal.db")
        effects, bounds = read_effects(self.effects), Bounds(max_recoveries=1000, healed=True)
        found = check(journal, Logs(effects=effects, frozen=tuple(self.frozen)), bounds)
        self.acted_on_waking = len(check(journal, Logs(effects=effects), bounds)) - len(found)
        return found


async def insist(ask: Callable[[], Awaitable[Any]], seconds: float = PATIENCE_S) -> Any:
    """Ask again while the database is away."""
    until = time.monotonic() + seconds
    while True:
        try:
            return await ask()
        except EverstepError as error:
            if error.code not in {"store_unavailable", "overloaded", "not_ready"} or time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
