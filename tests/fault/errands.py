"""Somebody with many errands, killed at each of them: pauses, answers, cancels, signals, tokens, deletion.

    python -m tests.fault.errands                 every point, five times
    python -m tests.fault.errands POINT…          these, once

Every life does what is left, whatever the last one came to. Lives are forked from this process, which has neither a
loop nor a thread; each point gets a store of its own, two lives at least, and the checker.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from everstep import Engine, Plan, Task
from everstep.domain.access import Credential, CredentialKind
from everstep.domain.events import ActorKind
from everstep.domain.ids import Instant, Millis
from everstep.errors import EverstepError, NotFound
from everstep.ports.handles import Handle
from everstep.torture.checker import check
from everstep.torture.child import SETTINGS, Client, log_of
from everstep.torture.history import Logs, Violation, read_client, read_effects
from everstep.torture.points import BY_ERRANDS
from everstep.torture.results import Line, Results, verdict
from everstep.torture.trial import BOUNDS
from everstep.torture.workload import Workload
from everstep.torture.world import trial_tools

TIMES = 5
ENDED = ("completed", "failed", "cancelled")
HOUR_MS = 3_600_000
WORK: list[Any] = [
    {"id": "a", "tool": "trial.once", "with": {"value": 1}},
    {"id": "b", "tool": "trial.idempotent", "with": {"value": "${a.value}"}},
]
PLANS = {
    "held": [{"id": "w", "tool": "wait", "with": {"for": "300ms"}}, *WORK],
    "asks": [{"id": "q", "tool": "ask", "with": {"question": "go?"}}, *WORK],
    "ended": [{"id": "w", "tool": "wait", "with": {"for": "1h"}}],
    "hears": [{"id": "w", "tool": "wait", "with": {"event": "news", "key": "k"}}, *WORK],
    "gone": [*WORK],
}


class Errands:
    """One life of them."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder = folder
        self._engine = engine
        self._client = Client(folder)

    async def run(self) -> None:
        """All that is left; each says what it was told."""
        held, asks, ended, hears = [await self._task(name) for name in ("held", "asks", "ended", "hears")]
        for op, ask in (("pause", held.pause), ("resume", held.resume)):
            await self._say(op, held, ask(), "ok" if op == "pause" else "info")  # there may be nothing to lift
        await self._answer(asks)
        await self._say("cancel", ended, ended.cancel())
        await self._first(hears, "step.waiting")
        await self._engine.signal("news", "k", {"n": 1}, id="the-one")
        for task in (held, asks, ended, hears):
            await self._to_its_end(task)
        await self._keys(held)
        await self._delete()
        await self._breaker()

    async def _task(self, name: str) -> Task:
        plan = Plan.from_dict({"name": name, "steps": PLANS[name]})
        self._client.say("invoke", "start", key=name)
        task = await self._engine.start(plan, key=name)
        self._client.say("ok", "start", key=name, task=task.id)
        return task

    async def _answer(self, task: Task) -> None:
        await self._first(task, "pause.opened")
        for pause in await self._engine.inbox(task.id):
            if pause.type == "inputRequired":
                said = {"pause": pause.id, "answer": "answer"}
                await self._say("answer", task, pause.answer("yes"), **said)

    async def _first(self, task: Task, kind: str) -> None:
        async for event in task.events():
            if event.type in (kind, "task.completed"):
                return

    async def _to_its_end(self, task: Task) -> None:
        log = log_of(self._folder)
        while (await task.refresh()).status not in ENDED:
            for pause in await self._engine.inbox(task.id):
                if pause.type == "userRequested":
                    await pause.resume()
                elif pause.type == "uncertainOutcome":
                    made = log.find(pause.task, str(pause.step))
                    await (pause.not_happened() if made is None else pause.happened(made.output))
            await asyncio.sleep(0.005)

    async def _keys(self, task: Task) -> None:
        """A token and a handle, of which a second life finds the first."""
        store, now = self._engine.desk.runtime.kit.store, Instant(1)
        token = Credential(
            id="k_1", kind=CredentialKind.TOKEN, hash=b"\x01" * 32, name="one", owner="local",
            actor_kind=ActorKind.HUMAN, actor_id="local", scopes=frozenset({"tasks:read"}), created_at=now,
        )  # fmt: skip
        if await store.keyring.find(token.hash) is None:
            await store.keyring.add(token)
        wanted = Handle(id="mt_" + "a" * 32, owner="local", task=task.task_id, generation=1, ttl_ms=Millis(HOUR_MS),
                        created_at=now, notes={})  # fmt: skip
        kept = await store.handles.keep(wanted)
        await store.handles.note(kept.id, {"seen": True})

    async def _delete(self) -> None:
        try:
            task = await self._task("gone")
        except EverstepError:  # its key is spent
            return
        await self._to_its_end(task)
        try:
            await self._engine.desk.delete(task.task_id, self._engine.who)
        except NotFound:
            return

    async def _breaker(self) -> None:
        """There is none in trouble; the store is asked all the same."""
        await self._engine.desk.runtime.kit.store.troubles.reset("local", "trial.once")

    async def _say(self, op: str, task: Task, work: Any, done: str = "ok", **about: object) -> None:
        self._client.say("invoke", op, task=task.id, **about)
        try:
            await work
        except EverstepError:
            self._client.say("fail", op, task=task.id, **about)
        else:
            self._client.say(done, op, task=task.id, **about)


