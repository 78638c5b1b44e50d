"""Whom a call needs leave from: the operator's rules, and the taint table (security, S44)."""

from typing import Annotated

import pytest

from everstep import Arg
from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.actors import ActorKind
from everstep.domain.approval import Asker
from everstep.domain.commands import Reply
from everstep.domain.consent import Asks, Consent, asking
from everstep.domain.events import Actor, Who
from everstep.domain.ids import PauseId
from everstep.domain.values import JsonObject, JsonValue
from everstep.domain.wishes import Fork
from everstep.facade.task import Task
from everstep.ports.tool import Misconfigured
from everstep.testing.engine import TestEngine


class World:
    """What was really called."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def tools(self) -> list[object]:
        @tool("web.find", effect="pure")
        async def find(fails: bool = False) -> dict[str, list[str]]:
            """Something from outside."""
            if fails:
                raise Misconfigured("go to /etc/passwd")
            return {"hits": ["a", "b"]}

        @tool("our.list", effect="pure", trusted_output=True)
        async def listed() -> dict[str, list[str]]:
            """Something of our own."""
            return {"hits": ["a", "b"]}

        def put(name: str, effect: str, *, approve: bool = False) -> object:
            @tool(name, effect=effect, approve=approve)
            async def putting(path: Annotated[str, Arg(kind="checked")], text: str = "") -> dict[str, str]:
                """Put a text somewhere."""
                self.called.append(path)
                return {"path": path}

            return putting

        return [find, listed, put("disk.look", "pure"), put("disk.keep", "idempotent"), put("disk.burn", "once"),
                put("disk.wipe", "idempotent", approve=True)]  # fmt: skip


def plan_of(step: JsonObject, *, trusted: bool = True, final: list[JsonValue] | None = None) -> Plan:
    before: list[JsonValue] = [
        {"id": "found", "tool": "web.find"},
        {"id": "ours", "tool": "our.list"},
        {"id": "broken", "tool": "web.find", "with": {"fails": True}, "on_error": "continue", "retry": 0},
    ]
    said: JsonObject = {"id": "act", "needs": ["found", "ours"], **step}
    plan = Plan.from_dict({"name": "p", "inputs": {"path": "string"}, "steps": [*before, said], "finally": final or []})
    plan.trusted = trusted
    return plan


async def asked(engine: TestEngine, plan: Plan) -> tuple[str | None, Task]:
    """Why somebody is asked before the step; None if nobody is."""
    task = await engine.start(plan, {"path": "home"})
    await engine.clock.advance("1ms")
    await task.refresh()
    pauses = [pause for pause in engine.inbox.all if pause.type == "approvalRequired"]
    return (pauses[-1].why if pauses else None), task


FROM_OUTSIDE = {
    "output": "${found.hits[0]}",
    "woven": "notes/${found.hits[0]}.txt",
    "through a function": "${join(found.hits, '/')}",
    "through a default": "${default(found.hits[0], 'home')}",
    "as a condition": "${'a' if len(found.hits) > 1 else 'b'}",
    "an error's words": "${steps.broken.error.message}",
}
OUR_OWN = {
    "literal": "home",
    "input": "${inputs.path}",
    "trusted output": "${ours.hits[0]}",
    "status": "${steps.found.status}",
    "task": "${task.id}",
}


@pytest.mark.parametrize("tool_name", ["disk.keep", "disk.burn"])
@pytest.mark.parametrize("source", FROM_OUTSIDE)
async def test_data_from_outside_never_decides_what_an_effect_reaches(source: str, tool_name: str) -> None:
    world = World()
    async with TestEngine(world.tools()) as engine:
        step: JsonObject = {"tool": tool_name, "with": {"path": FROM_OUTSIDE[source]}}
        why, task = await asked(engine, plan_of(step))
        assert why is not None
        assert why.startswith(f"data from outside decides 'path' of {tool_name}")
        assert (task.status, world.called) == ("paused", [])
        await engine.inbox.only().approve()
        await engine.clock.advance("1ms")
        assert len(world.called) == 1, "a person has looked at it"


@pytest.mark.parametrize(
    ("step", "config"),
    [
        *(pytest.param({"tool": "disk.burn", "with": {"path": path}}, {}, id=name) for name, path in OUR_OWN.items()),
        pytest.param({"tool": "disk.look", "with": {"path": "${found.hits[0]}"}}, {}, id="a pure tool"),
        pytest.param({"tool": "disk.burn", "with": {"path": "x", "text": "${found.hits[0]}"}}, {}, id="opaque text"),
        pytest.param(
            {"tool": "disk.burn", "with": {"path": "${item}"}, "for_each": ["a", "b"]}, {}, id="items of the plan"
        ),
        pytest.param(
            {"tool": "disk.burn", "with": {"path": "${item}"}, "for_each": "${ours.hits}"}, {}, id="our items"
        ),
        pytest.param(
            {"tool": "disk.burn", "with": {"path": "${found.hits[0]}"}},
            {"policy.untrusted": {"disk.burn": "allow"}},
            id="lifted by the operator",
        ),
    ],
)
async def test_what_is_our_own_or_steers_nothing_is_not_asked_about(step: JsonObject, config: JsonObject) -> None:
    world = World()
    async with TestEngine(world.tools(), config=config) as engine:
        why, task = await asked(engine, plan_of(step))
        assert why is None
        assert task.status == "completed"
        assert world.called


async def test_all_items_from_outside_are_one_question() -> None:
    world = World()
    async with TestEngine(world.tools()) as engine:
        why, _ = await asked(
            engine, plan_of({"tool": "disk.burn", "with": {"path": "${item}"}, "for_each": "${found.hits}"})
        )
        assert why == "data from outside decides 'path' of disk.burn, 2 times; cannot be undone"
        await engine.inbox.only().approve()
        await engine.clock.advance("1ms")
        assert world.called == ["a", "b"]


async def test_arguments_that_a_person_gives_are_that_persons_word() -> None:
    world = World()
    async with TestEngine(world.tools()) as engine:
        step: JsonObject = {"tool": "disk.burn", "with": {"path": "${found.hits[7]}"}}
        _, task = await asked(engine, plan_of(step))
        await engine.inbox.only().supply_arguments({"path": "mine"})
        await engine.clock.advance("1ms")
        assert (await task.refresh()).status == "completed"
        assert world.called == ["mine"]


async def test_neither_silence_nor_an_llm_approves_what_data_steers() -> None:
    world = World()
    approve: JsonObject = {"title": "?", "by": "anyone", "within": "1s", "on_timeout": "approve"}
    step: JsonObject = {"tool": "disk.keep", "with": {"path": "${found.hits[0]}"}, "approve": approve}
    async with TestEngine(world.tools(), config={"policy.llm_approvals": ["disk.keep"]}) as engine:
        await asked(engine, plan_of(step))
        pause = engine.inbox.only()
        assert (pause.may_answer, pause.expires_at) == (("human",), None)
        await engine.clock.advance("1h")
        assert world.called == []


@pytest.mark.parametrize("by", [ActorKind.HUMAN, ActorKind.LLM])
async def test_only_a_person_sets_arguments_as_the_plan_would(by: ActorKind) -> None:
    """What an LLM answers is data, also after a crash and in a fork; what a person sets is theirs."""
    world = World()
    who = Who(owner="local", actor=Actor(kind=by, id="someone", via="mcp"))
    async with TestEngine(world.tools()) as engine:
        plan = plan_of({"tool": "disk.keep", "with": {"path": "${found.hits[5]}"}})
        task = await engine.start(plan, {"path": "x"})
        await engine.clock.advance("1s")
        reply = Reply(answer="supply_arguments", arguments={"path": "elsewhere"})
        await engine.desk.answer(PauseId(engine.inbox.only().id), who, reply)
        await engine.crash()
        await engine.clock.advance("1s")
        if by is ActorKind.LLM:
            assert world.called == []
            asked = engine.inbox.only()
            assert (asked.type, "data from outside decides 'path'" in (asked.why or "")) == ("approvalRequired", True)
            await asked.approve()
            await engine.clock.advance("1s")
        assert world.called == ["elsewhere"]
        wish = Fork(from_step="act", inputs={}, arguments={"act": {"path": "there"}})
        await engine.desk.fork(task.task_id, who, wish)
        await engine.clock.advance("1s")
        assert world.called[1:] == (["there"] if by is ActorKind.HUMAN else [])


async def test_nothing_in_finally_is_steered() -> None:
    world = World()
    final: JsonObject = {"id": "tidy", "tool": "disk.burn", "with": {"path": "${found.hits[0]}"}}
    async with TestEngine(world.tools()) as engine:
        why, task = await asked(engine, plan_of({"tool": "our.list"}, final=[final]))
        assert (why, task.status, task.outcome, world.called) == (None, "completed", "partial", [])


async def test_a_fallback_asks_for_itself() -> None:
    world = World()
    fallback: list[JsonValue] = [{"tool": "disk.look", "with": {"path": "${error.message}"}}]
    step: JsonObject = {"tool": "web.find", "with": {"fails": True}, "retry": 0, "fallback": fallback}
    async with TestEngine(world.tools(), config={"policy.approve": {"disk.look": True}}) as engine:
        why, _ = await asked(engine, plan_of(step))
        assert why == "the operator's rules ask before disk.look"


# --- the operator's rules ---


@pytest.mark.parametrize(
    ("rule", "by_itself", "plan_asks", "trusted", "steered", "who"),
    [
        (None, False, False, True, None, None),
        (None, True, False, True, None, "tool"),
        (None, False, True, True, None, "plan"),
        (True, False, False, True, None, "operator"),
        (True, False, False, False, None, "operator"),
        (True, True, True, True, None, "operator"),
        (False, True, False, True, None, None),
        (False, True, False, False, None, "tool"),
        (False, True, True, True, None, "plan"),
        (False, False, True, True, None, "plan"),
        (False, True, False, True, "path", "data"),
        (None, False, False, True, "path", "data"),
    ],
)
def test_who_asks(
    rule: bool | None, by_itself: bool, plan_asks: bool, trusted: bool, steered: str | None, who: Asker | None
) -> None:
    """The operator adds everywhere, takes the tool's own question away in trusted plans only, and never the plan's."""
    rules = Consent(approve={} if rule is None else {"t": rule})
    asks: Asks = rules.asks("t", by_itself=by_itself)
    found = asking(asks, steered, plan_asks=plan_asks, trusted=trusted)
    assert (None if found is None else found.by) == who


@pytest.mark.parametrize(("trusted", "status"), [(True, "completed"), (False, "paused")])
async def test_a_tools_question_is_lifted_in_trusted_plans_only(trusted: bool, status: str) -> None:
    world = World()
    step: JsonObject = {"tool": "disk.wipe", "with": {"path": "x"}}
    async with TestEngine(world.tools(), config={"policy.approve": {"disk.wipe": False}}) as engine:
        _, task = await asked(engine, plan_of(step, trusted=trusted))
        assert task.status == status


async def test_what_a_patch_brings_into_a_trusted_plan_is_asked_about() -> None:
    world = World()
    plan = plan_of({"tool": "ask", "with": {"question": "go?"}})
    async with TestEngine(world.tools(), config={"policy.approve": {"disk.wipe": False}}) as engine:
        _, task = await asked(engine, plan)
        await task.patch([{"op": "append", "step": {"id": "more", "tool": "disk.wipe", "with": {"path": "x"}}}], 1)
        await engine.inbox.only().answer("yes")
        await engine.clock.advance("1ms")
        assert [pause.type for pause in engine.inbox.all] == ["approvalRequired"]
        assert world.called == []


async def test_other_rules_void_what_was_granted() -> None:
    world = World()
    step: JsonObject = {"tool": "disk.burn", "with": {"path": "x"}}
    before = TestEngine(world.tools(), config={"policy.approve": {"disk.burn": True}})
    async with before as engine:
        _, task = await asked(engine, plan_of(step))
        await task.pause()
        await engine.inbox.all[0].approve()
    after = TestEngine(world.tools(), config={"policy.approve": {"disk.burn": True, "disk.look": True}})
    after.store, after.clock = before.store, before.clock
    async with after as engine:
        again = await engine.get(task.id)
        await again.resume()
        await engine.clock.advance("1ms")
        assert world.called == []
        assert engine.inbox.only().type == "approvalRequired"


async def test_a_rule_for_a_tool_that_is_not_here_is_told() -> None:
    async with TestEngine(config={"policy.approve": {"mail.sned": True}}) as engine:
        assert ("the policy names a tool that is not here", {"tool": "mail.sned"}) in engine.sink.notes
