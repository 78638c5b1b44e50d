"""Bugs that other engines had to mend, by their names: what they lost is not lost here."""

import asyncio
from dataclasses import replace

import pytest

from everstep import Plan, tool
from everstep.adapters.stores.memory import MemoryStore
from everstep.domain.ids import Instant, Seq, TaskId, WorkerId
from everstep.domain.task import Sweep
from everstep.errors import EverstepError
from everstep.ports.store import Commit, Stale
from everstep.testing import TestEngine
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.stage import Scene
from tests.unit.doors.api.window import ECHO
from tests.unit.doors.http.visitor import visiting


@tool("echo.slow", effect="idempotent")
async def slow(n: int) -> dict[str, int]:
    await asyncio.sleep(0)
    return {"n": n}


def plan_of(*names: str) -> Plan:
    return Plan.from_dict(
        {"name": "p", "steps": [{"id": name, "tool": "echo.slow", "with": {"n": 1}} for name in names]}
    )


@pytest.mark.parametrize("key", ["", " ", "\t", "x" * 129, "a b", "t_" + "0" * 26])
async def test_dbos_759_an_empty_key_is_no_key(key: str) -> None:
    """An empty or blank id was taken for a name, and two strangers shared a workflow."""
    async with visiting() as visitor:
        answer = await visitor.ask("POST", "/v1/tasks", {"plan": ECHO}, headers={"idempotency-key": key or " "})
        assert 400 <= answer.status < 500
    async with TestEngine([slow]) as engine:
        with pytest.raises(EverstepError):
            await engine.start(plan_of("a"), key=key)


async def test_dbos_769_the_key_of_a_deleted_task_is_gone() -> None:
    """After retention the same key silently gave a new task; here it is refused as long as keys are kept."""
    async with TestEngine([slow]) as engine:
        task = await engine.start(plan_of("a"), key="mine")
        await task.result()
        await engine.desk.delete(task.task_id, engine.who)
        with pytest.raises(EverstepError) as refused:
            await engine.start(plan_of("a"), key="mine")
        assert refused.value.code == "gone"


async def test_dbos_java_491_a_name_is_no_identity() -> None:
    """A worker with the same name as a dead one recovered, or spared, the wrong tasks."""
    store = MemoryStore()
    first, second = (replace(f.worker(), id=WorkerId(f"w_{n}"), name="twin") for n in (1, 2))
    await store.open(first)
    state = await Scene(store, first).held()
    assert await store.find_dead(first.id, Instant(0), 10) == []
    await store.close()
    await store.open(second)
    assert [one.task for one in await store.find_dead(second.id, Instant(0), 10)] == [state.id]


class Stubborn(MemoryStore):
    """A store that refuses to move one task, whoever asks."""

    stuck: TaskId | None = None

    async def sweep(self, sweeps: "list[Sweep] | tuple[Sweep, ...]") -> list[Commit]:  # type: ignore[override]
        moved = [one for one in sweeps if one.task != self.stuck]
        answers = iter(await super().sweep(moved))
        refused = Stale(last_seq=Seq(0), epoch=None, worker=None, status=None)  # type: ignore[arg-type]
        return [refused if one.task == self.stuck else next(answers) for one in sweeps]


async def test_river_1318_what_cannot_be_moved_is_passed_over() -> None:
    """A page of rows that could not be rescued was read again and again, and nobody behind it was."""
    began = asyncio.Event()

    @tool("echo.hang", effect="idempotent")
    async def hang() -> None:
        if not began.is_set():
            await asyncio.Event().wait()

    store = Stubborn()
    async with TestEngine([hang], store=store) as engine:
        plan = Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "echo.hang"}]})
        tasks = [await engine.start(plan) for _ in range(3)]
        await engine.clock.settle()
        store.stuck = tasks[0].task_id
        began.set()
        await engine.crash()
        await engine.clock.advance("1m")
        ends = [(await (await engine.get(task.id)).refresh()).status for task in tasks]
        assert ends[1:] == ["completed", "completed"]


async def test_temporal_10239_no_call_starts_while_paused() -> None:
    """A pause that came between the decision and the write was overlooked."""
    async with TestEngine([slow]) as engine:
        task = await engine.start(plan_of(*(f"s{n}" for n in range(20))))
        await task.pause()
        await engine.clock.advance("1m")
        kinds = [event.type async for event in task.events(follow=False)]
        assert (await task.refresh()).status in ("paused", "completed")
        if "task.paused" in kinds:
            assert "attempt.started" not in kinds[kinds.index("task.paused") :]


@pytest.mark.parametrize("after", range(0, 12, 3))
async def test_codewhale_4514_nothing_is_lost_between_backlog_and_live(after: int) -> None:
    """Who read the backlog first and joined then missed what was written in between."""
    async with TestEngine([slow]) as engine:
        task = await engine.start(plan_of(*(f"s{n}" for n in range(6))))
        seen = []
        async for event in task.events():
            seen.append(event.seq)
            if len(seen) > after:
                await asyncio.sleep(0)
        assert seen == [*range(1, len(seen) + 1)]
