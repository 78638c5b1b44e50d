"""What is too long to be written down: the task goes on, or ends with a clear error; no carrier dies in silence."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from everstep.adapters.stores.memory import MemoryStore
from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.errors import LimitExceeded
from everstep.domain.events import PauseOpened
from everstep.domain.task import StepCommit
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.engine import Engine
from everstep.facade.task import Task
from everstep.ports.store import Committed, Stale
from everstep.ports.tool import Ctx, Misconfigured, NeedsInput, ToolError
from everstep.testing.engine import TestEngine
from everstep.testing.fakes import fake
from everstep.torture import checker

ITEMS = 400


def tools() -> list[object]:
    @tool("long.fails", effect="pure")
    async def fails(n: int = 0) -> int:
        """Fails, in many words."""
        raise Misconfigured(f"no {n} " * 40)

    @tool("long.details", effect="pure")
    async def details() -> int:
        """Fails, with more details than anybody reads."""
        raise ToolError("made, then broken", effect_state="made", details={str(n): "x" * 1900 for n in range(90)})

    @tool("long.asks", effect="pure")
    async def asks() -> int:
        """Asks, with a form that nobody could fill in."""
        raise NeedsInput("which?", schema={"enum": [f"choice {n}" for n in range(20_000)]})

    @tool("half.asks", effect="pure")
    async def half(ctx: Ctx) -> int:
        """Asks about a file whose name is no text."""
        if ctx.answer is None:
            raise NeedsInput("delete report \udcff.pdf?")
        return 1

    @tool("long.gives", effect="pure")
    async def gives() -> str:
        """Gives nearly as much as can be kept."""
        return "x" * 9_000_000

    @tool("long.waits", effect="once")
    async def waits() -> int:
        """Is still under way."""
        await asyncio.Event().wait()
        return 0

    return [fails, details, asks, half, gives, waits]


class Picky(MemoryStore):
    """Takes no question: every one is too long for it."""

    async def commit_steps(self, commits: Sequence[StepCommit]) -> Sequence[Committed | Stale]:
        if any(isinstance(draft.body, PauseOpened) for one in commits for draft in one.drafts):
            raise LimitExceeded("an event is over the limit")
        return await super().commit_steps(commits)


async def ended(plan: JsonObject, store: MemoryStore | None = None) -> tuple[Task, list[str]]:
    async with TestEngine(tools(), store=store) as engine:
        task = await engine.start(Plan.from_dict(plan))
        for _ in range(20):
            await engine.clock.advance("1s")
            if (await task.refresh()).status in ("completed", "failed", "cancelled"):
                break
        assert await engine.store.check() == []
        return task, [event.type async for event in task.events(follow=False)]


async def test_as_many_issues_are_told_as_fit() -> None:
    items: list[JsonValue] = list(range(ITEMS))
    step: JsonObject = {
        "id": "a", "tool": "long.fails", "for_each": items, "with": {"n": "${item}"}, "on_error": "continue",
    }  # fmt: skip
    task, _ = await ended({"name": "p", "steps": [step]})
    assert (task.status, task.outcome) == ("completed", "partial")
    issues = task._state.issues
    assert 20 < len(issues) < ITEMS
    assert issues[-1].reason == f"and {ITEMS + 2 - len(issues)} steps more: look at the steps"


async def test_a_failure_is_told_in_fewer_words_and_means_the_same() -> None:
    task, types = await ended({"name": "p", "steps": [{"id": "a", "tool": "long.details"}]})
    assert task.status == "failed"
    assert task.error is not None
    assert (task.error["message"], task.error["code"]) == ("made, then broken", "tool_error")
    assert "attempt.failed" in types


async def test_a_question_that_cannot_be_asked_is_a_bug_of_its_tool() -> None:
    task, _ = await ended({"name": "p", "steps": [{"id": "a", "tool": "long.asks"}]})
    assert task.status == "failed"
    assert task.error is not None
    assert (task.error["code"], task.error["category"]) == ("not_recordable", "internal")
    assert "which?" in str(task.error["message"])


async def test_a_question_about_a_file_whose_name_is_no_text_is_asked() -> None:
    async with TestEngine(tools()) as engine:
        task = await engine.start(Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "half.asks"}]}))
        await engine.clock.advance("1s")
        pause = engine.inbox.only()
        assert "udcff.pdf?" in str(pause.reason)
        await pause.answer(1)
        await engine.clock.advance("1s")
        assert (await task.refresh()).status == "completed"


async def test_a_list_that_cannot_be_kept_fails_its_step_and_no_item() -> None:
    task, types = await ended({"name": "p", "steps": [{"id": "a", "tool": "long.gives", "for_each": [1, 2]}]})
    assert task.status == "failed"
    assert task.error is not None
    assert (task.error["code"], task.error["category"]) == ("limit_output", "resource")
    assert types.count("step.completed") == 2


@pytest.mark.parametrize("beside", [False, True])
async def test_a_task_that_cannot_go_on_says_so_and_what_was_under_way(beside: bool) -> None:
    steps: list[JsonValue] = [{"id": "a", "tool": "long.waits", "needs": []}] if beside else []
    steps.append({"id": "x", "tool": "json.pick", "with": {"value": {"k": 1}, "pointer": "/k"}, "needs": []})
    steps.append({"id": "b", "tool": "long.gives", "needs": ["x"], "approve": True})
    task, types = await ended({"name": "p", "parallel": 3, "steps": steps}, Picky())
    assert task.status == "failed"
    assert task.error is not None
    assert (task.error["code"], task.error["category"]) == ("not_recordable", "internal")
    assert "over the limit" in str(task.error["message"])
    assert [issue.step for issue in task._state.issues if issue.status == "uncertain"] == (["a"] if beside else [])
    assert types[-1] == "task.failed"


def wide(shelves: int) -> Plan:
    """As many calls at the same time as may be, with names as long as they come."""
    steps: list[JsonValue] = [
        {
            "id": f"fetch_all_the_pages_of_the_public_archive_of_shelf_{n:02d}",
            "tool": "wide.fetch",
            "for_each": [*range(64)],
            "parallel": 64,
            "needs": [],
        }
        for n in range(shelves)
    ]
    return Plan.from_dict({"name": "wide", "parallel": shelves, "steps": steps})


async def test_a_task_with_a_thousand_calls_in_flight_is_taken_up_again() -> None:
    fetch = fake(effect="pure", delay="20s", returns=1)
    engine = TestEngine({"wide.fetch": fetch})
    await engine.open()
    task = await engine.start(wide(16))
    await engine.clock.advance("2s")
    assert fetch.count == 16 * 64
    await engine.crash()
    await engine.clock.advance("2m")
    assert (await engine.get(task.id)).status == "completed"
    await engine.close()


@pytest.mark.parametrize("first", ["pause", "nothing"])
async def test_a_task_with_a_thousand_calls_in_flight_can_be_paused_and_cancelled(first: str, tmp_path: Path) -> None:
    begun: list[int] = []
    all_begun = asyncio.Event()

    @tool("wide.fetch", effect="pure")
    async def fetch() -> None:
        """Takes its time."""
        begun.append(1)
        if len(begun) == 24 * 64:
            all_begun.set()
        await asyncio.Event().wait()

    store = tmp_path / "everstep.db"
    async with Engine(store, tools=[fetch]) as engine:
        task = await engine.start(wide(24))
        await asyncio.wait_for(all_begun.wait(), 60)
        if first == "pause":
            await task.pause()
        await task.cancel()
        assert (await asyncio.wait_for(task.result(), 60)).status == "cancelled"
        assert {step.status.value for step in (await task.refresh()).steps.values()} == {"skipped"}
    assert [violation._asdict() for violation in checker.check(store)] == []
