"""Approvals on the real engine in virtual time: asked before the call, bound to it, used up by it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.commands import Reply
from everstep.domain.errors import Conflict, NotAllowed, Validation
from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.ids import PauseId, StepPath
from everstep.domain.states import Phase
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.ports.tool import ToolError, Transient
from everstep.testing.engine import TestEngine

SEND = StepPath("send")


class World:
    """What was really sent, and what goes wrong next."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.raises: list[Exception | None] = []
        self.version = "1"
        self.holds: asyncio.Event | None = None

    def tools(self) -> list[object]:
        @tool("mail.post", version=self.version)
        async def post(to: str, text: str = "hello") -> dict[str, str]:
            self.sent.append((to, text))
            if self.holds is not None:
                await self.holds.wait()
            error = self.raises.pop(0) if self.raises else None
            if error is not None:
                raise error
            return {"id": f"m{len(self.sent)}"}

        @tool("disk.wipe", effect="idempotent", approve=True)
        async def wipe(path: str) -> dict[str, str]:
            self.sent.append(("wipe", path))
            return {"path": path}

        return [post, wipe]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def engine(world: World) -> AsyncIterator[TestEngine]:
    async with TestEngine(world.tools()) as opened:
        yield opened
        assert await opened.store.check() == [], "rows follow from journals"


def plan_of(approve: JsonValue = True, **keys: JsonValue) -> Plan:
    step: JsonObject = {"id": "send", "tool": "mail.post", "with": {"to": "ana", "text": "hi"}, "approve": approve}
    plan = Plan.from_dict({"name": "p", "steps": [{**step, **keys}], "outputs": {"id": "${default(send.id, null)}"}})
    plan.trusted = True
    return plan


async def events(task: Task, *types: str) -> list[JsonObject]:
    return [event.data async for event in task.events(follow=False) if event.type in types]


async def settled(engine: TestEngine, task: Task, after: str = "1ms") -> Task:
    await engine.clock.advance(after)
    return await task.refresh()


# --- the question ---


@pytest.mark.req("W.2", "C.2")
async def test_a_gated_call_waits_and_shows_exactly_what_it_would_do(engine: TestEngine, world: World) -> None:
    asked: JsonObject = {"title": "Send to ${inputs.who}?", "show": ["${inputs.who}"], "edit": ["text"]}
    plan = Plan.from_dict({
        "name": "p",
        "inputs": {"who": "string"},
        "steps": [{"id": "send", "tool": "mail.post", "with": {"to": "${inputs.who}"}, "approve": asked}],
    })  # fmt: skip
    task = await settled(engine, await engine.start(plan, {"who": "ana"}))
    assert (task.status, task.steps[SEND].status, task.steps[SEND].phase) == (
        "paused",
        "paused",
        Phase.AWAITING_APPROVAL,
    )
    assert world.sent == []
    (opened,) = await events(task, "pause.opened")
    assert opened["title"] == "Send to ana?"
    assert opened["show"] == ["ana"]
    assert opened["may_answer"] == ["human"]
    assert opened["why"] == "the plan asks before mail.post; cannot be undone"
    call = opened["call"]
    assert isinstance(call, dict)
    assert isinstance(call["input"], dict)
    assert (call["tool"], call["tool_version"], call["effect"], call["editable"]) == (
        "mail.post",
        "1",
        "once",
        ["text"],
    )
    assert call["input"]["value"] == {"to": "ana"}
    assert opened["reason"] == {
        "type": "approvalRequired",
        "blockedStep": "send",
        "approvalId": opened["id"],
        "digest": call["input"]["digest"],
        "suggestedTool": "mail.post",
    }
    answers = opened["answers"]
    assert isinstance(answers, list)
    first = answers[0]
    assert isinstance(first, dict)
    assert isinstance(first["request"], dict)
    assert first["request"]["body"] == {"answer": "approve", "digest": call["input"]["digest"]}


