"""A step with resources beside its call: what is read, in which order, and that no read ever repeats the call."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine, Misconfigured, Plan, PlanError, Transient, tool
from everstep.bootstrap import Source
from everstep.domain.ids import StepPath
from everstep.domain.pauses import ToolErrorPause
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.testing import TestEngine
from everstep.torture import checker


class Library:
    """A tool that acts once, texts that can be read, and what happened in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.reached = asyncio.Event()
        self.held: str | None = None

    def all(self) -> list[object]:
        @tool("send")
        async def send(text: str) -> dict[str, str]:
            """Send a text"""
            await self._do("send")
            return {"receipt": f"r-{text}"}

        async def about(name: str) -> str:
            await self._do(name)
            return f"About {name}."

        return [send, Source(template="docs://all/{name}", function=about)]

    async def _do(self, what: str) -> None:
        self.calls.append(what)
        if what == self.held:
            self.reached.set()
            await asyncio.Event().wait()
        if what in self.fails:
            raise self.fails[what]


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
async def engine(library: Library) -> AsyncIterator[TestEngine]:
    async with TestEngine(library.all()) as opened:
        yield opened
        assert await opened.store.check() == [], "rows follow from journals"


def sending(**keys: Any) -> Plan:
    """Read how the house writes, send, read what was sent."""
    sent = {"uri": "docs://all/{number}", "vars": {"number": "${sent.receipt}"}}
    step: Any = {"id": "s", "bind": "sent", "tool": "send", "with": {"text": "a"}}
    step["resources"] = ["docs://all/house", sent]
    return Plan.from_dict({"name": "p", "steps": [{**step, **keys}], "outputs": {"all": "${sent}"}})


async def finish(engine: TestEngine, task: Task) -> Result:
    waiting = asyncio.create_task((await task.refresh()).result(on_pause="return"))
    await engine.clock.advance("10m")
    return await asyncio.wait_for(waiting, 60)


async def statuses(task: Task) -> dict[str, str]:
    return {path: step.status.value for path, step in (await task.refresh()).steps.items()}


ALL_DONE = {"s": "completed", "s[before]": "completed", "s[call]": "completed", "s[after]": "completed"}


async def test_it_reads_calls_and_reads_and_gives_what_the_call_gave(engine: TestEngine, library: Library) -> None:
    task = await engine.start(sending())
    assert (await finish(engine, task)).outputs == {"all": {"receipt": "r-a"}}
    assert library.calls == ["house", "send", "r-a"]
    assert await statuses(task) == ALL_DONE
    read = task.steps["s[after]"].output  # type: ignore[index]
    assert read is not None
    assert read.value == {"contents": [{"uri": "docs://all/r-a", "media_type": "text/plain", "text": "About r-a."}]}


@pytest.mark.parametrize(
    ("resources", "parts"), [(["docs://all/house"], {"s[before]"}), (["docs://all/${sent.receipt}"], {"s[after]"})]
)
async def test_only_the_parts_that_are_there_are_steps(
    engine: TestEngine, resources: list[str], parts: set[str]
) -> None:
    task = await engine.start(sending(resources=resources))
    assert (await finish(engine, task)).status == "completed"
    assert {*await statuses(task)} == {"s", "s[call]", *parts}


@pytest.mark.req("EXEC-01.b", "EXEC-02.g")
async def test_a_read_that_fails_after_the_call_is_asked_about_and_repeats_only_itself(
    engine: TestEngine, library: Library
) -> None:
    library.fails["r-a"] = Misconfigured("gone")
    task = await engine.start(sending(on_error="pause"))
    assert (await finish(engine, task)).status == "paused"
    pause = engine.inbox.only()
    assert pause.reason == ToolErrorPause(
        failed_step=StepPath("s[after]"), error="gone", retryable=False, suggested_tool="resource.read"
    )
    library.fails.clear()
    await pause.retry()
    assert (await finish(engine, task)).status == "completed"
    assert library.calls == ["house", "send", "r-a", "r-a"]


async def test_a_read_that_fails_before_the_call_keeps_it_from_being_made(engine: TestEngine, library: Library) -> None:
    library.fails["house"] = Misconfigured("gone")
    task = await engine.start(sending())
    result = await finish(engine, task)
    assert (result.status, result.error and result.error["message"]) == ("failed", "gone")
    assert library.calls == ["house"]


