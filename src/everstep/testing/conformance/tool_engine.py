"""What an adapter comes to in an engine that knows secrets, and that keeps outputs to a limit."""

from collections.abc import Sequence
from typing import Any, Final

from everstep.domain.ids import Seq, TaskId
from everstep.domain.redact import forms
from everstep.facade.views import Result
from everstep.testing.conformance.sample import Bench
from everstep.testing.conformance.tried import Tried, ended, engine_of, plan_of
from everstep.testing.engine import TestEngine
from everstep.wire.event import loads

OUTPUT_BYTES: Final = 16


async def secrecy(bench: Bench) -> Sequence[str]:
    """What is registered as a secret is in no journal and no log, however it is spelled."""
    problems = []
    tried = Tried(bench.adapter)
    async with engine_of(bench, tried) as engine:
        for sample in bench.fitting():
            result = await ended(engine, tried, plan_of(sample))
            lines = await engine.store.read_events(TaskId(result.task_id), Seq(0), 1_000)
            said = b"\n".join(one.encoded for one in lines).decode() + repr(engine.sink.notes)
            for name, value in bench.secrets.items():
                seen = [form for form in forms(value) if form in said]
                problems += [f"{sample.tool}: the secret '{name}' is written down as {form[:3]}…" for form in seen[:1]]
    return problems


async def capped(bench: Bench) -> Sequence[str]:
    """Of an output over the limit only what fits is kept, or nothing, and that is said."""
    problems = []
    tried = Tried(bench.adapter)
    async with engine_of(bench, tried) as engine:
        for sample in bench.fitting():
            result = await ended(engine, tried, plan_of(sample, limits={"output": f"{OUTPUT_BYTES}B"}))
            code = None if result.error is None else result.error["code"]
            if result.status == "completed":
                (done,) = [one for one in await _told(engine, result) if one["type"] == "step.completed"]
                if done["data"]["output"]["bytes"] > OUTPUT_BYTES:
                    problems.append(f"{sample.tool}: an output over its limit was kept")
            elif result.status == "failed" and code not in ("limit_output", "reply_too_large"):
                problems.append(f"{sample.tool}: an output over its limit ended as {code}")
    return problems


async def _told(engine: TestEngine, result: Result) -> list[dict[str, Any]]:
    return [loads(one.encoded) for one in await engine.store.read_events(TaskId(result.task_id), Seq(0), 1_000)]