@pytest.mark.req("W.2")
async def test_approved_it_is_called_once_and_names_its_grant(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(plan_of("Send it?")))
    pause = engine.inbox.only()
    await pause.approve(note="go", by="ana")
    task = await settled(engine, task)
    assert (task.status, world.sent) == ("completed", [("ana", "hi")])
    (who,) = [event.actor async for event in task.events(follow=False) if event.type == "pause.answered"]
    assert who == {"kind": "human", "id": "ana", "via": "python"}
    (started,) = await events(task, "attempt.started")
    assert started["approval"] == pause.id
    types = [event.type async for event in task.events(follow=False)]
    assert types[2:7] == ["step.started", "pause.opened", "task.paused", "pause.answered", "task.resumed"]


async def test_a_tool_that_asks_is_asked_about_whatever_the_plan_says(engine: TestEngine, world: World) -> None:
    plan = Plan.from_dict({"name": "p", "steps": [{"id": "wipe", "tool": "disk.wipe", "with": {"path": "x"}}]})
    task = await settled(engine, await engine.start(plan))
    pause = engine.inbox.only()
    assert (pause.title, pause.why, world.sent) == ("Run disk.wipe?", "the tool asks before disk.wipe", [])
    await pause.approve()
    assert (await settled(engine, task)).status == "completed"


async def test_in_finally_a_gated_call_is_not_made(engine: TestEngine, world: World) -> None:
    plan = Plan.from_dict({
        "name": "p",
        "steps": [{"id": "send", "tool": "mail.post", "with": {"to": "ana"}}],
        "finally": [{"id": "tidy", "tool": "disk.wipe", "with": {"path": "x"}}],
    })  # fmt: skip
    task = await settled(engine, await engine.start(plan))
    assert (task.status, task.outcome, world.sent) == ("completed", "partial", [("ana", "hello")])
    (failed,) = await events(task, "step.failed")
    assert isinstance(failed["error"], dict)
    assert failed["error"]["code"] == "approval_rejected"


# --- answers ---


@pytest.mark.req("W.2")
async def test_an_edit_is_validated_and_grants_the_edited_call(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(plan_of({"title": "Send?", "edit": ["text"]})))
    pause = engine.inbox.only()
    bad: list[JsonObject] = [{"to": "eve"}, {"text": 7}, {}]
    for wrong in bad:
        with pytest.raises(Validation) as refused:
            await pause.edit(wrong)
        assert refused.value.code == "answer_invalid"
    await pause.edit({"text": "edited"}, note="kinder")
    task = await settled(engine, task)
    assert (task.status, world.sent) == ("completed", [("ana", "edited")])
    (answered,) = await events(task, "pause.answered")
    (started,) = await events(task, "attempt.started")
    assert isinstance(started["input"], dict)
    assert answered["digest"] == started["input"]["digest"]
    assert answered["diff"] == [{"argument": "text", "from": "hi", "to": "edited"}]


async def test_edit_is_no_answer_where_nothing_may_be_edited(engine: TestEngine) -> None:
    await settled(engine, await engine.start(plan_of()))
    pause = engine.inbox.only()
    assert pause.answers == ("approve", "reject", "answer")
    with pytest.raises(Validation):
        await pause.edit({"text": "x"})


@pytest.mark.req("W.2")
@pytest.mark.parametrize(
    ("on_reject", "on_error", "status", "outcome"),
    [
        ("fail", "fail", "failed", None),
        ("fail", "continue", "completed", "partial"),
        ("skip", "fail", "completed", "partial"),
        ("fail", "pause", "paused", None),
        ("pause", "fail", "paused", None),
    ],
)
async def test_a_rejection_means_what_the_plan_says(
    engine: TestEngine, world: World, on_reject: str, on_error: str, status: str, outcome: str | None
) -> None:
    plan = plan_of({"title": "Send?", "on_reject": on_reject}, on_error=on_error, retry=3)
    task = await settled(engine, await engine.start(plan))
    with pytest.raises(Validation):
        await engine.inbox.only().reject("  ")
    await engine.inbox.only().reject("not now")
    task = await settled(engine, task, "10m")
    assert (task.status, task.outcome, world.sent) == (status, outcome, [])
    if status == "failed":
        assert task.error is not None
        assert task.error["code"] == "approval_rejected"
    if status == "paused":
        assert engine.inbox.only().type == "toolError"
        await engine.inbox.only().retry()
        await settled(engine, task)
        assert engine.inbox.only().type == "approvalRequired", "a retry asks anew"


