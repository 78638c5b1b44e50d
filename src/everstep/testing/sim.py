"""`sim.*`: tools that do nothing useful, on purpose: wait, fail, act visibly, die, return nonsense.

Each call of a visible effect is written to the log that `EVERSTEP_EFFECT_LOG` names, one line by one append, before
anything else happens: that line *is* the effect. So the log shows exactly what was made, whenever the process dies.
"""

import asyncio
import json
import os
import signal as signals
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypedDict
from urllib.request import urlopen

from everstep.authoring.tool import FunctionTool, tool
from everstep.domain.failure import Category, EffectState
from everstep.ports.function import ProbeAnswer
from everstep.ports.tool import Call, Ctx, ToolError

VARIABLE: Final = "EVERSTEP_EFFECT_LOG"
INCARNATION: Final = os.urandom(8).hex()
"""This process, also when its number is used again."""
SPOILS: Final = b"#\n"
"""A kill may cut an append short: the next one spoils what stands unfinished before it, which was never made."""
HUGE_BYTES: Final = 17 * 1024 * 1024
DEEP: Final = 100


class Made(TypedDict):
    """What a visible effect returns."""

    label: str
    key: str


class Simulated(ToolError):
    """A failure as it was ordered."""

    def __init__(self, code: str, category: str, effect_state: str, retry_after: float | None) -> None:
        super().__init__(f"simulated {code}", code=code, effect_state=effect_state)
        self.category = category
        self.retry_after = retry_after


# --- the log ---


def write_effect(what: Literal["start", "end"], ctx: Ctx, output: Made) -> None:
    """One line; nothing where no log is named."""
    path = os.environ.get(VARIABLE)
    if not path:
        return
    line = {
        "task": ctx.task_id,
        "step": ctx.step_id,
        "attempt": ctx.attempt,
        "key": ctx.idempotency_key,
        "pid": os.getpid(),
        "incarnation": INCARNATION,
        "what": what,
        "at": time.time_ns() // 1_000_000,
        "output": output,
    }
    file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, SPOILS + json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


def read_log() -> Iterator[dict[str, Any]]:
    """All whole lines."""
    path = os.environ.get(VARIABLE)
    raw = Path(path).read_bytes() if path and Path(path).exists() else b""
    for line in raw.splitlines(keepends=True):
        if line.endswith(b"\n") and not line.endswith(SPOILS):
            yield json.loads(line)


def look(call: Call) -> ProbeAnswer:
    """Whether this call's effect was made."""
    if not os.environ.get(VARIABLE):
        return "unknown"
    for line in read_log():
        if line["key"] == call.idempotency_key:
            return "done", line["output"]
    return "not_done"


# --- tools ---


@tool.pure("sim.sleep")
async def sleep(seconds: float, *, ctx: Ctx) -> dict[str, float]:
    """Wait."""
    write_effect("start", ctx, _made("sleep", ctx))
    await asyncio.sleep(seconds)
    write_effect("end", ctx, _made("sleep", ctx))
    return {"seconds": seconds}


@tool.pure("sim.fail")
async def fail(
    *,
    times: int = 1,
    code: str = "sim_failed",
    category: Category = Category.TRANSIENT,
    effect_state: EffectState = EffectState.NONE,
    retry_after: float | None = None,
    ctx: Ctx,
) -> dict[str, int]:
    """Fail so many times, then succeed."""
    if ctx.attempt <= times:
        raise Simulated(code, category, effect_state, retry_after)
    return {"attempt": ctx.attempt}


@tool.idempotent("sim.units")
def units(n: int, url: str, *, ctx: Ctx) -> dict[str, int]:
    """Ask `url` for one unit after the other, each with its number, and say so after each."""
    first = ctx.cursor if isinstance(ctx.cursor, int) else 0
    for number in range(first, n):
        with urlopen(f"{url}?unit={number}", timeout=30) as answer:  # noqa: S310 -- the test's own server
            answer.read()
        ctx.checkpoint(number + 1)
    return {"units": n, "first": first}


async def _act(label: str, seconds: float, ctx: Ctx) -> Made:
    """The first line is the effect; the time after it is there for kills to land in."""
    made = _made(label, ctx)
    write_effect("start", ctx, made)
    await asyncio.sleep(seconds)
    write_effect("end", ctx, made)
    return made


def _made(label: str, ctx: Ctx) -> Made:
    return {"label": label, "key": ctx.idempotency_key}


@tool.pure("sim.effect.pure")
async def effect_pure(label: str, seconds: float = 0.0, *, ctx: Ctx) -> Made:
    """Act; it may be repeated."""
    return await _act(label, seconds, ctx)


@tool.idempotent("sim.effect.idempotent")
async def effect_idempotent(label: str, seconds: float = 0.0, *, ctx: Ctx) -> Made:
    """Act; it may be repeated with the same key."""
    return await _act(label, seconds, ctx)


@tool("sim.effect.verifiable", effect="verifiable", probe=look)
async def effect_verifiable(label: str, seconds: float = 0.0, *, ctx: Ctx) -> Made:
    """Act; whether it happened can be looked up."""
    return await _act(label, seconds, ctx)


@tool("sim.effect.once")
async def effect_once(label: str, seconds: float = 0.0, *, ctx: Ctx) -> Made:
    """Act; nobody may repeat it unasked."""
    return await _act(label, seconds, ctx)


@tool.pure("sim.exit")
async def leave(code: int | None = None, signal: str = "SIGKILL", times: int = 1, *, ctx: Ctx) -> dict[str, int]:
    """End the engine's process by exit code, else by signal, so many times; then succeed."""
    if ctx.attempt <= times:
        if code is not None:
            os._exit(code)
        os.kill(os.getpid(), signals.Signals[signal])
    return {"attempt": ctx.attempt}


@tool.pure("sim.result")
async def result(kind: Literal["good", "nan", "surrogate", "deep", "huge", "wrong_type", "not_json"]) -> dict[str, Any]:
    """Return something that is, or is not, a result."""
    broken: dict[str, Any] = _result(kind)
    return broken


def _result(kind: str) -> Any:  # noqa: ANN401 -- what it promises is broken on purpose
    match kind:
        case "nan":
            return {"value": float("nan")}
        case "surrogate":
            return {"value": "\ud800"}
        case "deep":
            value: Any = 0
            for _ in range(DEEP):
                value = [value]
            return {"value": value}
        case "huge":
            return {"value": "x" * HUGE_BYTES}
        case "wrong_type":
            return "not an object"
        case "not_json":
            return {"value": {1, 2}}
        case _:
            return {"value": "good"}


def sim_tools() -> tuple[FunctionTool[..., Any], ...]:
    """All of them, for an engine's `tools`."""
    return (
        sleep,
        fail,
        units,
        effect_pure,
        effect_idempotent,
        effect_verifiable,
        effect_once,
        leave,
        result,
    )
