"""How often a real server is called: by category, with waits that hold, and one refresh for all."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest

from everstep import Engine, Plan, Task, tool
from everstep.domain.values import JsonObject, JsonValue
from tests.e2e.rig import Rig, rig

FAST: dict[str, JsonValue] = {"retry.delay": "10ms", "retry.max_delay": "40ms"}


@pytest.fixture
async def server() -> AsyncIterator[Rig]:
    async with rig() as made:
        yield made


@pytest.fixture
async def engine(server: Rig, tmp_path: Path) -> AsyncIterator[Engine]:
    async with Engine(tmp_path / "everstep.db", tools=server.tools(), config=FAST) as opened:
        yield opened


def plan_of(**keys: JsonValue) -> Plan:
    step: JsonObject = {"id": "a", "tool": "rig.get", "with": {"path": "/x"}, **keys}
    return Plan.from_dict({"name": "p", "steps": [step], "outputs": {"a": "${a}"}})


async def code_of(task: Task) -> tuple[str, str]:
    await task.refresh()
    assert task.error is not None
    return str(task.error["category"]), str(task.error["code"])


@pytest.mark.req("W.4", "2.5", "L.1", "E.1", "8.1")
@pytest.mark.parametrize(
    ("word", "code", "calls"),
    [("503", "http_503", 4), ("reset", "net_reset", 4), ("tarpit", "timeout", 4)],
)
async def test_transient_failures_are_called_four_times(
    engine: Engine, server: Rig, word: str, code: str, calls: int
) -> None:
    server.script["/x"] = [word]
    task = await engine.start(plan_of(timeout="100ms"))
    assert (await task.result()).status == "failed"
    assert server.calls["/x"] == calls
    assert await code_of(task) == ("transient", code)
    told = [dict(event.data) async for event in task.events(follow=False) if event.type == "step.retry_scheduled"]
    waits = [cast("dict[str, Any]", one["retry"]) for one in told]
    assert [(wait["count"], wait["max"], bool(wait["next_at"])) for wait in waits] == [(n, 3, True) for n in (1, 2, 3)]


@pytest.mark.req("W.4", "L.2", "L.5", "E.2", "E.3", "E.5")
@pytest.mark.parametrize(("word", "category"), [("422", "configuration"), ("409", "logic"), ("401", "permission")])
async def test_what_will_not_pass_by_itself_is_called_once(
    engine: Engine, server: Rig, word: str, category: str
) -> None:
    server.script["/x"] = [word]
    task = await engine.start(plan_of())
    assert (await task.result()).status == "failed"
    assert server.calls["/x"] == 1
    assert await code_of(task) == (category, f"http_{word}")


@pytest.mark.req("L.2")
async def test_corrected_arguments_resume_the_same_step(engine: Engine, server: Rig) -> None:
    server.script["/x"] = ["422"]
    task = await engine.start(plan_of(on_error="pause"))
    assert (await task.result(on_pause="return")).status == "paused"
    assert server.calls["/x"] == 1
    (pause,) = await engine.inbox()
    await pause.retry_with({"path": "/y"})
    assert (await task.result()).outputs == {"a": 200}
    assert (server.calls["/x"], server.calls["/y"]) == (1, 1)


@pytest.mark.req("8.2")
async def test_retry_after_is_honoured(engine: Engine, server: Rig) -> None:
    server.script["/x"] = ["503 1", "200"]
    assert (await (await engine.start(plan_of())).result()).status == "completed"
    first, second = server.at["/x"]
    assert second - first >= 1.0


@pytest.mark.req("8.2", "L.1")
async def test_the_gaps_grow_within_their_bounds(engine: Engine, server: Rig) -> None:
    server.script["/x"] = ["503"]
    retry: JsonValue = {"times": 3, "delay": "100ms", "max_delay": "300ms"}
    await (await engine.start(plan_of(retry=retry))).result()
    at = server.at["/x"]
    for gap, ceiling in zip((b - a for a, b in pairwise(at)), (0.1, 0.2, 0.3), strict=True):
        assert ceiling / 2 <= gap, "never sooner than half the backoff"


def private(**keys: JsonValue) -> Plan:
    return Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "rig.private", "with": {}, **keys}]})


@pytest.mark.req("L.3")
async def test_one_refresh_serves_three_tasks_and_each_succeeds_on_its_second_call(engine: Engine, server: Rig) -> None:
    for token in (1, 2):  # the second time every token has expired again
        server.good = token
        server.calls.clear()
        tasks = [await engine.start(private()) for _ in range(3)]
        assert [(await task.result()).status for task in tasks] == ["completed"] * 3
        assert server.calls["refresh"] == 1
        for task in tasks:
            await task.refresh()
            (step,) = task.steps.values()
            assert step.attempts <= 2
        assert server.calls["/private"] == sum(one.attempts for task in tasks for one in task.steps.values())


@pytest.mark.req("L.3")
async def test_a_refresh_in_flight_is_waited_for_not_repeated(engine: Engine, server: Rig) -> None:
    server.before_401 = asyncio.Event()
    tasks = [await engine.start(private()) for _ in range(3)]
    await server.refused(3)
    server.before_401.set()
    for task in tasks:
        assert (await task.result()).status == "completed"
    assert (server.calls["refresh"], server.calls["/private"]) == (1, 6)


@pytest.mark.req("L.3", "E.3")
@pytest.mark.parametrize(("keys", "refreshes"), [({}, 1), ({"retry": 0}, 0)])
async def test_without_a_new_token_there_is_no_second_call(
    engine: Engine, server: Rig, keys: JsonObject, refreshes: int
) -> None:
    server.refresh_fails = True
    task = await engine.start(private(**keys))
    assert (await task.result()).status == "failed"
    assert (server.calls["/private"], server.calls["refresh"]) == (1, refreshes)


@pytest.mark.req("L.3")
async def test_a_renewed_token_that_is_refused_too_ends_it(engine: Engine, server: Rig) -> None:
    server.never_good = True
    assert (await (await engine.start(private())).result()).status == "failed"
    assert (server.calls["/private"], server.calls["refresh"]) == (2, 1)


@pytest.mark.req("E.2")
async def test_a_missing_program_is_a_matter_of_configuration(tmp_path: Path) -> None:
    @tool("run.it", effect="pure")
    async def run_it() -> int:
        """Run a program that is not there."""
        process = await asyncio.create_subprocess_exec(str(tmp_path / "nothing"))
        return await process.wait()

    async with Engine(tmp_path / "everstep.db", tools=[run_it], config=FAST) as engine:
        task = await engine.start(Plan.from_dict({"name": "p", "steps": [{"id": "a", "tool": "run.it", "with": {}}]}))
        assert (await task.result()).status == "failed"
        assert await code_of(task) == ("configuration", "os_missing")
        await task.refresh()
        assert next(iter(task.steps.values())).attempts == 1


DENIED = """
import asyncio, os, sys
from pathlib import Path
from everstep import Plan
from everstep.testing import TestEngine

