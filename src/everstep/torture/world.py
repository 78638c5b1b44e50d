"""The world of a trial: tools that tell it before they tell the engine, and the log it keeps.

The first line a tool writes *is* its effect: one append to the effect log, whole or not at all. So the log shows
exactly what was made, whenever the process dies, and an uncertain outcome can be answered from it.
"""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from everstep import Ctx, ToolError, tool
from everstep.ports.tool import Call
from everstep.torture.history import Effect, read_on
from everstep.torture.workload import Workload, after


class Appender:
    """JSON lines that several incarnations write, each line by one append.

    A kill may cut an append short where a page of the file ends. So each begins by spoiling what stands unfinished
    before it: that was never made, and does not become whole by what follows.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def write(self, **line: object) -> None:
        os.write(self._file, b"#\n" + json.dumps(line).encode() + b"\n")


class Made:
    """What was made, by call and by step: each look reads only what the log has gained since the last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._calls: dict[str, Effect] = {}
        self._steps: dict[tuple[str, str], Effect] = {}
        self._reading = threading.Lock()

    def of_call(self, key: str) -> Effect | None:
        """By the key of a call."""
        self._catch_up()
        return self._calls.get(key)

    def of_step(self, task: str, step: str) -> Effect | None:
        """By its place."""
        self._catch_up()
        return self._steps.get((task, step))

    def _catch_up(self) -> None:
        with self._reading:
            for effect, end in read_on(self._path, self._read):
                self._read = end
                self._calls.setdefault(effect.key, effect)
                self._steps.setdefault((effect.task, effect.step), effect)


class EffectLog:
    """The world: it hears of every call, from the called tool itself."""

    def __init__(self, path: Path, intent_seen: Callable[[str, str, int], bool]) -> None:
        self._made = Made(path)
        self._lines = Appender(path)
        self._intent_seen = intent_seen
        self._incarnation = os.urandom(16).hex()

    def write(self, what: str, ctx: Ctx, output: object) -> None:
        line: dict[str, object] = {
            "task": ctx.task_id,
            "step": ctx.step_id,
            "attempt": ctx.attempt,
            "key": ctx.idempotency_key,
            "pid": os.getpid(),
            "incarnation": self._incarnation,
            "what": what,
            "at": time.time_ns() // 1_000_000,
            "output": output,
        }
        if what == "start":
            line["intent"] = self._intent_seen(ctx.task_id, ctx.step_id, ctx.attempt)
        self._lines.write(**line)

    def find(self, task: str, step: str) -> Effect | None:
        """What a step has made, if anything."""
        return self._made.of_step(task, step)

    def look(self, call: Call) -> Literal["not_done"] | tuple[Literal["done"], object]:
        """The same, for a tool that can look for itself."""
        made = self._made.of_call(call.idempotency_key)
        return "not_done" if made is None else ("done", made.output)


def trial_tools(log: EffectLog, workload: Workload) -> Sequence[Callable[..., Any]]:
    """One tool per effect; they differ in nothing but what they promise."""

    async def work(value: int, ctx: Ctx) -> dict[str, int]:
        output = {"value": after(value)}
        log.write("start", ctx, output)
        await asyncio.sleep(workload.call_s)
        log.write("end", ctx, output)
        return output

    @tool("trial.pure", effect="pure")
    async def pure(value: int, *, ctx: Ctx) -> dict[str, int]:
        return await work(value, ctx)

    @tool("trial.idempotent", effect="idempotent")
    async def idempotent(value: int, *, ctx: Ctx) -> dict[str, int]:
        return await work(value, ctx)

    @tool("trial.verifiable", effect="verifiable", probe=log.look)
    async def verifiable(value: int, *, ctx: Ctx) -> dict[str, int]:
        return await work(value, ctx)

    @tool("trial.once")
    async def once(value: int, *, ctx: Ctx) -> dict[str, int]:
        output = await work(value, ctx)
        if workload.fails and ctx.attempt == 1 and ctx.step_id in workload.gated:
            raise ToolError("it acted, and then something broke", effect_state="made")
        return output

    return (pure, idempotent, verifiable, once)
