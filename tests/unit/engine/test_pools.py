"""Pools and rates: so many at a time, so many in so long; who waits is seen, loses nothing and is not forgotten."""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine, Plan, tool
from everstep.domain.errors import PlanError, SettingsError
from everstep.domain.ids import Instant
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.accept import Wish
from everstep.facade.runnable import as_plan
from everstep.facade.task import Task
from everstep.facade.views import Event
from everstep.ports.tool import Ctx, Transient
from everstep.ports.traffic import Reservation
from everstep.settings import load_settings
from everstep.testing.engine import TestEngine
from everstep.torture import checker
from tests.unit.engine.plans import Tools, plan_of


class Busy:
    """Tools that count how many of them are at work."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.calls: list[str] = []
        self.at: list[int] = []
        self.gates: dict[str, asyncio.Event] = {}

    def all(self) -> list[object]:
        @tool("busy.page", effect="pure", pool="browser")
        async def page(name: str) -> str:
            """Works until its gate is opened."""
            return await self._work("page", name)

        @tool("busy.free", effect="pure")
        async def free(name: str) -> str:
            """The same, in no pool."""
            return await self._work("free", name)

        return [page, free]

    async def _work(self, kind: str, name: str) -> str:
        self.calls.append(name)
        self.now[kind] += 1
        self.most[kind] = max(self.most[kind], self.now[kind])
        try:
            await self.gates.setdefault(name, asyncio.Event()).wait()
        finally:
            self.now[kind] -= 1
        return name

    def open(self, *names: str) -> None:
        for name in names:
            self.gates.setdefault(name, asyncio.Event()).set()


def page(name: str, kind: str = "page", **keys: Any) -> JsonObject:
    return {"id": name, "tool": f"busy.{kind}", "with": {"name": name}, **keys}


async def told(task: Task, *types: str) -> list[Event]:
    return [event async for event in task.events(follow=False) if event.type in types]


async def submit(engine: TestEngine, plan: Plan, priority: int) -> Task:
    loaded = as_plan(plan)
    wish = Wish(plan=loaded.spec, digest=loaded.digest, inputs={}, trusted=True, priority=priority)
    return Task(engine.desk, engine._who, await engine.desk.submit(wish, engine._who))


@pytest.mark.req("7.3")
async def test_a_pool_holds_and_who_waits_goes_by_priority_and_age() -> None:
    busy = Busy()
    async with TestEngine(busy.all(), config={"pools": {"browser": 2}}) as engine:
        names = ["a", "b", "late", "usual", "early", "urgent"]
        priorities = [1, 1, 3, 1, 1, 0]
        tasks = []
        for name, priority in zip(names, priorities, strict=True):
            tasks.append(await submit(engine, plan_of(page(name), page(f"{name}_2", "free")), priority))
            await engine.clock.advance("1s")
        assert busy.calls == ["a", "b"]
        waiting = await tasks[3].refresh()
        assert (waiting.status, waiting.steps["usual"].status, waiting.steps["usual"].phase) == (  # type: ignore[index]
            "running",
            "running",
            "waiting_slot",
        )
        (event,) = await told(waiting, "step.waiting")
        assert event.data["waiting_on"] == {"kind": "slot", "detail": "browser", "until": None, "ref": None}
        assert engine.desk.pool_figures == {"browser": (2, 2, 4)}
        for name, follows in (("a", "urgent"), ("b", "usual"), ("urgent", "early"), ("usual", "late")):
            busy.open(name)
            await engine.clock.advance("1ms")
            assert follows in busy.calls, busy.calls
            assert busy.now["page"] == 2
        busy.open(*names, *(f"{name}_2" for name in names))
        await engine.clock.advance("1m")
        assert [(await task.refresh()).status for task in tasks] == ["completed"] * 6
        assert busy.most["page"] == 2
        assert engine.desk.pool_figures == {"browser": (2, 0, 0)}
        assert await engine.store.check() == []


async def test_a_task_that_waits_takes_no_place_of_others_and_costs_no_retry() -> None:
    busy = Busy()
    config: dict[str, JsonValue] = {"pools": {"browser": 1}, "engine": {"tasks": 2}}
    async with TestEngine(busy.all(), config=config) as engine:
        crowd = [await engine.start(plan_of(page(f"p{n}", retry=0))) for n in range(10)]
        other = await engine.start(plan_of(page("other", "free")))
        busy.open("other")
        await engine.clock.advance("1s")
        assert ((await other.refresh()).status, busy.now["page"]) == ("completed", 1)
        busy.open(*(f"p{n}" for n in range(10)))
        await engine.clock.advance("1s")
        assert {(await task.refresh()).status for task in crowd} == {"completed"}
        assert (busy.most["page"], len(busy.calls)) == (1, 11)


@pytest.mark.parametrize("leave", ["pause", "cancel", "crash"])
async def test_a_slot_is_not_kept_for_who_does_not_want_it_any_more(leave: str) -> None:
    busy = Busy()
    async with TestEngine(busy.all(), config={"pools": {"browser": 1}}) as engine:
        first, second, third = [await engine.start(plan_of(page(name))) for name in "abc"]
        await engine.clock.advance("1ms")
        if leave == "crash":
            await engine.crash()
            first, second, third = [await engine.get(task.id) for task in (first, second, third)]
        else:
            await (second.pause() if leave == "pause" else second.cancel())
        busy.open("a")
        await engine.clock.advance("1s")
        if leave != "crash":
            assert busy.calls == ["a", "c"]
            assert (await second.refresh()).status == ("paused" if leave == "pause" else "cancelled")
        busy.open("b", "c")
        if leave == "pause":
            await second.resume()
        await engine.clock.advance("1s")
        assert {(await task.refresh()).status for task in (first, third)} == {"completed"}
        assert (busy.most["page"], engine.desk.pool_figures["browser"]) == (1, (1, 0, 0))


async def test_a_step_may_name_a_pool_and_several_steps_of_one_task_share_it() -> None:
    busy = Busy()
    steps = [page(name, "free", pool="narrow", needs=[]) for name in "abc"]
    async with TestEngine(busy.all(), config={"pools": {"narrow": {"size": 2, "scope": "fleet"}}}) as engine:
        task = await engine.start(plan_of(*steps, page("d", pool="narrow"), parallel=3))
        await engine.clock.advance("1ms")
        assert busy.calls == ["a", "b"]
        busy.open("a", "b", "c", "d")
        await engine.clock.advance("1s")
        assert ((await task.refresh()).status, busy.most["free"]) == ("completed", 2)


async def test_items_of_a_for_each_wait_one_by_one() -> None:
    busy = Busy()
    each: JsonObject = {
        "id": "each", "tool": "busy.page", "for_each": ["x", "y", "z"], "parallel": 3, "with": {"name": "${item}"}
    }  # fmt: skip
    async with TestEngine(busy.all(), config={"pools": {"browser": 1}}) as engine:
        task = await engine.start(plan_of(each, outputs={"all": "${each}"}))
        await engine.clock.advance("1ms")
        assert busy.calls == ["x"]
        busy.open("x", "y", "z")
        await engine.clock.advance("1s")
        assert ((await task.refresh()).status, task.outputs) == ("completed", {"all": ["x", "y", "z"]})
        assert busy.most["page"] == 1


async def test_an_unknown_pool_is_a_problem_of_the_plan() -> None:
    async with TestEngine(Busy().all()) as engine:
        with pytest.raises(PlanError) as refused:
            await engine.start(plan_of(page("a", pool="browsr")))
        (problem,) = refused.value.problems
        assert (problem.code, problem.path, problem.suggestion) == ("plan.unknown_pool", "/steps/0/pool", "browser")


async def test_a_thread_that_nobody_waits_for_keeps_its_slot_until_it_ends() -> None:
    release, calls = threading.Event(), []
    done = asyncio.Event()

    def slow(name: str) -> str:
        """Blocks its thread, whatever time it is."""
        calls.append(name)
        if name == "a":
            release.wait(10)
        return name

    tools = [tool("block.slow", effect="pure", pool="one", timeout="5s", retry=0)(slow)]
    async with TestEngine(tools, config={"pools": {"one": 1}}) as engine:
        first = await engine.start(plan_of({"id": "a", "tool": "block.slow", "with": {"name": "a"}}))
        second = await engine.start(plan_of({"id": "b", "tool": "block.slow", "with": {"name": "b"}}))
        await engine.clock.advance("10s")
        assert ((await first.refresh()).status, calls) == ("failed", ["a"])
        assert (await second.refresh()).steps["b"].phase == "waiting_slot"  # type: ignore[index]
        release.set()
        watch = asyncio.create_task(second.result())
        watch.add_done_callback(lambda _: done.set())
        await asyncio.wait_for(done.wait(), 60)
        assert (watch.result().status, calls) == ("completed", ["a", "b"])


# --- rates ---


def paced(at: list[int], **options: Any) -> list[object]:
    @tool("paced.call", effect="pure", **options)
    async def call(*, ctx: Ctx) -> None:
        """Notes when it was called."""
        at.append(ctx.now())

    return [call]


PACED = plan_of({"id": "a", "tool": "paced.call"}, {"id": "b", "tool": "paced.call"})


@pytest.mark.req("7.5")
async def test_a_rate_is_shared_by_tasks_waits_visibly_and_survives_a_crash() -> None:
    at: list[int] = []
    engine = TestEngine(paced(at, rate="10/1s"))
    async with engine:
        began = engine.clock.now()
        tasks = [await engine.start(PACED) for _ in range(10)]
        await engine.clock.advance("450ms")
        most, period, used, waits = engine.desk.rate_figures["paced.call"]
        assert (most, period, 0 < used <= 10, waits > 0) == (10, 1000, True, True), "what the meter shows"
        last = await tasks[-1].refresh()
        (waiting,) = [event.data["waiting_on"] for event in await told(last, "step.waiting")]
        assert isinstance(waiting, dict)
        assert (waiting["kind"], waiting["detail"]) == ("rate", "paced.call")
        assert waiting["until"] is not None
        await engine.crash()
        await engine.clock.advance("10s")
        assert {(await (await engine.get(task.id)).refresh()).status for task in tasks} == {"completed"}
        assert len(at) == 20
        assert all(later - first >= 1000 for first, later in zip(at, at[10:], strict=False))
        assert at[-1] - began <= 2100, "nobody waits longer than the rate says"
        assert await engine.store.check() == []


@pytest.mark.parametrize(
    ("rate", "config", "every"),
    [
        ("provider", {}, 200),
        ("provider", {"rates": {"provider": "2/1s"}}, 500),
        ("10/1s", {"rates": {"paced.call": "1/1s"}}, 1000),
    ],
)
async def test_the_settings_say_how_often_and_no_provider_is_unlimited(
    rate: str, config: dict[str, JsonValue], every: int
) -> None:
    at: list[int] = []
    engine = TestEngine(paced(at, rate=rate), config=config)
    async with engine:
        task = await engine.start(PACED)
        await engine.clock.advance("1m")
        assert (await task.refresh()).status == "completed"
        assert at[1] - at[0] == every


@pytest.mark.req("7.5")
async def test_a_place_is_kept_when_another_step_asks_for_one_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """One retry becomes due while a place is reserved for another: neither takes the other's look at it away."""
    at: list[int] = []

    @tool("busy.call", effect="pure", rate="1000/1s")
    async def call(*, ctx: Ctx) -> None:
        """Busy, the first time."""
        at.append(ctx.now())
        if len(at) <= 2:
            raise Transient("later")

    engine = TestEngine([call])
    reserve, places = engine.store.reserve, 0

    async def slow(wishes: Sequence[Reservation]) -> Sequence[Instant | None]:
        nonlocal places
        places += len(wishes)
        assert places < 20, "places are reserved again and again"
        granted = await reserve(wishes)
        if places > 2:
            engine.clock._now = Instant(engine.clock.now() + 3000)
        return granted

    monkeypatch.setattr(engine.store, "reserve", slow)
    async with engine:
        steps: list[JsonObject] = [
            {"id": name, "tool": "busy.call", "needs": [], "retry": {"times": 1, "delay": delay}}
            for name, delay in (("a", "1s"), ("b", "2s"))
        ]
        task = await engine.start(plan_of(*steps, parallel=2))
        await engine.clock.advance("10s")
        assert (await task.refresh()).status == "completed"
        assert (len(at), places) == (4, 4)


