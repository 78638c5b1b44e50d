"""Durable functions: code that is run again and goes on where it was, whatever happened in between."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep import ToolError, Transient, durable, tool
from everstep.authoring.durable import DurableFunction
from everstep.domain.errors import Conflict
from everstep.domain.pauses import ToolErrorPause
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.testing.engine import TestEngine
from everstep.wire.plan import digest, from_json, from_stored, to_json

CALLS: Counter[str] = Counter()


@tool.pure("lab.read")
async def read(page: str) -> dict[str, str]:
    """Read a page."""
    CALLS[page] += 1
    if page == "gone":
        raise ToolError("no such page", code="page_gone")
    return {"text": page.upper()}


@tool.pure("lab.flaky")
async def flaky() -> int:
    """Fails the first time."""
    CALLS["flaky"] += 1
    if CALLS["flaky"] == 1:
        raise Transient("not now")
    return CALLS["flaky"]


RUNNING: list[int] = []


@tool.pure("lab.slow")
async def slow(n: int) -> int:
    """Takes some turns; says how many run beside it."""
    RUNNING.append(n)
    beside = len(RUNNING)
    for _ in range(10 * (5 - n)):
        await asyncio.sleep(0)
    RUNNING.remove(n)
    CALLS["slow"] += 1
    CALLS["most"] = max(CALLS["most"], beside)
    return n


def function(body: Any, name: str = "agent", version: str = "1") -> DurableFunction:
    return durable(name, version=version)(body)


@pytest.fixture
async def engine() -> AsyncIterator[TestEngine]:
    CALLS.clear()
    RUNNING.clear()
    async with TestEngine(tools=[read, flaky, slow]) as opened:
        yield opened
        assert await opened.store.check() == []


async def ends(task: Task) -> Result:
    await task.refresh()  # what was paused before does not count
    return await asyncio.wait_for(task.result(on_pause="return"), 60)


async def run(engine: TestEngine, body: Any, **inputs: Any) -> Result:
    return await ends(await engine.start(function(body), inputs))


@pytest.mark.req("X.4")
async def test_a_crash_between_any_two_calls_repeats_none(engine: TestEngine) -> None:
    async def agent(ctx: Any, topic: str) -> dict[str, Any]:
        notes = []
        for n in range(5):
            notes.append((await ctx.call(read, {"page": f"{topic}{n}"}))["text"])
            notes.append(await ctx.ask(f"{n}?"))
        pages = await ctx.gather(*[ctx.call("lab.read", {"page": note}) for note in notes], limit=3)
        return {"notes": notes, "pages": pages, "at": [await ctx.now(), await ctx.random(), await ctx.uuid()]}

    task = await engine.start(function(agent), {"topic": "solar"})
    for n in range(5):
        assert (await ends(task)).status == "paused"
        await engine.crash()
        task = await engine.get(task.id)
        engine.desk.learn(function(agent).script)
        await engine.inbox.only().answer(f"a{n}")
    result = await ends(task)
    assert result.status == "completed", result.error
    assert result.outputs is not None
    assert result.outputs["notes"] == [word for n in range(5) for word in (f"SOLAR{n}", f"a{n}")]
    assert set(CALLS.values()) == {1}
    assert [*(await engine.get(task.id)).steps][:3] == ["lab_read_1", "ask_1", "lab_read_2"]


async def test_a_task_whose_code_is_not_here_waits_for_it(engine: TestEngine) -> None:
    async def agent(ctx: Any) -> str:
        return str(await ctx.ask("Who?"))

    task = await engine.start(function(agent))
    await ends(task)
    await engine.crash()
    task = await engine.get(task.id)
    await engine.inbox.only().answer("ana")
    await engine.clock.advance("1s")
    await task.refresh()
    assert task.status == "stalled"
    await engine.crash()
    again = await engine.start(function(agent), key="other")  # brings the code along
    assert (await ends(again)).status == "paused"


@pytest.mark.req("X.4")
async def test_changed_code_stops_with_two_lines_and_goes_on_once_it_is_back(engine: TestEngine) -> None:
    def agent(first: str, *, more: bool = False, leave: bool = False) -> Any:
        async def body(ctx: Any) -> Any:
            if more:
                await ctx.call("lab.flaky")
            text = (await ctx.call("lab.read", {"page": first}))["text"]
            if leave:
                return text
            return {"who": await ctx.ask("Who?"), "text": text}

        return body

    task = await engine.start(function(agent("a")))
    await ends(task)
    await engine.inbox.only().answer("ana", by="ana")
    assert (await ends(task)).status == "completed"
    task = await engine.start(function(agent("a")), key="second")
    await ends(task)
    seen = []
    for changed in (agent("b"), agent("a", more=True), agent("a", leave=True)):
        engine.desk.learn(function(changed, version="2").script)
        for pause in engine.inbox.all:
            await (pause.answer("bob") if pause.type == "inputRequired" else pause.retry())
        assert (await ends(task)).status == "paused"
        pause = engine.inbox.only()
        assert pause.type == "toolError"
        assert isinstance(pause.reason, ToolErrorPause)
        assert pause.reason.error.startswith("code_changed: ")
        assert pause.answers == ("retry", "cancel")
        seen.append(pause.reason.error.splitlines()[1:])
    assert seen == [
        ['- lab_read_1: lab.read {"page":"a"}', '+ lab_read_1: lab.read {"page":"b"}'],
        ['- lab_read_1: lab.read {"page":"a"}', "+ lab_flaky_1: lab.flaky {}"],
        ['- ask_1: ask {"question":"Who?","schema":"string"}', "+ returns"],
    ]
    engine.desk.learn(function(agent("a")).script)
    await engine.inbox.only().retry()
    result = await ends(task)
    assert result.outputs == {"who": "bob", "text": "A"}
    assert CALLS == {"a": 2}


@pytest.mark.req("X.4")
async def test_a_fork_begins_with_the_calls_before_it(engine: TestEngine) -> None:
    def agent(last: str) -> Any:
        async def body(ctx: Any) -> Any:
            pages = await ctx.gather(*[ctx.call("lab.read", {"page": page}) for page in ("a", "b")])
            return {"pages": pages, "last": await ctx.call("lab.read", {"page": last})}

        return body

    task = await engine.start(function(agent("c")))
    assert (await ends(task)).status == "completed"
    engine.desk.learn(function(agent("d")).script)
    forked = await task.fork("lab_read_3")
    result = await ends(forked)
    assert result.outputs is not None
    assert result.outputs["last"] == {"text": "D"}
    assert CALLS == {"a": 1, "b": 1, "c": 1, "d": 1}


async def test_a_failed_call_raises_what_the_code_may_catch(engine: TestEngine) -> None:
    async def careful(ctx: Any) -> str:
        try:
            await ctx.call(read, {"page": "gone"})
        except ToolError as error:
            return f"{error.code}: {error}"
        return "found"

    result = await run(engine, careful)
    assert (result.status, result.outcome) == ("completed", "partial")
    assert result.outputs == {"result": "page_gone: no such page"}


async def test_an_uncaught_failure_fails_the_task_and_a_retry_keeps_the_rest(engine: TestEngine) -> None:
    async def agent(ctx: Any) -> str:
        await ctx.gather(ctx.call(read, {"page": "a"}), ctx.call(read, {"page": "gone"}), ctx.call(read, {"page": "b"}))
        return "done"

    task = await engine.start(function(agent))
    result = await ends(task)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["code"] == "page_gone"
    assert result.error["step"] == "lab_read_2"
    await task.retry()
    assert (await ends(task)).status == "failed"
    assert CALLS == {"a": 1, "gone": 2, "b": 1}


async def test_a_bug_in_the_code_is_named_and_its_repair_goes_on_from_there(engine: TestEngine) -> None:
    def agent(*, broken: bool) -> Any:
        async def body(ctx: Any) -> Any:
            page = await ctx.call(read, {"page": "a"})
            return page["txt" if broken else "text"]

        return body

    task = await engine.start(function(agent(broken=True)))
    result = await ends(task)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error["code"] == "tool_bug"
    assert "agent" in str(result.error["message"])
    assert "test_durable.py" in str(result.error["message"])
    engine.desk.learn(function(agent(broken=False)).script)
    await task.retry()
    assert (await ends(task)).outputs == {"result": "A"}
    assert CALLS == {"a": 1}


async def test_gather_keeps_its_limit_and_order_and_meets_the_same_state_again(engine: TestEngine) -> None:
    """Branches share a list in the order in which they ended; a later run of the code must find the same order."""

    async def agent(ctx: Any) -> dict[str, Any]:
        order: list[int] = []

        async def branch(n: int) -> int:
            order.append(await ctx.call(slow, {"n": n}))
            await ctx.call(read, {"page": f"p{n}"})
            return n

        given = await ctx.gather(*[branch(n) for n in range(5)], limit=2)
        await ctx.call(read, {"page": "-".join(map(str, order))})
        return {"given": given, "order": order, "who": await ctx.ask("Who?")}

    task = await engine.start(function(agent))
    assert (await ends(task)).status == "paused"
    await engine.crash()
    engine.desk.learn(function(agent).script)
    task = await engine.get(task.id)
    await engine.inbox.only().answer("ana")
    result = await ends(task)
    assert result.status == "completed", result.error
    assert result.outputs is not None
    assert result.outputs["given"] == [0, 1, 2, 3, 4]
    assert result.outputs["order"] != [0, 1, 2, 3, 4]
    assert CALLS["slow"] == 5
    assert CALLS["most"] == 2
    assert next(iter((await engine.get(task.id)).steps)) == "gather_1_1_lab_slow_1"


async def test_approvals_show_edit_and_refuse(engine: TestEngine) -> None:
    async def agent(ctx: Any) -> dict[str, Any]:
        sent = await ctx.approve("Send ${it}?", show={"to": "ana", "text": "hi"}, edit=["text"])
        try:
            await ctx.approve("Really?")
        except ToolError as error:
            return {"sent": sent, "error": error.code}
        return {}

    task = await engine.start(function(agent))
    await ends(task)
    pause = engine.inbox.only()
    assert pause.title == "Send ${it}?"
    await pause.edit({"text": "hello"})
    await ends(task)
    await engine.inbox.only().reject(note="no")
    assert (await ends(task)).outputs == {"sent": {"to": "ana", "text": "hello"}, "error": "approval_rejected"}


async def test_waits_signals_and_retries_are_durable(engine: TestEngine) -> None:
    async def agent(ctx: Any) -> dict[str, Any]:
        await ctx.sleep("1h")
        paid = await ctx.wait_event("paid", "order-1")
        return {"data": paid["data"], "n": await ctx.call(flaky)}

    task = await engine.start(function(agent))
    await engine.clock.advance("30m")
    await engine.crash()
    engine.desk.learn(function(agent).script)
    task = await engine.get(task.id)
    await engine.clock.advance("31m")
    await engine.signal("paid", "order-1", 12)
    await engine.clock.advance("1m")
    assert (await ends(task)).outputs == {"data": 12, "n": 2}


async def test_the_same_control_as_every_task(engine: TestEngine) -> None:
    async def agent(ctx: Any) -> str:
        await ctx.sleep("1h")
        return "done"

    task = await engine.start(function(agent))
    await engine.clock.advance("1m")
    await task.pause()
    assert (await ends(task)).status == "paused"
    await task.resume()
    await engine.clock.advance("2h")
    assert (await ends(task)).status == "completed"
    task = await engine.start(function(agent), key="b")
    await engine.clock.advance("1m")
    with pytest.raises(Conflict, match="durable function"):
        await task.patch([{"op": "skip", "id": "sleep_1"}], base_revision=task.revision)
    await task.cancel()
    assert (await ends(task)).status == "cancelled"


async def test_large_values_are_kept_beside_the_journal(engine: TestEngine) -> None:
    async def agent(ctx: Any) -> int:
        text = (await ctx.call(read, {"page": "x" * 100_000}))["text"]
        await ctx.ask("Go on?")
        return len((await ctx.call(read, {"page": text}))["text"])

    task = await engine.start(function(agent))
    await ends(task)
    await engine.crash()
    engine.desk.learn(function(agent).script)
    await engine.inbox.only().answer("yes")
    assert (await ends(await engine.get(task.id))).outputs == {"result": 100_000}


async def test_what_cannot_be_asked_for_is_told_to_the_code(engine: TestEngine) -> None:
    async def agent(ctx: Any) -> list[str]:
        told = []
        for call in (
            lambda: ctx.call("lab.raed", {"page": "a"}),
            lambda: ctx.call("lab.read", {"page": object()}),
            lambda: ctx.call("lab.read", {"page": "a"}, when=True),
            lambda: ctx.call("lab.read", {"page": "a"}, id="No id"),
            lambda: ctx.call("lab.read", {"page": "a"}, timeout=3),
            lambda: asyncio.gather(ctx.call("lab.read", {"page": "a"})),
        ):
            try:
                await call()
            except Exception as error:  # noqa: BLE001 -- that there is one is the point
                told.append(str(error))
        return told

    result = await run(engine, agent)
    assert result.outputs is not None
    told = result.outputs["result"]
    assert isinstance(told, list)
    assert "did you mean 'lab.read'" in str(told[0])
    assert "say it in Python" in str(told[2])
    assert "step id" in str(told[3])
    assert "ctx.gather" in str(told[5])
    assert len(told) == 6
    assert not CALLS


async def test_stages_tell_how_far_it_is(engine: TestEngine) -> None:
    async def agent(ctx: Any) -> str:
        ctx.stages(["lab.read", "ask", "lab.flaky", "lab.slow"])
        await ctx.call(read, {"page": "a"})
        return str(await ctx.ask("Who?"))

    task = await engine.start(function(agent))
    await ends(task)
    await task.refresh()
    assert task.progress.fraction == 0.25
    plain = await engine.start(function(lambda_agent), key="plain")
    await ends(plain)
    await plain.refresh()
    assert plain.progress.fraction == 0.0


async def lambda_agent(ctx: Any) -> str:
    await ctx.call(read, {"page": "a"})
    return str(await ctx.ask("Who?"))


def test_its_plan_has_a_digest_of_name_and_version_and_cannot_be_sent() -> None:
    one, two = function(lambda_agent), function(lambda_agent, version="2")
    assert one.digest == digest(from_stored(to_json(one.spec)).plan)  # type: ignore[arg-type]
    assert one.digest != two.digest
    assert from_json({**to_json(one.spec), "steps": []}).plan is None


def test_what_is_no_durable_function_is_refused_at_import() -> None:
    def plain(ctx: Any) -> str:
        return str(ctx)

    async def without() -> str:
        return ""

    async def unhinted(ctx: Any, topic) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
        return str(ctx) + str(topic)

    for wrong in (plain, without, unhinted):
        with pytest.raises(TypeError):
            function(wrong)
    with pytest.raises(TypeError, match="name"):
        function(lambda_agent, name="No Name")
