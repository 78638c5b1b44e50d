"""A child whose tasks are paused, resumed, approved, cancelled, retried and patched without rest, until it is killed.

    python -m everstep.torture.storm FOLDER

Every life starts a few tasks more and disturbs all there are, at moments of its own seed. Once somebody has
put a file `calm` into the folder it answers what is open, lets every task end, and leaves `result.json`. Like the other
children it uses the public doors only.
"""

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from everstep import Engine, Pause, Task
from everstep.errors import EverstepError
from everstep.torture.child import SETTINGS, Client, log_of
from everstep.torture.workload import Workload
from everstep.torture.world import EffectLog, trial_tools

TASKS: Final = 3
"""New ones in every life."""
CALL_S: Final = 0.02
REST_S: Final = 0.01
ENDED: Final = frozenset({"completed", "failed", "cancelled"})
PLAN: Final[dict[str, Any]] = {
    "name": "storm",
    "parallel": 2,
    "steps": [
        {"id": "a", "tool": "trial.once", "with": {"value": 1}, "approve": "Do it?", "on_error": "pause"},
        {"id": "b", "tool": "trial.idempotent", "with": {"value": 2}, "needs": []},
        {"id": "c", "tool": "trial.verifiable", "with": {"value": "${b.value}"}, "needs": ["b"]},
        {"id": "d", "tool": "trial.once", "with": {"value": 4}, "needs": ["a", "c"]},
        {"id": "e", "tool": "trial.pure", "with": {"value": 5}},
    ],
    "finally": [{"id": "tidy", "tool": "trial.pure", "with": {"value": 6}}],
}


class Storm:
    """One life of it."""

    def __init__(self, folder: Path, engine: Engine, log: EffectLog) -> None:
        self._folder = folder
        self._engine = engine
        self._log = log
        self._client = Client(folder)
        lives = folder / "lives"
        with lives.open("ab") as count:
            count.write(b".")
        self._life = lives.stat().st_size
        seed = int((folder / "seed").read_text(encoding="ascii"))
        self._chance = random.Random(1000 * seed + self._life)  # noqa: S311 -- seeded, to be repeated
        self._commands: tuple[Callable[[Task], Awaitable[object]], ...] = (
            self._pause, self._pause, self._resume, self._resume, self._resume, self._retry, self._patch, self._cancel,
        )  # fmt: skip

    async def blow(self) -> None:
        """Until killed, or until it is calm."""
        path = self._folder / "storm.plan.json"
        path.write_text(json.dumps(PLAN), encoding="utf-8")
        if not (self._folder / "calm").exists():
            for number in range(TASKS):
                await self._engine.start(path, key=f"storm-{self._life}-{number}")
        tasks = list(await self._engine.list(limit=500))
        while not (self._folder / "calm").exists():
            await asyncio.sleep(self._chance.uniform(0, 2 * REST_S))
            await self._answer_some()
            await self._chance.choice(self._commands)(self._chance.choice(tasks))
        while not all([(await task.refresh()).status in ENDED for task in tasks]):
            for task in tasks:
                await self._resume(task)
            for pause in await self._engine.inbox():
                await self._say("answer", self._settle(pause), task=pause.task, pause=pause.id)
            await asyncio.sleep(REST_S)

    async def _answer_some(self) -> None:
        for pause in await self._engine.inbox():
            if self._chance.random() < 0.3:
                again = 2 if self._chance.random() < 0.3 else 1  # people click twice
                saying = [self._say("answer", self._word(pause), task=pause.task, pause=pause.id) for _ in range(again)]
                await asyncio.gather(*saying)

    def _word(self, pause: Pause) -> Awaitable[None]:
        if pause.type == "approvalRequired" and self._chance.random() < 0.2:
            return pause.reject("not today")
        return self._settle(pause)

    def _settle(self, pause: Pause) -> Awaitable[None]:
        """An answer after which its step goes on."""
        match pause.type:
            case "uncertainOutcome":
                made = self._log.find(pause.task, str(pause.step))
                return pause.not_happened() if made is None else pause.happened(made.output)
            case "approvalRequired":
                return pause.approve()
            case "userRequested":
                return pause.resume()
            case "toolError":
                return pause.retry()
            case _:
                return pause.skip()

    async def _pause(self, task: Task) -> None:
        mode = self._chance.choice(("graceful", "immediate"))
        await self._say("pause", task.pause(mode), task=task.id)

    async def _resume(self, task: Task) -> None:
        await self._say("resume", task.resume(), "info", task=task.id)  # there may be nothing to lift

    async def _cancel(self, task: Task) -> None:
        if self._chance.random() < 0.2:
            await self._say("cancel", task.cancel(), task=task.id)

    async def _retry(self, task: Task) -> None:
        await self._say("retry", task.retry("d", confirm_effects=True), task=task.id)

    async def _patch(self, task: Task) -> None:
        at = (await task.refresh()).revision
        ops: list[dict[str, Any]] = [{"op": "set", "id": self._chance.choice("cde"), "with": {"value": at}}]
        if self._chance.random() < 0.5:
            ops = [{"op": "append", "step": {"id": f"x{at}", "tool": "trial.pure", "with": {"value": at}}}]
        await self._say("patch", task.patch(ops, at), task=task.id)

    async def _say(self, op: str, work: Awaitable[object], done: str = "ok", **about: object) -> None:
        """What is refused is refused; only what was promised counts."""
        self._client.say("invoke", op, **about)
        try:
            await work
        except EverstepError:
            self._client.say("fail", op, **about)
        else:
            self._client.say(done, op, **about)


async def carry(folder: Path) -> None:
    """One life."""
    store = folder / "store.db"
    log = log_of(folder)
    tools = trial_tools(log, Workload(call_s=CALL_S))
    async with Engine(store, tools=tools, config=SETTINGS) as engine:
        await Storm(folder, engine, log).blow()
        ends = [task.status for task in await engine.list(limit=500)]
    (folder / "result.json").write_text(json.dumps(ends), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(carry(Path(sys.argv[1])))