@pytest.mark.req("7.5")
async def test_retry_after_holds_for_all_callers_of_the_provider() -> None:
    """One is told to wait 30 s; another task's call waits too, over a crash."""
    at: list[int] = []

    @tool("busy.call", effect="pure", rate="provider", retry=1)
    async def call(*, ctx: Ctx) -> None:
        """Busy, the first time."""
        at.append(ctx.now())
        if len(at) == 1:
            raise Transient("later", retry_after=30)

    engine = TestEngine([call], config={"rates": {"provider": "10/1s"}})
    async with engine:
        plan = plan_of({"id": "a", "tool": "busy.call"})
        first = await engine.start(plan)
        await engine.clock.advance("1s")
        other = await engine.start(plan)
        await engine.clock.advance("1s")
        (waiting,) = [event.data["waiting_on"] for event in await told(other, "step.waiting")]
        assert isinstance(waiting, dict)
        assert waiting["kind"] == "rate"
        await engine.crash()
        await engine.clock.advance("27s")
        assert len(at) == 1
        await engine.clock.advance("2s")
        assert [(await (await engine.get(task.id)).refresh()).status for task in (first, other)] == ["completed"] * 2
        assert (len(at), min(at[1:]) - at[0] >= 30_000) == (3, True)


@pytest.mark.req("E.4")
@pytest.mark.parametrize("rate", [None, "10/1s", "provider"])
async def test_a_days_quota_is_kept_over_a_crash_and_renewed_the_next_day(rate: str | None) -> None:
    at: list[int] = []
    name = "provider" if rate == "provider" else "paced.call"
    engine = TestEngine(paced(at, rate=rate) if rate else paced(at), config={"quotas": {name: 3}})
    async with engine:
        await engine.start(PACED)
        await engine.clock.advance("1s")
        await engine.crash()
        task = await engine.start(PACED)
        await engine.clock.advance("1s")
        await task.refresh()
        assert (task.status, len(at)) == ("failed", 3)
        assert task.error is not None
        assert (task.error["code"], task.error["category"]) == ("quota_exhausted", "resource")
        assert task.error["message"] == f"all 3 calls of {name} for today are made"
        assert f"quotas.{name}" in str(task.error["what_to_do"])
        await engine.clock.advance("24h")
        later = await engine.start(PACED)
        await engine.clock.advance("1s")
        assert ((await later.refresh()).status, len(at)) == ("completed", 5)