async def test_an_answer_stands_for_the_call(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(plan_of()))
    with pytest.raises(Validation):
        await engine.inbox.only().answer("not an object")
    await engine.inbox.only().answer({"id": "by hand"})
    task = await settled(engine, task)
    assert (task.status, task.outputs, world.sent) == ("completed", {"id": "by hand"}, [])


@pytest.mark.req("W.2")
async def test_a_stale_click_is_a_conflict(engine: TestEngine, world: World) -> None:
    await settled(engine, await engine.start(plan_of()))
    pause = engine.inbox.only()
    who = Who(owner="local", actor=Actor(kind=ActorKind.HUMAN, id="ana", via="http"))
    with pytest.raises(Conflict) as stale:
        await engine.desk.answer(PauseId(pause.id), who, Reply(answer="approve", digest="sha256:other"))
    assert stale.value.code == "stale_digest"
    assert isinstance(stale.value.details["call"], dict)
    assert stale.value.details["call"]["arguments"] == {"to": "ana", "text": "hi"}
    with pytest.raises(Validation):
        await engine.desk.answer(PauseId(pause.id), who, Reply(answer="approve"))
    assert world.sent == []


@pytest.mark.req("W.2")
async def test_one_answer_wins_and_who_comes_late_learns_whose(engine: TestEngine, world: World) -> None:
    await settled(engine, await engine.start(plan_of()))
    pause = engine.inbox.only()
    assert pause.call is not None
    ana = Who(owner="local", actor=Actor(kind=ActorKind.HUMAN, id="ana", via="http"))
    said = Reply(answer="approve", digest=pause.call.input.digest)
    await engine.desk.answer(PauseId(pause.id), ana, said)
    await engine.clock.advance("1ms")
    before = len(world.sent)
    await engine.desk.answer(PauseId(pause.id), ana, said)
    for other in (replace(said, note="again"), replace(said, answer="reject", note="no")):
        with pytest.raises(Conflict, match="human ana has answered already: approve") as late:
            await engine.desk.answer(PauseId(pause.id), ana, other)
        assert late.value.code == "already_answered"
    with pytest.raises(Conflict, match="ana"):
        await pause.approve()
    assert len(world.sent) == before == 1


async def test_only_those_who_are_asked_may_answer(world: World) -> None:
    robot = Who(owner="local", actor=Actor(kind=ActorKind.LLM, id="claude", via="mcp"))

    async def ask(by: str, *, trusted: bool = True, named: bool = True) -> bool:
        config: JsonObject = {"policy": {"llm_approvals": ["mail.post"]}} if named else {}
        async with TestEngine(World().tools(), config=config) as engine:
            plan = plan_of({"title": "Send?", "by": by} if trusted else "Send?")
            plan.trusted = trusted
            await settled(engine, await engine.start(plan))
            pause = engine.inbox.only()
            assert pause.call is not None
            said = Reply(answer="approve", digest=pause.call.input.digest)
            try:
                await engine.desk.answer(PauseId(pause.id), robot, said)
            except NotAllowed as refused:
                return refused.code != "answer_not_allowed"
            return True

    assert not await ask("human")
    assert await ask("llm")
    assert await ask("anyone")
    assert not await ask("llm", named=False), "the operator has to name the tool"
    assert not await ask("llm", trusted=False)


# --- what one grant carries ---


