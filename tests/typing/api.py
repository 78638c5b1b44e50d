"""The API as a typed program: what users write must type-check as they write it. Checked by mypy, never carried out."""

from collections.abc import Sequence
from typing import Annotated, assert_type

from everstep import (
    Arg,
    Ctx,
    Engine,
    Event,
    EverstepError,
    NeedsInput,
    Pause,
    Plan,
    PlanError,
    Result,
    Task,
    ToolError,
    Transient,
    blocking,
    errors,
    run,
    tool,
)
from everstep.domain.values import JsonObject


@tool("acme.read", effect="pure", timeout="30s")
async def read(url: Annotated[str, Arg("Where to read")], ctx: Ctx) -> dict[str, str]:
    """Read a page."""
    if ctx.cancelled:
        raise Transient("try later", retry_after=5)
    if ctx.answer is None:
        raise NeedsInput("Which page?", {"type": "string"})
    return {"text": url}


@tool.idempotent
def note(text: str, times: int = 1) -> int:
    """Write it down."""
    return len(text) * times


def built() -> Plan:
    plan = Plan("brief", inputs={"topic": str})
    page = plan.step("page", read, {"url": plan.inputs.topic}, retry=2, on_error="pause")
    plan.step("kept", note, {"text": page.text}, when=page.text != "")
    plan.output(text=page.text)
    return plan


async def embedded() -> None:
    async with Engine("work.db", tools=[read, note], config={"engine": {"tasks": 4}}) as engine:
        task = await engine.start(built(), {"topic": "solar"}, key="brief", labels={"team": "x"})
        assert_type(task, Task)
        async for event in task.events(after=0):
            assert_type(event, Event)
            assert_type(event.seq, int)
        result = await task.result(on_pause="return")
        assert_type(result, Result)
        assert_type(result.outputs, JsonObject | None)
        result.raise_for_status()
        assert_type(await engine.get("brief"), Task)
        assert_type(await engine.list(status="running"), Sequence[Task])
        for pause in await engine.inbox():
            assert_type(pause, Pause)
            await pause.retry_with({"url": "https://example.test"}, note="other host")
            await pause.answer("ana")
        await task.pause(note="lunch")
        await (await task.resume()).cancel()
        assert_type(await engine.run("brief.plan.yaml", {"topic": "solar"}, new=True), Result)


def in_a_script() -> str:
    try:
        result = run(built(), {"topic": "solar"}, key="brief", on_pause="return")
    except PlanError as problem:
        return problem.problems[0].message
    except errors.StoreLocked as locked:
        return locked.what_to_do
    except EverstepError as error:
        return error.code
    assert_type(result, Result)
    return result.status


def without_await() -> None:
    with blocking.Engine("work.db", tools=[read]) as engine:
        task = engine.start(built(), {"topic": "solar"})
        assert_type(task, blocking.Task)
        for event in task.events():
            assert_type(event, Event)
        assert_type(task.result().status, str)
        for pause in engine.inbox(task.id):
            assert_type(pause, blocking.Pause)
            pause.skip(note="not needed")


def said(error: ToolError) -> str | None:
    return error.code
