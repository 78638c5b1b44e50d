"""Any process serves any task: whoever asks need not know who carries it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from everstep import Ctx, Engine, Plan, tool
from everstep.domain.values import JsonObject
from tests.postgres import schema

QUICK: JsonObject = {"engine": {"heartbeat": "200ms", "stale_after": "2s", "janitor": "200ms"}}


@pytest.fixture
def url() -> Iterator[str]:
    with schema() as own:
        yield own


@tool("fleet.hold", effect="idempotent")
async def hold(*, ctx: Ctx) -> str:
    """Go on until somebody ends it."""
    await asyncio.Event().wait()
    return ctx.task_id


@tool("fleet.quick", effect="pure")
async def quick(n: int) -> int:
    """At once."""
    return n


@tool("fleet.rare", effect="pure")
async def rare() -> str:
    """Not everybody has it."""
    return "rare"


def plan(folder: Path, *steps: str) -> Plan:
    path = folder / "p.plan.yaml"
    path.write_text("name: p\nsteps:\n" + "".join(f"  - {step}\n" for step in steps))
    return Plan.load(path)


def carrier(url: str, *tools: object) -> Engine:
    return Engine(url, tools=tools, config=QUICK)


def client(url: str, *tools: object) -> Engine:
    return Engine(url, tools=tools, config=QUICK, worker=False)


@pytest.mark.req("WF-11")
async def test_events_answers_and_commands_reach_a_task_that_another_process_carries(url: str, tmp_path: Path) -> None:
    wanted = plan(
        tmp_path,
        "{id: a, tool: fleet.quick, with: {n: 1}}",
        "{id: b, tool: ask, with: {question: 'go on?'}}",
        "{id: c, tool: fleet.hold}",
    )
    async with carrier(url, hold, quick), client(url, hold, quick) as other:
        task = await other.start(wanted)
        seen: list[str] = []
        async for event in task.events():
            seen.append(event.type)
            if event.type == "pause.opened":
                (pause,) = await other.inbox()
                await pause.answer("yes")
            if event.type == "attempt.started" and event.step == "c":
                await task.cancel()
            if event.type == "task.cancelled":
                break
        assert seen[0] == "task.created"
        assert [event.seq async for event in task.events(follow=False)] == list(range(1, len(seen) + 1))
        assert (await task.result()).status == "cancelled"


async def test_a_signal_reaches_a_step_elsewhere_and_a_child_its_parent(url: str, tmp_path: Path) -> None:
    wanted = plan(
        tmp_path,
        "{id: w, tool: wait, with: {event: came}}",
        "{id: k, tool: plan.run, with: {plan: {name: kid, steps: [{id: q, tool: fleet.quick, with: {n: 2}}]}}}",
    )
    async with carrier(url, quick), carrier(url, quick), client(url, quick) as other:
        task = await other.start(wanted)
        while (await task.refresh()).status != "running":  # noqa: ASYNC110 -- another engine writes
            await asyncio.sleep(0.02)
        await other.signal("came", task.id)
        assert (await asyncio.wait_for(task.result(), 60)).status == "completed"


async def test_a_task_whose_tool_is_unknown_here_is_left_for_others(url: str, tmp_path: Path) -> None:
    wanted = plan(tmp_path, "{id: r, tool: fleet.rare}")
    async with client(url, rare) as other:
        task = await other.start(wanted)
        async with carrier(url, quick) as poor:
            usual = await poor.start(plan(tmp_path, "{id: a, tool: fleet.quick, with: {n: 1}}"))
            assert (await usual.result()).status == "completed"
            assert [event.type async for event in task.events(follow=False)] == ["task.created"], "not even touched"
        async with carrier(url, quick, rare):
            assert (await asyncio.wait_for(task.result(), 60)).status == "completed"
        workers = await other.desk.workers()
        assert {"fleet.rare" in one.tools for one in workers} == {True, False}


async def test_a_halt_holds_for_all(url: str, tmp_path: Path) -> None:
    wanted = plan(tmp_path, "{id: a, tool: fleet.quick, with: {n: 1}}")
    async with carrier(url, quick) as one, carrier(url, quick) as two:
        await one.desk.halt(one.who, "stop", "graceful")
        task = await two.start(wanted)
        while two.desk.halted is None:  # noqa: ASYNC110 -- another engine writes
            await asyncio.sleep(0.02)
        assert (await task.refresh()).status == "queued"
        await two.desk.lift_halt()
        assert (await asyncio.wait_for(task.result(), 60)).status == "completed"
