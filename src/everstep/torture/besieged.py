"""One life of somebody's plan: the engine as it is, on a store of its own, with a witness beside every tool.

It carries the task to its end or to a question that nobody can answer, and leaves `result.json`; unless it dies
before, at the boundary that it was told.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Final

from everstep import Engine, Pause, Plan, Task
from everstep.bootstrap import KnownSecrets, adapters_of, assemble, scripts_of, secrets_of, the_world
from everstep.domain.pauses import UncertainOutcome
from everstep.facade.desk import Desk, Wish
from everstep.facade.runnable import Runnable, as_plan
from everstep.settings import load_settings
from everstep.torture.child import ENDED, Client, Reader, log_of, subscribe
from everstep.torture.order import Order, Passages
from everstep.torture.shaped import shaped, texts_of
from everstep.torture.witness import Orders, Witness, made_under

KEY: Final = "siege"
CANARY: Final = "canary-7f3a1c-never-to-be-seen"
_SECRET: Final = re.compile(r"\bsecrets\.([a-z][a-z0-9_]*)")


async def carry(order: Order, folder: Path, deadly: str | None) -> None:
    """This life."""
    settings = load_settings(
        {
            "store": str(folder / "store.db"),
            "config": order.config,
            "engine": {"max_recoveries": 1000, "heartbeat": "100ms"},
        }
    )
    plan = order.load()
    outside = the_world(settings, Passages(folder / "points.jsonl", deadly))
    text = json.dumps(plan.to_dict() if isinstance(plan, Plan) else {})
    if order.real:
        outside.secrets = secrets_of(settings, {})
    else:
        outside.secrets = KnownSecrets({name: f"{CANARY}-{name}" for name in _SECRET.findall(text)}, {})
    log = log_of(folder)
    orders = Orders(order.said, tuple(texts_of(json.loads(text))), order.real)
    tools = tuple(getattr(plan, "tools", ()))
    adapters = [
        Witness(one, orders, log, folder / "effects.jsonl")
        for one in adapters_of(settings, tools, outside.codec, outside.secrets)
    ]
    scripts = scripts_of(settings, tools)
    parts = assemble(settings, adapters, outside, carries="all", scripts=scripts)
    await parts.runtime.open()
    await parts.runtime.recover()
    desk = Desk(parts.runtime, parts.workspace)
    await Life(desk, order, folder).live(plan)
    await parts.runtime.close()


class Life:
    """Somebody who starts the task, watches it and answers."""

    def __init__(self, desk: Desk, order: Order, folder: Path) -> None:
        self._desk = desk
        self._order = order
        self._folder = folder
        self._client = Client(folder)
        self._who = Engine().who
        self._asked: set[str] = set()
        self._stuck: list[str] = []

    async def live(self, plan: Runnable) -> None:
        """To the end, or to a question that nobody can answer."""
        loaded = as_plan(plan, self._desk)
        spec, digest = loaded.named()
        wish = Wish(plan=spec, digest=digest, inputs=self._order.inputs, trusted=loaded.trusted, key=KEY)
        self._client.say("invoke", "start", key=KEY)
        task = Task(self._desk, self._who, await self._desk.submit(wish, self._who))
        self._client.say("ok", "start", key=KEY, task=task.id)
        news = asyncio.Event()
        watching = asyncio.ensure_future(subscribe(task, self._folder, Reader(self._folder / "store.db"), news))
        await self._follow(task, news)
        if task.status in ENDED:
            await watching
            self._client.say("ok", "result", task=task.id, status=task.status)
        watching.cancel()
        said = {
            "task": task.id, "status": task.status, "outputs": task.outputs, "stuck": self._stuck,
            "error": task.error and task.error.get("message"),
        }  # fmt: skip
        draft = self._folder / "result.tmp"
        draft.write_text(json.dumps(said), encoding="utf-8")
        draft.replace(self._folder / "result.json")

    async def _follow(self, task: Task, news: asyncio.Event) -> None:
        while True:
            news.clear()
            await task.refresh()
            open_now = [pause for pause in task.pauses if pause.id not in self._asked]
            for pause in open_now:
                self._asked.add(pause.id)
                await self._answer(pause)
            if task.status in ENDED or (task.status == "paused" and not open_now and self._stuck):
                return
            if not open_now:
                await news.wait()

    async def _answer(self, pause: Pause) -> None:
        said = self._order.said.get(str(pause.step).partition("[")[0])
        reason = pause.reason
        word, saying = None, None
        if isinstance(reason, UncertainOutcome):
            made = made_under(self._folder / "effects.jsonl", reason.idempotency_key)
            word = "not_happened" if made is None else "happened"
            saying = pause.not_happened() if made is None else pause.happened(made.output)
        elif "approve" in pause.answers and said == "reject":
            word, saying = "reject", pause.reject("as it was said")
        elif "approve" in pause.answers:
            word, saying = "approve", pause.approve()
        elif "answer" in pause.answers:
            schema = getattr(reason, "schema", None)
            word, saying = "answer", pause.answer(shaped(schema) if said is None else said)
        if saying is None:
            self._stuck.append(f"{pause.type} of {pause.step}: {pause.title}")
            return
        about = {"task": pause.task, "pause": pause.id, "answer": word}
        self._client.say("invoke", "answer", **about)
        await saying
        self._client.say("ok", "answer", **about)
