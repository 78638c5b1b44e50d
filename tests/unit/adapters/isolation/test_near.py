"""A program that has most of its memory: somebody is told, once; one that takes more ends alone."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from everstep import Plan
from everstep.adapters.isolation import child
from everstep.adapters.isolation.child import Child, Program
from everstep.adapters.isolation.group import best_roots
from everstep.domain.values import JsonObject
from everstep.facade.task import Task
from everstep.testing import TestEngine
from everstep.testing.sim_hungry import hungry_tools

FREE: JsonObject = {"containment.uid_base": 0}
KINDS = ["watched"] if best_roots() is None else ["group", "watched"]


def plan_of(mb: int, hold: float, memory: str) -> Plan:
    plan = Plan("hungry")
    plan.step("a", "sim.memory", {"mb": mb, "hold": hold}, limits={"memory": memory}, retry=0)
    return plan


async def told(task: Task, kind: str) -> list[Any]:
    return [event.data async for event in task.events(follow=False) if event.type == kind]


@pytest.mark.req("7.1", "R.1", "DoD.5")
@pytest.mark.parametrize("kind", KINDS)
async def test_who_comes_near_is_told_of_and_who_passes_ends_alone(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "watched":
        monkeypatch.setattr(child, "best_roots", lambda: None)
    async with TestEngine(hungry_tools(), config=FREE, workspace=tmp_path) as engine:
        near, bomb = await engine.start(plan_of(190, 2.0, "220MB")), await engine.start(plan_of(2000, 9.0, "256MB"))
        others = [await engine.start(plan_of(1, 0.0, "256MB")) for _ in range(2)]
        async with asyncio.timeout(120):
            results = [await task.result() for task in (near, bomb, *others)]
        assert [result.status for result in results] == ["completed", "failed", "completed", "completed"]
        (one,) = await told(near, "task.limit_near")
        assert (one["limit"], one["max"]) == ("memory", 220_000_000)
        assert 0.8 * one["max"] <= one["used"] <= one["max"]
        (failed,) = await told(bomb, "attempt.failed")
        details = failed["error"]["details"]
        assert (failed["error"]["code"], details["max"]) == ("limit_memory", 256_000_000)
        assert details["peak"] > 0, "limit and peak are named"
        assert not await told(others[0], "task.limit_near")
        assert await engine.store.check() == []


@pytest.mark.req("7.2", "R.2")
async def test_without_a_group_a_program_is_niced(tmp_path: Path) -> None:
    program = Program(argv=("/bin/sh", "-c", "nice"), cwd=str(tmp_path), without=("cgroup",))
    ended = await Child(program).run()
    assert int(bytes(ended.stdout.data)) >= min(os.nice(0) + 5, 19), "19 is the nicest"
    assert ended.containment is not None
    assert ended.containment["cgroup"] == "none"
