"""The process that a trial kills: it carries one task through the public Engine and writes down what it sees.

    python -m everstep.torture.child FOLDER

Started again after every kill, it asks for the same task by its key, goes on as a client would, and answers uncertain
outcomes from the effect log. It exits with 0 once the task has ended, leaving `result.json`.
"""

import asyncio
import faulthandler
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from everstep import Engine, Pause, Result, Task
from everstep.torture.history import read_streams
from everstep.torture.workload import PLAN, Workload
from everstep.torture.world import Appender, EffectLog, trial_tools

KEY: Final = "trial"
WITNESS_S: Final = 5.0
SETTINGS: Final[dict[str, Any]] = {"engine": {"max_recoveries": 1000, "heartbeat": "100ms"}}
"""Kills come faster than progress here, which is not the task's fault."""
AGAIN: Final = frozenset({"not_happened", "retry"})
"""Answers that let a call be made once more."""
ENDED: Final = frozenset({"completed", "failed", "cancelled"})


class Reader:
    """A second pair of eyes on the store: what could somebody else see of it at this moment?"""

    def __init__(self, store: Path) -> None:
        import apsw  # the engine's own library: another copy of SQLite in this process would break its locks

        self._failed = apsw.Error
        self._open = partial(apsw.Connection, str(store), flags=apsw.SQLITE_OPEN_READONLY)
        self._db: apsw.Connection | None = None

    def intent_seen(self, task: str, step: str, attempt: int) -> bool:
        return self._found(
            "SELECT 1 FROM events JOIN tasks ON tasks.num = events.task WHERE tasks.id = ?1"
            " AND type = 'attempt.started' AND step = ?2 AND json_extract(body, '$.data.attempt') = ?3",
            (task, step, attempt),
        )

    def event_seen(self, task: str, seq: int) -> bool:
        return self._found(
            "SELECT 1 FROM events JOIN tasks ON tasks.num = events.task WHERE tasks.id = ?1 AND seq = ?2", (task, seq)
        )

    def _found(self, query: str, values: tuple[str | int, ...]) -> bool:
        """Looked up again while the disk fails: that is a trial of the engine, not of its witness."""
        until = time.monotonic() + WITNESS_S
        while True:
            try:
                self._db = self._db or self._open()
                return self._db.execute(query, values).fetchone() is not None
            except self._failed:
                self._db = None
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)


def log_of(folder: Path) -> EffectLog:
    """The world of a trial; the store is looked into at the first call, when there is one."""
    readers: list[Reader] = []

    def intent_seen(task: str, step: str, attempt: int) -> bool:
        if not readers:
            readers.append(Reader(folder / "store.db"))
        return readers[0].intent_seen(task, step, attempt)

    return EffectLog(folder / "effects.jsonl", intent_seen)


class Client:
    """Asks, and writes down what it asked for and what it was told."""

    def __init__(self, folder: Path) -> None:
        self._lines = Appender(folder / "client.jsonl")

    def say(self, what: str, op: str, **more: object) -> None:
        self._lines.write(what=what, op=op, **more)


Disturb: TypeAlias = Callable[[Task, Workload, Client], Awaitable[None]]
"""Somebody who acts on the task while it is carried."""


async def carry(folder: Path, disturb: Disturb) -> None:
    """Carry the trial's task to its end."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, tell_stacks)
    workload = Workload.read(folder)
    store = folder / "store.db"
    log = log_of(folder)
    client = Client(folder)
    async with Engine(store, tools=trial_tools(log, workload), config=SETTINGS) as engine:
        client.say("invoke", "start", key=KEY)
        task = await engine.start(folder / PLAN, workload.inputs, key=KEY)
        client.say("ok", "start", key=KEY, task=task.id)
        news = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(subscribe(task, folder, Reader(store), news))
            disturbing = asyncio.ensure_future(disturb(task, workload, client))
            result = await follow(engine, Asker(task, client, log), news)
            disturbing.cancel()
        client.say("ok", "result", task=result.task_id, status=result.status, outputs=result.outputs)
        await account(engine, result, folder)


class Asker:
    """Somebody who knows the world, and answers what a crash left open."""

    def __init__(self, task: Task, client: Client, log: EffectLog) -> None:
        self.task = task
        self._client = client
        self._log = log

    async def answer(self, pause: Pause) -> None:
        match pause.type:
            case "uncertainOutcome":
                made = self._log.find(pause.task, str(pause.step))
                if made is None:
                    await self._say(pause, "not_happened", pause.not_happened())
                else:
                    await self._say(pause, "happened", pause.happened(made.output))
            case "toolError":
                await self._say(pause, "retry", pause.retry())
            case "approvalRequired" if pause.expires_at is None:
                await self._say(pause, "approve", pause.approve())
            case _:
                pass

    async def _say(self, pause: Pause, word: str, saying: Awaitable[None]) -> None:
        said = {"task": pause.task, "pause": pause.id, "answer": word}
        self._client.say("invoke", "answer", **said)
        await saying
        self._client.say("ok", "answer", **said)


async def follow(engine: Engine, asker: Asker, news: asyncio.Event) -> Result:
    """Wait for the end; look for questions whenever there is news."""
    while True:
        news.clear()
        for pause in await engine.inbox(asker.task.id):
            await asker.answer(pause)
        if (await asker.task.refresh()).status in ENDED:
            return await asker.task.result()
        await news.wait()


async def subscribe(task: Task, folder: Path, reader: Reader, news: asyncio.Event) -> None:
    """One subscriber over all incarnations: it goes on where its own log ends."""
    path = folder / "streams.jsonl"
    seen = read_streams(path)
    if seen and seen[-1].type.removeprefix("task.") in ENDED:
        return
    lines = Appender(path)
    async for event in task.events(after=len(seen)):
        durable = reader.event_seen(task.id, event.seq)
        lines.write(subscriber="s", task=task.id, seq=event.seq, type=event.type, durable=durable)
        news.set()


async def pause_often(task: Task, workload: Workload, client: Client) -> None:
    """Somebody who keeps asking for pauses, at moments of their own, and resumes each."""
    from everstep.errors import Conflict

    chance = random.Random(workload.seed)  # noqa: S311 -- seeded, so that a trial can be repeated
    for _ in range(workload.pauses):
        await asyncio.sleep(chance.uniform(0, 4 * workload.call_s))
        for op, ask in (("pause", task.pause), ("resume", task.resume)):
            client.say("invoke", op, task=task.id)
            try:
                await ask()
            except Conflict:
                client.say("fail", op, task=task.id)
            else:
                client.say("ok", op, task=task.id)


async def account(engine: Engine, result: Result, folder: Path) -> None:
    """What the engine says afterwards, left behind whole or not at all."""
    events = [event async for event in engine.events(result.task_id, follow=False) if event.step is not None]
    said = {
        "outputs": result.outputs,
        "recorded": Counter(event.step for event in events if event.type == "step.completed"),
        "asked": Counter(event.step for event in events if event.type == "pause.opened"),
        "decisions": Counter(event.step for event in events if event.data.get("answer") in AGAIN),
    }
    draft = folder / "result.tmp"
    draft.write_text(json.dumps(said), encoding="utf-8")
    draft.replace(folder / "result.json")


def tell_stacks() -> None:
    """Where every coroutine stands, for somebody who wonders why nothing moves."""
    for each in asyncio.all_tasks():
        each.print_stack(file=sys.stderr)


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    asyncio.run(carry(Path(sys.argv[1]), pause_often))
