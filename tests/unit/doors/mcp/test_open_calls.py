"""While a call is open: what it can be asked and told, and who is told of changes."""

import asyncio
from typing import Any

import pytest

from everstep.domain.errors import LimitExceeded
from everstep.doors.mcp.channel import Caller
from everstep.doors.mcp.completing import Completion
from everstep.doors.mcp.desk import Client
from everstep.doors.mcp.listening import Bells, Seats
from everstep.doors.mcp.published import Published
from everstep.doors.mcp.refusals import Refused
from everstep.doors.mcp.talk import Talk
from everstep.doors.mcp.turns import Turns
from tests.unit.doors.mcp.stage import CALLER, NEW, OLD, Stage, plan_of, stage

NAME: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
ASKS = {"id": "who", "tool": "ask", "with": {"question": "Who?", "schema": NAME}}
ASKS_TWICE = plan_of(ASKS, {**ASKS, "id": "whom", "needs": ["who"]}, outputs={"who": "${who}", "whom": "${whom}"})
ALONE = Client(caller=CALLER, elicits=True)
"""Of the newer revision, without Tasks."""


async def test_the_older_revision_is_asked_while_its_call_is_open() -> None:
    async with stage(ASKS_TWICE, task_support=False, tool=True) as on:
        names = iter(("Ana", "Ben"))

        async def elicit(message: str, schema: dict[str, Any]) -> dict[str, Any]:
            assert "Who?" in message
            assert schema["properties"]["name"] == {"type": "string"}
            return {"action": "accept", "content": {"name": next(names)}}

        made = await on.calls.call(OLD, "data-pipeline", {}, {}, talk=Talk(elicit=elicit))
        assert made["structuredContent"] == {"who": {"name": "Ana"}, "whom": {"name": "Ben"}}


async def test_whoever_declines_hears_that_the_task_waits() -> None:
    async with stage(ASKS_TWICE, task_support=False, tool=True) as on:

        async def elicit(_message: str, _schema: dict[str, Any]) -> dict[str, Any]:
            return {"action": "decline", "content": None}

        made = await on.calls.call(OLD, "data-pipeline", {}, {}, talk=Talk(elicit=elicit))
        assert made["structuredContent"]["error"]["code"] == "answer_needed"


async def test_without_tasks_a_question_is_the_reply_and_the_answer_comes_with_the_same_call() -> None:
    async with stage(ASKS_TWICE, task_support=False, tool=True) as on:
        asked = await on.calls.call(ALONE, "data-pipeline", {}, {})
        states = []
        for name in ("Ana", "Ben"):
            assert asked["resultType"] == "input_required"
            states.append(asked["requestState"])
            (key,) = asked["inputRequests"]
            again = await on.calls.resumed(ALONE, asked["requestState"], {"another": {}})
            assert [*again["inputRequests"]] == [key]
            reply = {key: {"action": "accept", "content": {"name": name}}}
            asked = await on.calls.resumed(ALONE, asked["requestState"], reply)
        assert asked["structuredContent"] == {"who": {"name": "Ana"}, "whom": {"name": "Ben"}}
        assert len({*states}) == 2
        assert len(await on.all_tasks()) == 1


async def test_what_a_client_made_up_is_no_state_of_ours() -> None:
    async with stage(ASKS_TWICE, task_support=False, tool=True) as on:
        state = (await on.calls.call(ALONE, "data-pipeline", {}, {}))["requestState"]
        stranger = Client(caller=Caller(owner="bob"), elicits=True)
        made_up = (f"{state}-x", state.replace("mt_", "mt_x"), state.upper())
        for client, said in ((stranger, state), *((ALONE, one) for one in made_up)):
            with pytest.raises(Refused):
                await on.calls.resumed(client, said, {})


async def test_how_far_a_call_is() -> None:
    async with stage() as on:
        made = await on.calls.call(ALONE, "fetch_data", {"source": "mirror"}, {}, talk=Talk(tell=on.tell))
        assert made["isError"] is False
        assert (on.progress[0][:2], on.progress[-1][:2]) == ((0, 100), (100, 100))


async def test_a_list_that_changes_is_told_once_and_only_while_somebody_listens() -> None:
    bells, seats, told = Bells(), Seats(), asyncio.Queue[str]()
    bells.ring("tools")
    seats.sit_down("a", bells, told.put)
    await asyncio.sleep(0)
    bells.ring("tools", "prompts")
    bells.ring("tools")
    assert [await told.get(), await told.get()] == ["tools", "prompts"]
    seats.leave("a")
    await asyncio.sleep(0)
    bells.ring("tools")
    assert told.empty()


