"""A client takes a paused task over: one call at a time, each recorded like any other."""

import asyncio

import pytest

from everstep import Plan, Transient, tool
from everstep.domain.continued import ClientCall, Done
from everstep.domain.errors import Conflict, EverstepError
from everstep.domain.ids import Seq, StepPath
from everstep.domain.pauses import UnresolvableParams
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.facade.desk import Wish
from everstep.facade.handing import Handing
from everstep.testing import TestEngine
from everstep.wire.event import loads
from tests.unit.worked_example import STEPS

pytestmark = pytest.mark.anyio


class World:
    """Three tools, of which the first is down for one source."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.hold: asyncio.Event | None = None
        self.called = asyncio.Event()

    def tools(self) -> list[object]:
        @tool.pure("fetch_data")
        async def fetch_data(source: str) -> dict:  # type: ignore[type-arg]
            """Read records."""
            self.calls.append(f"fetch {source}")
            if self.hold is not None:
                self.called.set()
                await self.hold.wait()
            if "mirror" not in source:
                raise Transient("connection refused")
            return {"lines": ["a,1"]}

        @tool.pure("transform_data")
        async def transform_data(data: dict, format: str = "rows") -> dict:  # type: ignore[type-arg]
            """Shape records."""
            self.calls.append(f"transform {data} {format}")
            return {"rows": [["a", 1]]}

        @tool("store_data")
        async def store_data(payload: list) -> dict:  # type: ignore[type-arg]
            """Save rows."""
            self.calls.append(f"store {payload}")
            return {"stored": len(payload)}

        @tool.pure("look")
        async def look() -> str:
            """Look around."""
            self.calls.append("look")
            return "fine"

        return [fetch_data, transform_data, store_data, look]


def pipeline() -> Plan:
    return Plan.from_dict(
        {
            "name": "data-pipeline",
            "description": "fetch, transform and store records",
            "inputs": {"source": {"type": "string"}},
            "steps": [*STEPS],
        }
    )


async def begun(t: TestEngine, continue_by: str = "client", inputs: JsonObject | None = None) -> TaskState:
    """The pipeline, started for a client and paused at its first step."""
    plan = pipeline()
    wish = Wish(
        plan=plan.spec,
        digest=plan.digest,
        inputs={"source": "http://a.test/x"} if inputs is None else inputs,
        trusted=True,
        continue_by=continue_by,
    )
    state = await t.desk.submit(wish, t.who)
    return await paused(t, state)


async def paused(t: TestEngine, state: TaskState) -> TaskState:
    await t.desk.first(state.id, frozenset({"task.paused", "task.completed", "task.cancelled"}), Seq(0))
    return await t.desk.get(state.id, t.who)


async def types(t: TestEngine, state: TaskState) -> list[str]:
    return [event.type async for event in t.desk.events(state.id, state.seq, follow=False)]


async def call(t: TestEngine, state: TaskState, tool: str, key: str | None = None, **arguments: object) -> TaskState:
    said = ClientCall(tool=tool, arguments=arguments, key=key)  # type: ignore[arg-type]
    return (await Handing(t.desk).call(state.id, t.who, said)).task


@pytest.mark.req("CONT-02")
async def test_the_client_goes_on_step_by_step_and_completes() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        assert state.status == "paused"
        assert [one.type for one in state.pauses.values()] == ["toolError"]
        after = await call(t, state, "fetch_data", source="http://mirror.test/x")
        assert await types(t, state) == [
            "task.started",
            "pause.withdrawn",
            "attempt.started",
            "step.completed",
            "task.continued",
            "pause.opened",
            "task.paused",
        ]
        assert after.status == "paused"
        assert [one.type for one in after.pauses.values()] == ["userRequested"]
        assert world.calls == ["fetch http://a.test/x", "fetch http://mirror.test/x"]  # nothing starts unasked
        await call(t, state, "transform_data", data="<output from raw_data>", format="rows")
        assert world.calls[-1] == "transform {'lines': ['a,1']} rows"
        done = await call(t, state, "store_data", payload=[["a", 1]])
        assert done.status == "paused"
        assert all(step.ended for step in done.steps.values())
        ended = await Handing(t.desk).complete(state.id, t.who, Done(result={"stored": 1, "source": "mirror"}))
        assert (ended.status, ended.outcome) == ("completed", "success")
        assert ended.outputs is not None
        assert ended.outputs.value == {"stored": 1, "source": "mirror"}
        assert not await t.store.check()


async def test_the_server_goes_on_where_that_was_agreed() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t, "server")
        await call(t, state, "fetch_data", source="http://mirror.test/x")
        ended = await paused(t, await t.desk.get(state.id, t.who))
        await t.desk.first(state.id, frozenset({"task.completed"}), state.seq)
        ended = await t.desk.get(state.id, t.who)
        assert ended.status == "completed"
        assert ended.outputs is not None
        assert ended.outputs.value == {"completed": True, "steps_completed": 3}


async def test_a_failed_call_is_recorded_and_asked_about_anew() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        reply = await Handing(t.desk).call(state.id, t.who, ClientCall(tool="fetch_data", arguments={"source": "b"}))
        assert reply.said.failure is not None
        assert reply.said.failure.message == "connection refused"
        assert [one.type for one in reply.task.pauses.values()] == ["toolError"]
        assert reply.task.steps[StepPath("fetch")].attempts == 2


async def test_a_call_that_is_no_step_clears_nothing() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        reply = await Handing(t.desk).call(state.id, t.who, ClientCall(tool="look", arguments={}))
        assert reply.step is None
        assert reply.said.output is not None
        assert reply.said.output.value == "fine"
        assert reply.task.handover is not None
        assert set(reply.task.handover.extra) == {"look"}
        assert [one.type for one in reply.task.pauses.values()] == ["toolError"]


async def test_order_is_not_enforced_and_another_steps_pause_stays() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        after = await call(t, state, "store_data", payload=[1])
        assert after.steps[StepPath("store")].status == "completed"
        assert [one.type for one in after.pauses.values()] == ["toolError"]


async def test_the_same_key_is_the_same_call() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        for _ in range(3):
            await call(t, state, "fetch_data", key="k1", source="http://mirror.test/x")
            await call(t, state, "look", key="k2")
        assert world.calls == ["fetch http://a.test/x", "fetch http://mirror.test/x", "look"]


@pytest.mark.parametrize("moment", ["running", "asked", "ended"])
async def test_a_task_that_takes_no_call_is_not_called(moment: str) -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        first = None
        if moment == "running":
            world.hold = asyncio.Event()
            first = asyncio.ensure_future(call(t, state, "fetch_data", source="mirror"))
            await world.called.wait()
        elif moment == "asked":
            await t.desk.pause(state.id, t.who, None)
        else:
            await t.desk.cancel(state.id, t.who, None)
        before = list(world.calls)
        with pytest.raises(Conflict) as refused:
            await call(t, state, "store_data", payload=[1])
        assert refused.value.code == {"running": "task_busy", "asked": "task_paused", "ended": "task_terminal"}[moment]
        assert world.calls == before
        if first is not None and world.hold is not None:
            world.hold.set()
            await first


async def test_bad_arguments_are_refused_before_anything_is_written() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        for wrong in ({}, {"source": 5}, {"source": "x", "more": 1}):
            with pytest.raises(EverstepError):
                await call(t, state, "fetch_data", **wrong)
        with pytest.raises(EverstepError, match="not there"):
            await call(t, state, "transform_data", data="<output from raw_data>")
        assert await types(t, state) == []


async def test_a_crash_inside_the_call_is_settled_by_the_effect_rule_and_nothing_else_starts() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        world.hold = asyncio.Event()
        lost = asyncio.ensure_future(call(t, state, "fetch_data", source="mirror"))
        await world.called.wait()
        lost.cancel()
        world.hold = None
        await t.crash()
        await t.desk.first(state.id, frozenset({"task.continued"}), state.seq)
        after = await t.desk.get(state.id, t.who)
        assert after.status == "paused"
        assert after.steps[StepPath("fetch")].status == "completed"
        assert world.calls == ["fetch http://a.test/x", "fetch mirror", "fetch mirror"]


async def test_completing_early_leaves_the_rest_out() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        ended = await Handing(t.desk).complete(state.id, t.who, Done(result=[1, 2], note="enough"))
        assert (ended.status, ended.outcome) == ("completed", "partial")
        assert {issue.reason for issue in ended.issues} == {"completed_by_client"}
        assert ended.outputs is not None
        assert ended.outputs.value == {"result": [1, 2]}
        with pytest.raises(Conflict):
            await Handing(t.desk).complete(state.id, t.who, Done(result=None))


async def test_a_missing_input_stops_only_who_needs_it() -> None:
    async with TestEngine(World().tools()) as t:
        state = await begun(t, inputs={})
        (pause,) = state.pauses.values()
        assert isinstance(pause.reason, UnresolvableParams)
        assert pause.reason.missing_param == "source"


async def test_nobody_comes_back() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        after = await call(t, state, "fetch_data", source="mirror")
        await t.clock.advance("23h")
        assert "pause.expiring" in await types(t, after)
        await t.clock.advance("2h")
        ended = [event async for event in t.desk.events(state.id, after.seq, follow=False)][-1]
        assert ended.type == "task.cancelled"
        assert loads(ended.encoded)["data"]["reason"] == "handoff_expired"


async def test_nobody_comes_back_to_what_is_done() -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        state = await begun(t)
        await call(t, state, "fetch_data", source="mirror")
        await call(t, state, "transform_data", data={})
        after = await call(t, state, "store_data", payload=[])
        await t.clock.advance("23h")
        await t.clock.advance("2h")
        await t.desk.first(state.id, frozenset({"task.completed"}), after.seq)
        assert (await t.desk.get(state.id, t.who)).outcome == "success"


@pytest.mark.parametrize("dies", [False, True])
async def test_an_unannounced_task_ends_with_its_request(*, dies: bool) -> None:
    world = World()
    async with TestEngine(world.tools()) as t:
        plan = pipeline()
        if dies:
            world.hold = asyncio.Event()
        wish = Wish(plan=plan.spec, digest=plan.digest, inputs={"source": "a"}, trusted=True, unannounced=True)
        state = await t.desk.submit(wish, t.who)
        if dies:
            await world.called.wait()
            await t.crash()
        ended = await paused(t, state)
        last = [event async for event in t.desk.events(state.id, state.seq, follow=False)][-1]
        assert ended.status == "cancelled"
        assert loads(last.encoded)["data"]["reason"] == ("request_gone" if dies else "handed_over")
        assert len(world.calls) == 1
        assert not await t.store.check()
