"""Function tools, called as the engine calls them."""

import asyncio
import contextvars
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest

from everstep.adapters.threads import Threads
from everstep.adapters.tools.function import FunctionAdapter
from everstep.authoring.tool import FunctionTool, tool
from everstep.domain.failure import Category, EffectState
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.function import ProbeAnswer
from everstep.ports.tool import Call, Ctx, Health, Prior
from tests.unit.contexts import call_of, context

THREADS = Threads()


def adapter_of(made: FunctionTool[..., Any]) -> FunctionAdapter:
    return FunctionAdapter(made.served, threads=THREADS)


async def called(made: FunctionTool[..., Any], arguments: JsonObject, ctx: Ctx | None = None) -> JsonValue:
    return await adapter_of(made).execute(call_of(made.spec.name, arguments), ctx or context())


class Colour(Enum):
    RED = "red"


@dataclass
class Page:
    text: str
    at: datetime
    colour: Colour = Colour.RED


@tool("page.later")
async def later(page: Page, at: datetime | None = None) -> Page:
    assert isinstance(page, Page)
    return Page(page.text.upper(), at or page.at, page.colour)


async def test_arguments_and_results_are_converted() -> None:
    page: JsonObject = {"text": "a", "at": "2026-01-31T12:00:00Z"}
    expected = {"text": "A", "at": "2026-01-31T12:00:00+00:00", "colour": "red"}
    assert await called(later, {"page": page}) == expected
    assert await called(later, {"page": page, "at": "2027-01-31T12:00:00Z"}) == expected | {
        "at": "2027-01-31T12:00:00+00:00"
    }
    assert page == {"text": "a", "at": "2026-01-31T12:00:00Z"}, "the recorded arguments stay as they are"


def test_values_that_fit_only_the_schema_are_problems() -> None:
    adapter = adapter_of(later)
    assert adapter.validate(call_of("page.later", {"page": {"text": "a", "at": "2026-01-31T12:00:00Z"}})) == []
    bad: JsonObject = {"page": {"text": "a", "at": "yesterday"}, "at": "2026-01-31T12:00:00"}
    problems = dict(adapter.validate(call_of("page.later", bad)))
    assert problems.keys() == {"/page", "/at"}
    assert "yesterday" in problems["/page"]


async def test_blocking_functions_work_in_a_thread_with_their_context() -> None:
    place: contextvars.ContextVar[str] = contextvars.ContextVar("place")

    @tool("a.b")
    def work(n: int, ctx: Ctx) -> dict[str, Any]:
        return {"n": n, "thread": threading.current_thread().name, "place": place.get(), "step": ctx.step_id}

    place.set("here")
    result = await called(work, {"n": 3})
    assert isinstance(result, dict)
    assert str(result.pop("thread")).startswith("everstep-call")
    assert result == {"n": 3, "place": "here", "step": "step"}


async def test_sys_exit_ends_the_call_not_the_engine() -> None:
    @tool("a.b")
    async def leave() -> None:
        raise SystemExit(2)

    with pytest.raises(RuntimeError, match=r"it called sys.exit\(2\)"):
        await called(leave, {})


async def test_exceptions_pass_unchanged() -> None:
    @tool("a.b")
    async def fail() -> None:
        raise KeyError("id")

    with pytest.raises(KeyError):
        await called(fail, {})
    assert adapter_of(fail).classify(KeyError("id")) is None


class ReadTimeout(Exception):
    __module__ = "httpx._exceptions"


class Throttled(Exception):
    retry_after = 1.5


def test_named_classes_mean_their_category() -> None:
    made = tool("a.b", transient=(Throttled, ReadTimeout), configuration=(LookupError,))(lambda: None)
    adapter = adapter_of(made)
    throttled = adapter.classify(Throttled("slow down"))
    assert throttled is not None
    assert (throttled.category, throttled.effect_state) == (Category.TRANSIENT, EffectState.NONE)
    assert (throttled.code, throttled.message, throttled.retry_after_ms) == ("tool_transient", "slow down", 1500)
    assert throttled.what_to_do
    unclear = adapter.classify(ReadTimeout())
    assert unclear is not None
    assert unclear.effect_state is EffectState.UNKNOWN, "a known client's class keeps its column"
    missing = adapter.classify(KeyError("x"))
    assert missing is not None
    assert missing.category is Category.CONFIGURATION
    assert adapter.classify(ValueError()) is None


async def test_authors_functions_are_asked() -> None:
    seen: list[str] = []

    async def probe(call: Call) -> ProbeAnswer:
        seen.append(call.idempotency_key)
        return "done", Page("a", datetime(2026, 1, 31, tzinfo=UTC))

    made = tool(
        "a.b",
        effect="verifiable",
        probe=probe,
        estimate=lambda _call: Prior(p10_s=1, p50_s=2, p90_s=3),
        health=lambda: Health(status="degraded"),
    )(lambda: None)
    adapter = adapter_of(made)
    call = call_of("a.b", {}, key="k1")
    assert adapter.tools() == (made.spec,)
    found = await adapter.probe(call)
    assert (found.result, seen) == ("done", ["k1"])
    assert found.output == {"text": "a", "at": "2026-01-31T00:00:00+00:00", "colour": "red"}
    assert adapter.estimate(call) == Prior(p10_s=1, p50_s=2, p90_s=3)
    assert (await adapter.health()).status == "degraded"


async def test_a_probe_that_did_not_find_it() -> None:
    made = tool("a.b", effect="verifiable", probe=lambda _call: "not_done")(lambda: None)
    assert (await adapter_of(made).probe(call_of("a.b", {}))).result == "not_done"


async def test_safe_answers_where_nothing_was_said() -> None:
    adapter = adapter_of(later)
    call = call_of("page.later", {})
    assert (await adapter.probe(call)).result == "unknown"
    assert (await adapter.health()).status == "unknown"
    assert adapter.estimate(call) is None
    assert adapter.effect_of(call) is None


async def test_a_call_costs_little_more_than_the_function() -> None:
    @tool.pure("a.b")
    async def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    adapter, call, ctx = adapter_of(add), call_of("a.b", {"a": 1, "b": 2}), context()
    arguments: dict[str, Any] = call.arguments

    def frames(coroutine: Any) -> int:
        """How many Python functions it takes; work is counted, because time on a busy machine says nothing."""
        entered: list[str] = []
        sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
        try:
            coroutine.send(None)
        except StopIteration:
            pass
        finally:
            sys.setprofile(None)
        return len(entered)

    assert frames(adapter.execute(call, ctx)) - frames(add.served.call(**arguments)) <= 4


async def test_calls_are_independent() -> None:
    @tool("a.b")
    def echo(n: int) -> int:
        return n

    results = await asyncio.gather(*(called(echo, {"n": n}) for n in range(50)))
    assert results == list(range(50))
