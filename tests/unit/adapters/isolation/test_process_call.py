"""Functions with a process of their own: values cross as JSON, limits hold, and they can always be ended."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from everstep import Ctx, Impossible, Plan, Secret, Task, tool
from everstep.domain.values import JsonObject, JsonValue
from everstep.testing import TestEngine
from everstep.testing.sim_hungry import hungry_tools
from tests.unit.doors.api.window import Window

FREE: JsonObject = {"containment.uid_base": 0}


@tool.pure("apart.say", isolate="process")
def say(text: str, *, ctx: Ctx) -> dict[str, Any]:
    """Say who and where."""
    ctx.usage(cost=0.25)
    ctx.log.info("said")
    return {"text": text, "pid": os.getpid(), "attempt": ctx.attempt, "cwd": str(Path.cwd())}


@tool.pure("apart.whisper", isolate="process")
def whisper(token: Secret) -> dict[str, int]:
    """How long it is."""
    return {"length": len(token.reveal())}


@tool.pure("apart.later", isolate="process")
async def later(how: str) -> dict[str, str]:
    """Fail in a certain way."""
    await asyncio.sleep(0)
    if how == "said":
        raise Impossible("not today", code="mine", details={"n": 1})
    if how == "os":
        raise PermissionError(13, "no")
    if how == "die":
        os._exit(7)
    if how == "nan":
        return {"x": float("nan")}  # type: ignore[dict-item]
    raise KeyError("lost")


def plan_of(tool_name: str, arguments: dict[str, JsonValue], **more: Any) -> Plan:
    plan = Plan("apart")
    plan.step("call", tool_name, arguments, retry=0, **more)
    plan.output(value=plan.expr("call"))
    return plan


async def attempt_of(task: Task, kind: str) -> dict[str, Any]:
    (data,) = [event.data async for event in task.events(follow=False) if event.type == kind]
    return dict(data)


SEEN: list[str] = []


@tool.pure("apart.marks", isolate="process")
def marks(mark: str) -> dict[str, Any]:
    """Leave marks wherever a later call might find them."""
    found = [*SEEN, os.environ.get("MARK", ""), *map(str, getattr(asyncio, "marks", ()))]
    SEEN.append(mark)
    os.environ["MARK"] = mark
    asyncio.marks = [mark]  # type: ignore[attr-defined]
    return {"found": found, "pid": os.getpid()}


async def test_a_process_waits_for_the_next_call_and_serves_one_only(tmp_path: Path) -> None:
    """Started before it is needed, it knows nothing of earlier calls, is replaced if it dies, ends with the engine."""
    here = psutil.Process()
    before = {one.pid for one in here.children()}

    def waiting() -> list[psutil.Process]:
        return [one for one in here.children() if one.pid not in before and one.status() != psutil.STATUS_ZOMBIE]

    async with TestEngine([marks], config=FREE, workspace=tmp_path) as engine:
        spares = set()
        for mark in ("one", "two", "three"):
            result = await (await engine.start(plan_of("apart.marks", {"mark": mark}))).result()
            assert result.status == "completed", result.error
            assert (result.outputs or {})["value"]["found"] == [""]  # type: ignore[index,call-overload]
            (spare,) = waiting()
            assert spare.pid not in spares
            spares.add(spare.pid)
            if mark == "two":
                spare.kill()
                spare.wait()
    assert waiting() == []


async def test_a_function_in_another_process(tmp_path: Path) -> None:
    async with TestEngine(
        [say, whisper], config=FREE, workspace=tmp_path, secrets={"mine": "hunter2-correct"}
    ) as engine:
        plan = plan_of("apart.say", {"text": "hi"})
        result = await (task := await engine.start(plan)).result()
        assert result.status == "completed", result.error
        value: Any = (result.outputs or {})["value"]
        assert (value["text"], value["attempt"], value["cwd"]) == ("hi", 1, str(tmp_path))
        assert value["pid"] != os.getpid()
        usage = (await attempt_of(task, "step.completed"))["usage"]
        assert usage["cost"] == 0.25
        assert usage["memory_peak_bytes"] > 1_000_000
        plan = Plan("apart")
        plan.step("call", "apart.whisper", {"token": plan.expr("secrets.mine")})
        plan.output(n=plan.expr("call.length"))
        assert (await (await engine.start(plan)).result()).outputs == {"n": len("hunter2-correct")}


@pytest.mark.parametrize(
    ("how", "code", "effect"),
    [
        ("said", "mine", "none"),
        ("os", "os_denied", "none"),
        ("die", "process_died", "unknown"),
        ("bug", "tool_bug", "made"),
        ("nan", "invalid_result", "made"),
    ],
)
async def test_what_it_raises_is_judged_as_if_it_were_here(tmp_path: Path, how: str, code: str, effect: str) -> None:
    async with TestEngine([later], config=FREE, workspace=tmp_path) as engine:
        task = await engine.start(plan_of("apart.later", {"how": how}))
        assert (await task.result()).status == "failed"
        failed = await attempt_of(task, "attempt.failed")
    assert (failed["error"]["code"], failed["effect_state"]) == (code, effect)
    if how == "bug":
        assert "KeyError" in failed["error"]["message"]
        assert "test_process_call.py" in failed["error"]["message"]


@pytest.mark.req("6.5", "R.1", "M.2", "DoD.10")
async def test_figures_are_near_the_truth(tmp_path: Path) -> None:
    """100 MB and 5 s of CPU, beside what an idle one of the same kind uses: within a tenth."""
    async with TestEngine(hungry_tools(), config=FREE, workspace=tmp_path) as engine:
        idle, full = [
            (await attempt_of(await ended(engine, plan_of("sim.memory", {"mb": mb, "hold": 0.3})), "step.completed"))[
                "usage"
            ]
            for mb in (0, 100)
        ]
        burnt = (await attempt_of(await ended(engine, plan_of("sim.cpu", {"seconds": 5})), "step.completed"))["usage"]
        window = Window(engine)
        metrics = (await window.api.handle(window.request("GET", "/v1/metrics"))).body.decode().splitlines()
    assert full["memory_peak_bytes"] - idle["memory_peak_bytes"] == pytest.approx(100_000_000, rel=0.1)
    assert burnt["cpu_s"] == pytest.approx(5, rel=0.1)
    assert burnt["files_open"] > 0
    told = dict(line.rsplit(" ", 1) for line in metrics if not line.startswith("#"))
    assert float(told['everstep_tool_memory_peak_bytes{tool="sim.memory"}']) == full["memory_peak_bytes"]
    assert float(told['everstep_tool_usage_total{tool="sim.cpu",what="cpu_s"}']) == pytest.approx(burnt["cpu_s"])


async def ended(engine: TestEngine, plan: Plan) -> Task:
    task = await engine.start(plan)
    await task.result()
    return task


@pytest.mark.req("7.1", "R.1", "R.4", "E.4")
@pytest.mark.parametrize(
    ("name", "arguments", "limits", "code"),
    [
        ("sim.memory", {"mb": 2000, "hold": 9}, {"memory": "150MB"}, "limit_memory"),
        ("sim.cpu", {"seconds": 60}, {"cpu_time": "700ms"}, "limit_cpu"),
        ("sim.open", {"files": 1000}, None, "os_emfile"),
    ],
)
async def test_one_that_takes_too_much(
    tmp_path: Path, name: str, arguments: dict[str, JsonValue], limits: JsonObject | None, code: str
) -> None:
    before = psutil.Process().memory_info().rss
    async with TestEngine(hungry_tools(), config=FREE, workspace=tmp_path) as engine:
        more = {"limits": limits} if limits else {}
        result = await (await engine.start(plan_of(name, arguments, **more))).result()
    assert result.error is not None
    assert (result.error["code"], result.error["category"]) == (code, "resource")
    assert psutil.Process().memory_info().rss - before < 50_000_000


@pytest.mark.req("R.4")
async def test_the_engines_own_files_stay_flat(tmp_path: Path) -> None:
    """Once it is warm, a call that opens a thousand leaves as many open here as there were before."""
    plan, counts = plan_of("sim.open", {"files": 1000}), []
    async with TestEngine(hungry_tools(), config=FREE, workspace=tmp_path) as engine:
        for _ in range(3):
            result = await (await engine.start(plan)).result()
            assert (result.error or {}).get("category") == "resource"
            counts.append(psutil.Process().num_fds())
    assert counts[1] == counts[2]


def ours() -> set[int]:
    """Processes below this one; a server that other tests share may be among them."""
    return {one.pid for one in psutil.Process().children(recursive=True)}


async def test_a_hung_one_is_ended_with_all_it_started(tmp_path: Path) -> None:
    before = ours()
    async with TestEngine(hungry_tools(), config=FREE, workspace=tmp_path) as engine:
        task = await engine.start(plan_of("sim.hang", {"ignore_term": True}))
        while ours() <= before:  # noqa: ASYNC110 -- a process says nothing when it starts
            await asyncio.sleep(0.02)
        await task.cancel()
        began = time.monotonic()
        while (await task.refresh()).status != "cancelled":
            await asyncio.sleep(0.02)
            await engine.clock.advance("100ms")
        assert time.monotonic() - began < 30
    assert ours() <= before


async def test_what_is_left_running_is_ended(tmp_path: Path) -> None:
    before = ours()
    async with TestEngine(hungry_tools(), config=FREE, workspace=tmp_path) as engine:
        assert (
            await (await engine.start(plan_of("sim.fork", {"n": 3, "setsid": True}))).result()
        ).status == "completed"
    assert ours() <= before


def test_a_function_that_cannot_be_imported_is_refused() -> None:
    def inner() -> None:
        """Nothing."""

    with pytest.raises(TypeError, match="needs a function of a module"):
        tool("apart.inner", isolate="process")(inner)
    with pytest.raises(TypeError, match="is not 'process'"):
        tool("apart.inner", isolate="thread")(inner)


@pytest.mark.req("7.1", "R.1")
async def test_what_all_processes_of_a_task_may_use(tmp_path: Path) -> None:
    """Each attempt is within its own limit; together they have, or have used, more than their task may."""
    async with TestEngine(hungry_tools(), config=FREE, workspace=tmp_path) as engine:
        plan = Plan("apart", parallel=3, limits={"memory": "250MB"})
        for number in range(3):
            plan.step(f"s{number}", "sim.memory", {"mb": 100, "hold": 30}, needs=[], retry=0, on_error="continue")
        task = await engine.start(plan)
        failed = [data async for data in failures(task)][:1]
        assert failed[0]["error"]["code"] == "limit_memory"
        assert failed[0]["error"]["details"]["max"] == 250_000_000
        await task.cancel()  # the others go on
        plan = Plan("apart", limits={"cpu_time": "1s"})
        plan.step("first", "sim.cpu", {"seconds": 0.6}, retry=0)
        plan.step("second", "sim.cpu", {"seconds": 60}, retry=0)
        task = await engine.start(plan)
        (burnt,) = [data async for data in failures(task)]
        assert burnt["error"]["code"] == "limit_cpu"
        assert burnt["error"]["details"]["max"] < 0.45


async def failures(task: Task) -> AsyncIterator[dict[str, Any]]:
    async for event in task.events():
        if event.type == "attempt.failed":
            yield dict(event.data)
            return