async def test_a_fallback_goes_on_where_the_quota_is_used_up_or_somebody_decides() -> None:
    at: list[int] = []
    async with TestEngine(paced(at), config={"quotas": {"paced.call": 0}}) as engine:
        instead = plan_of({"id": "a", "tool": "paced.call", "fallback": [{"value": "yesterday's"}]})
        asking = plan_of({"id": "a", "tool": "paced.call", "on_error": "pause"})
        tasks = [await engine.start(instead), await engine.start(asking)]
        await engine.clock.advance("1s")
        first, second = [await task.refresh() for task in tasks]
        assert (first.status, second.status, at) == ("completed", "paused", [])
        assert engine.inbox.only().type == "toolError"


@pytest.mark.req("E.4")
async def test_a_turn_that_comes_after_the_time_of_the_step_is_not_waited_for() -> None:
    at: list[int] = []
    async with TestEngine(paced(at, rate="1/1h")) as engine:
        await engine.start(plan_of({"id": "a", "tool": "paced.call"}))
        within: JsonValue = {"times": 1, "within": "10m"}
        hurried = {"id": "a", "tool": "paced.call", "retry": within}
        task = await engine.start(plan_of(hurried))
        other = await engine.start(plan_of({**hurried, "fallback": [{"value": "yesterday's"}]}))
        patient = await engine.start(plan_of({"id": "a", "tool": "paced.call", "retry": {"within": "9h"}}))
        await engine.clock.advance("1s")
        await task.refresh()
        assert (task.status, len(at)) == ("failed", 1)
        assert task.error is not None
        assert (task.error["code"], task.error["category"]) == ("rate_limited", "resource")
        assert "rates.paced.call" in str(task.error["what_to_do"])
        assert [(await one.refresh()).status for one in (other, patient)] == ["completed", "running"]