async def test_one_grant_carries_retries_after_nothing_happened(engine: TestEngine, world: World) -> None:
    world.raises = [Transient("busy"), Transient("busy")]
    task = await settled(engine, await engine.start(plan_of()))
    await engine.inbox.only().approve()
    task = await settled(engine, task, "10m")
    assert (task.status, len(world.sent)) == ("completed", 3)
    assert len({str(one["approval"]) for one in await events(task, "attempt.started")}) == 1


async def test_a_retry_that_somebody_orders_asks_anew(engine: TestEngine, world: World) -> None:
    world.raises = [ToolError("half done", effect_state="made")]
    task = await settled(engine, await engine.start(plan_of(on_error="pause")))
    await engine.inbox.only().approve()
    await settled(engine, task)
    await engine.inbox.only().retry()
    task = await settled(engine, task)
    assert (engine.inbox.only().type, len(world.sent)) == ("approvalRequired", 1)
    await engine.inbox.only().approve()
    task = await settled(engine, task)
    first, second = await events(task, "attempt.started")
    assert (task.status, first["approval"] != second["approval"]) == ("completed", True)


@pytest.mark.parametrize("changed", ["version", "rules"])
async def test_another_version_of_the_tool_or_the_rules_voids_the_grant(world: World, changed: str) -> None:
    engine = TestEngine(world.tools())
    await engine.open()
    task = await settled(engine, await engine.start(plan_of()))
    await task.pause()
    await next(one for one in engine.inbox.all if one.type == "approvalRequired").approve()
    await engine.close()
    config: JsonObject = {}
    if changed == "version":
        world.version = "2"
    else:
        config = {"policy": {"llm_approvals": ["other.tool"]}}
    async with TestEngine(world.tools(), store=engine.store, seed=1, config=config) as later:
        task = await later.get(task.id)
        await task.resume()
        task = await settled(later, task)
        assert (task.status, later.inbox.only().type, world.sent) == ("paused", "approvalRequired", [])
        assert await later.store.check() == []


@pytest.mark.req("X.7")
async def test_an_approval_beside_a_pause_starts_nothing_before_resume(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(plan_of()))
    await task.pause()
    await task.pause()
    assert len(engine.inbox.all) == 2
    await next(one for one in engine.inbox.all if one.type == "approvalRequired").approve()
    await engine.crash(down="5s")
    task = await settled(engine, await engine.get(task.id), "5s")
    assert (task.status, world.sent) == ("paused", [])
    await task.resume()
    task = await settled(engine, task)
    assert (task.status, len(world.sent)) == ("completed", 1)
    (started,) = await events(task, "attempt.started")
    assert started["approval"] is not None


# --- one question for all items ---


def over(items: JsonValue, **keys: JsonValue) -> Plan:
    step: JsonObject = {
        "id": "send",
        "tool": "mail.post",
        "for_each": items,
        "with": {"to": "${item}"},
        "approve": "Send all?",
        **keys,
    }
    return Plan.from_dict({"name": "p", "steps": [step]})


async def test_items_are_asked_about_together_and_each_has_its_grant(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(over(["a", "b", "c"], parallel=2)))
    pause = engine.inbox.only()
    assert pause.call is not None
    assert pause.call.input.value == [{"to": "a"}, {"to": "b"}, {"to": "c"}]
    assert pause.answers == ("approve", "reject", "answer")
    world.raises = [Transient("busy")]
    await pause.approve()
    task = await settled(engine, task, "1m")
    assert (task.status, sorted(world.sent)) == (
        "completed",
        sorted([("a", "hello"), ("a", "hello"), ("b", "hello"), ("c", "hello")]),
    )
    assert {str(one["approval"]) for one in await events(task, "attempt.started")} == {pause.id}


async def test_many_items_are_kept_as_an_artifact_and_still_bound(engine: TestEngine, world: World) -> None:
    items: list[JsonValue] = [f"{n:0>1000}" for n in range(60)]
    task = await settled(engine, await engine.start(over(items)))
    await engine.crash()
    await engine.inbox.only().approve()
    task = await settled(engine, await engine.get(task.id))
    assert (task.status, len(world.sent)) == ("completed", 60)