async def main():
    async with TestEngine(workspace=Path(sys.argv[1])) as engine:
        steps = [{"id": "a", "tool": "file.read", "with": {"path": "mine.txt"}}]
        plan = Plan.from_dict({"name": "p", "steps": steps})
        await (await engine.start(plan)).result()  # now everything is loaded
        if os.getuid() == 0:
            os.setgroups([]), os.setgid(65534), os.setuid(65534)
        error = (await (await engine.start(plan)).result()).error
        print(error["category"], error["code"])

asyncio.run(main())
"""


@pytest.mark.req("E.3")
def test_a_file_that_may_not_be_read_is_a_matter_of_permission() -> None:
    """As somebody who is not root."""
    with TemporaryDirectory(dir="/tmp") as folder:
        file = Path(folder, "mine.txt")
        file.write_text("secret")
        file.chmod(0)
        file.parent.chmod(0o755)
        done = subprocess.run([sys.executable, "-c", DENIED, folder], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["permission", "os_denied"], done.stderr


@pytest.mark.req("8.3")
async def test_an_open_breaker_answers_at_once_without_a_call(engine: Engine, server: Rig) -> None:
    server.script["/x"] = ["503"]
    for _ in range(5):
        await (await engine.start(plan_of(retry=0))).result()
    assert server.calls["/x"] == 5
    took = []
    for _ in range(5):
        began = time.perf_counter()
        result = await (await engine.start(plan_of(retry=0, fallback=[{"value": -1}]))).result()
        took.append(time.perf_counter() - began)
        assert result.outputs == {"a": -1}
    assert server.calls["/x"] == 5
    assert min(took) < 0.05