async def test_a_pause_while_it_waits_for_its_turn() -> None:
    at: list[int] = []
    engine = TestEngine(paced(at, rate="1/1m"))
    async with engine:
        task = await engine.start(PACED)
        await engine.clock.advance("1s")
        await task.pause()
        await engine.clock.advance("10m")
        assert ((await task.refresh()).status, len(at)) == ("paused", 1)
        await task.resume()
        await engine.clock.advance("1ms")
        assert ((await task.refresh()).status, len(at)) == ("completed", 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rates": {"x": "fast"}},
        {"pools": {"x": 0}},
        {"pools": {"x": "many"}},
        {"quotas": {"x": -1}},
        {"quotas": {"x": "few"}},
    ],
)
def test_bad_rates_and_pools_are_refused(wrong: dict[str, JsonValue]) -> None:
    with pytest.raises(SettingsError):
        load_settings(wrong, env={})


@pytest.mark.parametrize("option", [{"rate": "very fast"}, {"pool": "a b"}])
def test_a_tool_with_a_bad_rate_or_pool_is_refused(option: dict[str, str]) -> None:
    with pytest.raises(TypeError, match="is not a name"):
        paced([], **option)


async def test_on_a_file_and_the_judge_agrees(tmp_path: Path) -> None:
    busy, tools = Busy(), Tools()
    store = tmp_path / "everstep.db"
    config: dict[str, JsonValue] = {"pools": {"browser": 1}}
    at: list[int] = []
    served = [*busy.all(), *tools.all(), *paced(at, rate="50/1s")]
    busy.open("a", "b")
    async with Engine(store, tools=served, config=config) as engine:
        tasks = [await engine.start(plan_of(page("a"), page("b"), {"id": "c", "tool": "paced.call"})) for _ in range(8)]
        assert {(await asyncio.wait_for(task.result(), 30)).status for task in tasks} == {"completed"}
    assert (busy.most["page"], len(at)) == (1, 8)
    assert [violation._asdict() for violation in checker.check(store)] == []