async def live(folder: Path, armed: str) -> None:
    """One life, in a process of its own."""
    os.environ["EVERSTEP_FAILPOINTS"] = armed
    tools = trial_tools(log_of(folder), Workload(call_s=0.001))
    async with Engine(folder / "store.db", tools=tools, config=SETTINGS) as engine:
        await Errands(folder, engine).run()
    (folder / "done").touch()


def play(point: str) -> Line:
    """Killed there, then carried to its end; what the checker says."""
    with tempfile.TemporaryDirectory(prefix="es-") as base:
        folder = Path(base)
        ends = [born(folder, f"{point}=sigkill"), born(folder, "")]
        logs = Logs(effects=read_effects(folder / "effects.jsonl"), client=read_client(folder / "client.jsonl"))
        found = [one for one in check(folder / "store.db", logs, BOUNDS) if not of_the_deleted(one)]
        done = (folder / "done").exists()
        said = (folder / "child.log").read_text()[-1500:] if not done else ""
    kills = sum(end == -signal.SIGKILL for end in ends)
    wrong = [one._asdict() for one in found]
    return {"verdict": verdict(wrong, not done, kills != 1), "kills": kills, "violations": wrong, "said": said}


def of_the_deleted(violation: Violation) -> bool:
    """A task that was deleted on purpose has no journal to hold its effects against."""
    return violation.check in ("C1", "C3") and (
        "no such task" in violation.what or "does not know it" in violation.what
    )


def born(folder: Path, armed: str) -> int:
    """Fork; returns how it ended."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            said = os.open(folder / "child.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            os.dup2(said, 1)
            os.dup2(said, 2)
            asyncio.run(asyncio.wait_for(live(folder, armed), 60))
            code = 0
        except BaseException as error:  # noqa: BLE001 -- a forked child never returns into its parent's code
            import traceback

            traceback.print_exception(error)
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def main(points: Sequence[str]) -> int:
    """These points once, without a file; or all of them, several times, into the results."""
    results, wrong = Results.of_this_commit(), 0
    for seed in range(1, 2 if points else TIMES + 1):
        for point in points or BY_ERRANDS:
            line = play(point) if points else results.once(f"F1a {point}", seed, partial(play, point))
            wrong += line["verdict"] != "passed"
            print(json.dumps({"point": point, **line}) if points else f"{point}: {line['verdict']}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