async def test_rejecting_all_items_calls_none(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(over(["a", "b"])))
    await engine.inbox.only().reject("too many")
    task = await settled(engine, task)
    assert (task.status, world.sent) == ("failed", [])


async def test_an_item_that_is_tried_anew_is_asked_about_alone(engine: TestEngine, world: World) -> None:
    task = await settled(engine, await engine.start(over(["a", "b"], on_error="pause")))
    world.raises = [ToolError("half done", effect_state="made")]
    await engine.inbox.only().approve()
    await settled(engine, task)
    failed = engine.inbox.only()
    assert (failed.type, failed.step) == ("toolError", "send[0]")
    await failed.retry()
    await settled(engine, task)
    anew = engine.inbox.only()
    assert (anew.type, anew.step) == ("approvalRequired", "send[0]")
    assert anew.call is not None
    assert anew.call.input.value == {"to": "a"}
    await anew.approve()
    task = await settled(engine, task)
    assert (task.status, len(world.sent)) == ("completed", 3)


async def test_what_could_not_be_shown_is_not_granted(engine: TestEngine, world: World) -> None:
    field: JsonObject = {"with": {"to": "${item.to}"}}
    task = await settled(engine, await engine.start(over([{"to": "a"}, {}], **field)))
    pause = engine.inbox.only()
    assert pause.call is not None
    assert pause.call.input.value == [{"to": "a"}, None]
    await pause.approve()
    await settled(engine, task)
    blocked = engine.inbox.only()
    assert (blocked.type, blocked.step) == ("unresolvableParams", "send[1]")
    await blocked.supply_arguments({"to": "eve"})
    await settled(engine, task)
    assert (engine.inbox.only().type, world.sent) == ("approvalRequired", [("a", "hello")])


async def test_a_question_may_be_for_people_only(engine: TestEngine) -> None:
    step: JsonObject = {"id": "q", "tool": "ask", "with": {"question": "Colour?", "by": "human"}}
    await settled(engine, await engine.start(Plan.from_dict({"name": "p", "steps": [step]})))
    pause = engine.inbox.only()
    robot = Who(owner="local", actor=Actor(kind=ActorKind.LLM, id="claude", via="mcp"))
    assert pause.may_answer == ("human",)
    with pytest.raises(NotAllowed):
        await engine.desk.answer(PauseId(pause.id), robot, Reply(answer="answer", value="blue"))
    await pause.answer("blue")


async def test_a_question_of_any_size_fits_its_event(engine: TestEngine, world: World) -> None:
    huge = "x" * 100_000
    asks: JsonObject = {"title": "Send ${inputs.text}?", "show": ["${inputs.text}"]}
    step: JsonObject = {
        "id": "send",
        "tool": "mail.post",
        "with": {"to": "a", "text": "${inputs.text}"},
        "approve": asks,
    }
    plan = Plan.from_dict({"name": "p", "inputs": {"text": "string"}, "steps": [step]})
    task = await settled(engine, await engine.start(plan, {"text": huge}))
    pause = engine.inbox.only()
    assert (len(pause.title), pause.show) == (500, ("(too large to be shown; look at the call)",))
    await pause.approve()
    assert ((await settled(engine, task)).status, world.sent) == ("completed", [("a", huge)])


async def test_a_crash_inside_an_approved_call_does_not_use_the_grant_up(world: World) -> None:
    async with TestEngine(world.tools()) as engine:
        task = await settled(engine, await engine.start(plan_of()))
        world.holds = asyncio.Event()
        await engine.inbox.only().approve()
        await settled(engine, task)
        await engine.crash()
        world.holds = None
        task = await settled(engine, await engine.get(task.id))
        assert engine.inbox.only().type == "uncertainOutcome"
        await engine.inbox.only().not_happened()
        task = await settled(engine, task)
        assert task.status == "completed"
        assert len({str(one["approval"]) for one in await events(task, "attempt.started")}) == 1
