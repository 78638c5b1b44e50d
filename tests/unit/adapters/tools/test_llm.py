"""`llm.chat` and `llm.json` against a server that speaks the protocol: whole, slow, cut, malformed, refusing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from everstep import Plan, durable
from everstep.domain.errors import PlanError, SettingsError
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.testing import TestEngine
from everstep.testing.chat import USUAL, says, says_by
from everstep.testing.rig import Behaviour, HttpRig, answer, silence
from tests.unit import passing

CHAT = "/v1/chat/completions"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@asynccontextmanager
async def models(*script: Behaviour, **endpoint: Any) -> AsyncIterator[tuple[HttpRig, TestEngine]]:
    async with HttpRig() as rig:
        rig.on(CHAT, script)
        rig.on("/v1/models", answer(200, {"data": []}))
        place = {"url": rig.url("/v1"), "model": "small", "price_in": 0.5, "price_out": 1.5, **endpoint}
        config: Any = {"llm.endpoints": {"local": place, "other": {"url": rig.url("/b"), "model": "big"}}}
        config |= {"retry.delay": "1ms", "rates": {"llm.local": "1000/1s", "llm.other": "1000/1s"}}
        async with TestEngine(config=config, secrets={"key": "sk-1234567890"}) as engine:
            yield rig, engine


def plan(tool: str = "llm.chat", arguments: Any = None, **options: Any) -> Plan:
    made = Plan("asking")
    reply = made.step("ask", tool, {"prompt": "Hello?"} if arguments is None else arguments, **options)
    made.output(reply=reply)
    return made


async def run(engine: TestEngine, made: Plan) -> Result:
    return await ends(engine, await engine.start(made))


async def ends(engine: TestEngine, task: Task) -> Result:
    """Time passes until it stands or has ended."""
    (result,) = await passing.ends(engine, task)
    return result


async def usages(engine: TestEngine, task: str) -> list[Any]:
    events = [event async for event in (await engine.get(task)).events(follow=False)]
    return [event.data["usage"] for event in events if event.data.get("usage")]


@pytest.mark.req("X.4")
async def test_the_text_its_usage_and_what_was_sent() -> None:
    async with models(says("Hello, you."), auth="key") as (rig, engine):
        made = plan(arguments={"messages": [{"role": "user", "content": "Hi"}], "system": "Be short.", "max_tokens": 9})
        result = await run(engine, made)
        assert result.outputs == {
            "reply": {
                "text": "Hello, you.",
                "model": "rig-1",
                "finish_reason": "stop",
                "usage": {"tokens_in": 12, "tokens_out": 5, "cost": 0.0000135},
            }
        }
        (used,) = await usages(engine, result.task_id)
        assert (used["cost"], used["tokens_in"], used["tokens_out"]) == (0.0000135, 12, 5)
        shown = "".join(fields["text"] for note, fields in engine.sink.notes if note == "output")  # type: ignore[misc]
        assert shown == "Hello, you."
    (asked,) = rig.asked
    sent = json.loads(asked.body)
    assert asked.headers["authorization"] == "Bearer sk-1234567890"
    assert [one["role"] for one in sent["messages"]] == ["system", "user"]
    assert (sent["model"], sent["max_tokens"], sent["stream"]) == ("small", 9, True)


async def test_an_endpoint_that_cannot_stream_and_one_that_says_no_usage() -> None:
    whole = replace(USUAL, streams=False)
    silent = replace(USUAL, tokens=None)
    async with models(says("one", whole), says("two", silent)) as (_, engine):
        first, second = await run(engine, plan()), await run(engine, plan())
        assert first.outputs is not None
        assert second.outputs is not None
        assert first.outputs["reply"]["usage"]["tokens_in"] == 12  # type: ignore[call-overload, index]
        assert second.outputs["reply"]["usage"] is None  # type: ignore[call-overload, index]


@pytest.mark.parametrize("tokens", [(-5, 1), (1, 10**400), (True, "2")])
async def test_a_usage_that_cannot_be_is_none(tokens: Any) -> None:
    """Nothing is guessed, and nobody gets money back."""
    async with models(says("one", replace(USUAL, tokens=tokens))) as (_, engine):
        result = await run(engine, plan())
        assert result.outputs is not None, result.error
        assert result.outputs["reply"]["usage"] is None  # type: ignore[call-overload, index]


BAD = [
    pytest.param(answer(500, b"oops"), id="500"),
    pytest.param(answer(429, b"slow down", Retry_After="3"), id="429"),
    pytest.param(says("half an answer", replace(USUAL, cut_after=1)), id="cut"),
    pytest.param(answer(200, b"<html>"), id="malformed"),
    pytest.param(answer(200, b"data: {not json\n\n"), id="malformed stream"),
    pytest.param(answer(200, {"error": "overloaded"}), id="an error in words"),
    pytest.param(answer(200, {"choices": []}), id="nothing said"),
    pytest.param(answer(200, b"data: [DONE]\n\n"), id="nothing streamed"),
]


@pytest.mark.req("X.4")
@pytest.mark.parametrize("bad", BAD)
async def test_what_passes_is_asked_again(bad: Behaviour) -> None:
    async with models(bad, says("ok")) as (rig, engine):
        result = await run(engine, plan())
        assert result.status == "completed", result.error
        assert rig.count(CHAT) == 2


async def test_a_slow_model_is_given_up_and_the_next_one_asked() -> None:
    slow = [{"tool": "llm.chat", "with": {"prompt": "Hello?", "endpoint": "other", "model": "big-2"}}]
    async with models(silence) as (rig, engine):
        rig.on("/b/chat/completions", says("from the other"))
        task = await engine.start(plan(timeout="2s", retry=0, fallback=slow))
        while not rig.count(CHAT):  # noqa: ASYNC110 -- a server says nothing when it is asked
            await asyncio.sleep(0.01)
        await engine.clock.advance("3s")
        result = await ends(engine, task)
        assert result.outputs is not None
        assert result.outputs["reply"]["text"] == "from the other"  # type: ignore[call-overload, index]
        assert json.loads(rig.asked[-1].body)["model"] == "big-2"


ENDS = [
    pytest.param(says("I", replace(USUAL, refusal="No.")), "llm_refused", id="refused"),
    pytest.param(says("I", replace(USUAL, finish="content_filter")), "llm_refused", id="filtered"),
    pytest.param(says('{"n": 1', replace(USUAL, finish="length")), "llm_too_long", id="cut off"),
    pytest.param(answer(400, {"error": {"code": "context_length_exceeded"}}), "llm_too_long", id="too long"),
    pytest.param(answer(400, {"error": {"message": "no"}}), "http_400", id="400"),
    pytest.param(answer(401, b"who?"), "http_401", id="401"),
]


@pytest.mark.parametrize(("bad", "code"), ENDS)
async def test_what_does_not_pass_says_what_it_is(bad: Behaviour, code: str) -> None:
    async with models(bad) as (rig, engine):
        result = await run(engine, plan("llm.json", {"prompt": "n?", "schema": SCHEMA}, retry=0))
        assert result.error is not None
        assert result.error["code"] == code
        assert rig.count(CHAT) == 1


@pytest.mark.req("X.4")
async def test_json_is_checked_repaired_once_and_then_asked_for_again() -> None:
    wrong = [says("seven"), says('{"n": "7"}'), says('```json\n{"n": 7}\n```')]
    async with models(*wrong) as (rig, engine):
        result = await run(engine, plan("llm.json", {"prompt": "n?", "schema": SCHEMA}))
        assert result.outputs is not None
        assert result.outputs["reply"]["value"] == {"n": 7}  # type: ignore[call-overload, index]
        sent = [json.loads(one.body) for one in rig.asked]
        assert [len(one["messages"]) for one in sent] == [1, 3, 1]
        assert sent[0]["response_format"]["json_schema"]["schema"] == SCHEMA
        costs = [used["cost"] for used in await usages(engine, result.task_id)]
        assert costs == [0.000027, 0.0000135]


async def test_where_no_schema_can_be_sent_it_is_said() -> None:
    async with models(says('{"n": 1}'), json_schema=False) as (rig, engine):
        assert (await run(engine, plan("llm.json", {"prompt": "n?", "schema": SCHEMA}))).status == "completed"
        sent = json.loads(rig.asked[0].body)
        assert "response_format" not in sent
        assert json.loads(sent["messages"][0]["content"].split("\n", 1)[1]) == SCHEMA


@pytest.mark.req("X.4")
async def test_what_a_task_may_cost_stops_it_before_the_next_call() -> None:
    @durable("spender")
    async def spender(ctx: Any) -> dict[str, Any]:
        return {"texts": [(await ctx.call("llm.chat", {"prompt": f"{n}?"}))["text"] for n in range(5)]}

    dear = replace(USUAL, tokens=(1_000_000, 1_000_000))
    async with models(says("word", dear)) as (rig, engine):
        engine.desk.learn(spender.script)
        task = await engine.start(spender, limits={"cost": 5})
        assert (await ends(engine, task)).status == "paused"
        pause = engine.inbox.only()
        assert pause.type == "limitReached"
        assert rig.count(CHAT) == 3
        await pause.raise_limit(50)
        assert (await ends(engine, task)).status == "completed"
        assert rig.count(CHAT) == 5


async def test_a_provider_that_limits_is_left_alone_by_everybody() -> None:
    async with models(answer(429, b"later", Retry_After="30"), says("ok")) as (rig, engine):
        tasks = [await engine.start(plan(), key=f"k{n}") for n in range(2)]
        began = engine.clock.now()
        for task in tasks:
            assert (await ends(engine, task)).status == "completed"
        assert engine.clock.now() - began >= 30_000
        assert rig.count(CHAT) == 3


async def refused(engine: TestEngine, made: Plan) -> bool:
    """By the plan check, or when the arguments are looked at."""
    try:
        return (await run(engine, made)).status in ("failed", "paused")
    except PlanError:
        return True


async def test_arguments_and_settings_that_cannot_work_are_refused() -> None:
    async with models(says("ok")) as (rig, engine):
        for wrong in ({}, {"prompt": "a", "messages": []}, {"prompt": "a", "endpoint": "nobody"}):
            assert await refused(engine, plan(arguments=wrong))
        assert await refused(engine, plan("llm.json", {"prompt": "a", "schema": {"type": "nonsense"}}))
        assert rig.count(CHAT) == 0
    for wrong_place in ({"model": "m"}, {"url": "ftp://x"}):
        with pytest.raises(SettingsError):
            async with TestEngine(config={"llm.endpoints.a": wrong_place}):  # type: ignore[dict-item]
                pass
    async with TestEngine() as engine:
        assert not [one for one in engine.desk.tools if one.spec.name.startswith("llm.")]


async def test_what_it_says_depends_on_what_it_is_asked() -> None:
    async with models(says_by(lambda asked: asked["messages"][-1]["content"].upper())) as (_, engine):
        result = await run(engine, plan())
        assert result.outputs is not None
        assert result.outputs["reply"]["text"] == "HELLO?"  # type: ignore[call-overload, index]