async def test_a_workflow_published_later_is_told_and_offered() -> None:
    async with stage() as on:
        with on.desk.book.bells.listening() as ear:
            more = plan_of({"id": "a", "tool": "area", "with": {"size": {"width": 1, "height": 2}}}, name="more")
            on.desk.book.publish(Published(plan=more.spec))
            assert set(await ear.changed()) == {"tools", "prompts", "resources"}
        assert "more" in [one["name"] for one in on.prompts.offered()]
        assert "area" in [one["name"] for one in await on.calls.offered(NEW)]
        on.desk.book.withdraw("more")
        assert "more" not in [one["name"] for one in on.prompts.offered()]


async def test_a_resource_tells_of_every_change_until_its_task_has_ended() -> None:
    async with stage(plan_of(ASKS)) as on:
        await on.prompt({})
        (task,) = await on.all_tasks()
        updates = await on.resources.updates(NEW, f"task://{task['id']}/variables")
        first = asyncio.ensure_future(anext(updates))
        await asyncio.sleep(0)
        assert not first.done()
        (pause,) = (await on.ask("GET", "/v1/inbox"))["items"]
        await on.ask("POST", f"/v1/inbox/{pause['id']}/answer", {"answer": "answer", "value": {"name": "Ana"}})
        await first
        assert [one async for one in updates] in ([], [None])
        with pytest.raises(Refused):
            await on.resources.updates(NEW, "task://t_none")
        assert list(await on.resources.watched(NEW, ["plan://data-pipeline", "plan://none"])) == [
            "plan://data-pipeline"
        ]


async def test_a_change_between_subscribing_and_listening_is_told() -> None:
    async with stage(plan_of(ASKS)) as on:
        await on.prompt({})
        (task,) = await on.all_tasks()
        updates = await on.resources.updates(NEW, f"task://{task['id']}/variables")
        await on.ask("POST", f"/v1/tasks/{task['id']}/cancel", {})
        assert [one async for one in updates] != []


async def completed(on: Stage, ref: dict[str, Any], **argument: str) -> list[str]:
    ((name, value),) = argument.items()
    said = await Completion(on.desk).complete(NEW, ref, {"name": name, "value": value})
    assert said["completion"]["total"] == len(said["completion"]["values"])
    return list(said["completion"]["values"])


async def test_what_somebody_types_is_completed() -> None:
    inputs = {"source": {"type": "string", "enum": ["mirror", "main", "other"]}, "dry": "boolean"}
    plan = plan_of({"id": "a", "tool": "ask", "with": {"question": "${inputs.source}"}}, inputs=inputs)
    async with stage(plan) as on:
        prompt = {"type": "ref/prompt", "name": "data-pipeline"}
        assert await completed(on, prompt, source="m") == ["mirror", "main"]
        assert await completed(on, prompt, dry="t") == ["true"]
        assert await completed(on, prompt, none="") == []
        await on.prompt({"source": "main"})
        (task,) = await on.all_tasks()
        assert await completed(on, {"type": "ref/prompt", "name": "continue_task"}, task="t_") == [task["id"]]
        assert await completed(on, {"type": "ref/resource", "uri": "task://{id}"}, id="") == [task["id"]]
        for ref in ({"type": "ref/prompt", "name": "none"}, {"type": "ref/resource", "uri": "x://y"}):
            with pytest.raises(Refused):
                await completed(on, ref, x="")


def test_nobody_holds_more_of_the_door_than_is_allowed() -> None:
    turns = Turns(calls=2, streams=1)
    with turns.call("ana"), turns.call("ana"), turns.call("bob"), turns.stream("ana"):
        for one_more in (turns.call, turns.stream):
            with pytest.raises(LimitExceeded), one_more("ana"):
                pass
    with turns.call("ana"), turns.call("ana"):
        pass


async def test_a_connection_subscribes_to_so_many_resources() -> None:
    seats = Seats()
    for number in range(100):
        seats.subscribe("a", f"x://{number}", asyncio.sleep(3600))
    with pytest.raises(Refused):
        seats.subscribe("a", "x://more", asyncio.sleep(3600))
    seats.subscribe("b", "x://more", asyncio.sleep(3600))
    seats.close()