async def test_a_read_has_retries_of_its_own(engine: TestEngine, library: Library) -> None:
    library.fails["r-a"] = Transient("later")
    task = await engine.start(sending(retry=2))
    assert (await finish(engine, task)).status == "failed"
    assert library.calls == ["house", "send", "r-a", "r-a", "r-a"]


async def test_going_back_to_a_step_whose_read_failed_does_not_call_again(engine: TestEngine, library: Library) -> None:
    """And needs no leave for it: nothing would be done twice."""
    library.fails["r-a"] = Misconfigured("gone")
    task = await engine.start(sending())
    assert (await finish(engine, task)).status == "failed"
    library.fails.clear()
    forked = await task.fork("s")
    assert (await finish(engine, forked)).outputs == {"all": {"receipt": "r-a"}}
    await task.retry()
    assert (await finish(engine, task)).status == "completed"
    assert library.calls == ["house", "send", "r-a", "r-a", "r-a"]


@pytest.mark.parametrize("held", ["house", "r-a"])
async def test_a_crash_in_a_read_repeats_that_read_and_nothing_else(
    engine: TestEngine, library: Library, held: str
) -> None:
    library.held = held
    task = await engine.start(sending())
    await library.reached.wait()
    library.held = None
    await engine.crash(down="5m")
    task = await engine.get(task.id)
    assert (await finish(engine, task)).status == "completed"
    assert sorted(library.calls) == sorted(["house", "send", "r-a", held])


async def test_a_crash_in_the_call_asks_about_the_call(engine: TestEngine, library: Library) -> None:
    library.held = "send"
    task = await engine.start(sending())
    await library.reached.wait()
    await engine.crash(down="5m")
    task = await engine.get(task.id)
    assert (await finish(engine, task)).status == "paused"
    pause = engine.inbox.only()
    assert (pause.type, pause.step) == ("uncertainOutcome", "s[call]")
    await pause.happened({"receipt": "r-a"})
    assert (await finish(engine, task)).outputs == {"all": {"receipt": "r-a"}}
    assert library.calls == ["house", "send", "r-a"]


async def test_only_the_call_is_asked_about(engine: TestEngine, library: Library) -> None:
    """What was read stands by then; a call that is refused ends the step."""
    task = await engine.start(sending(approve={"title": "Send?", "on_reject": "skip"}))
    await finish(engine, task)
    pause = engine.inbox.only()
    assert (pause.type, pause.step, library.calls) == ("approvalRequired", "s[call]", ["house"])
    await pause.reject("no")
    await finish(engine, task)
    assert (await statuses(task))["s"] == "skipped"
    assert library.calls == ["house"]


async def test_a_read_that_somebody_skips_does_not_hold_the_call_up(engine: TestEngine, library: Library) -> None:
    library.fails["house"] = Misconfigured("gone")
    task = await engine.start(sending(on_error="pause"))
    await finish(engine, task)
    await engine.inbox.only().skip()
    assert (await finish(engine, task)).status == "completed"
    assert library.calls == ["house", "send", "r-a"]


async def test_on_a_file_after_a_failed_read_and_a_retry_the_checker_is_silent(
    tmp_path: Path, library: Library
) -> None:
    store = tmp_path / "tasks.db"
    library.fails["r-a"] = Misconfigured("gone")
    async with Engine(store, tools=library.all()) as engine:
        task = await engine.start(sending())
        assert (await task.result()).status == "failed"
        library.fails.clear()
        await task.retry()
        assert (await task.result()).outputs == {"all": {"receipt": "r-a"}}
    assert library.calls == ["house", "send", "r-a", "r-a"]
    assert [violation._asdict() for violation in checker.check(store)] == []


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"for_each": [1, 2]}, "plan.key_conflict"),
        ({"resources": ["dcos://all/x"]}, "plan.unknown_resource"),
        ({"resources": ["docs://all/${nobody.x}"]}, "plan.unknown_reference"),
    ],
)
async def test_what_cannot_be_read_is_refused_before_anything_starts(
    engine: TestEngine, library: Library, keys: dict[str, Any], code: str
) -> None:
    with pytest.raises(PlanError) as refusal:
        await engine.start(sending(**keys))
    assert code in [problem.code for problem in refusal.value.problems]
    assert library.calls == []
