"""What somebody sees who watches a task over the network: order, phases, progress, whole errors; and everybody does."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import jsonschema_rs
import pytest

from everstep import Denied, Impossible, Misconfigured, ResourceExceeded, Transient, tool
from everstep.domain.events import ActorKind
from everstep.doors.api.shapes import OBJECTS
from everstep.facade.access import NewToken
from tests.e2e.served import Frame, Served, frame, served, until

ENDS = ("task.completed", "task.failed", "task.cancelled")


class Calls:
    """Tools that note what is durable when they are called, fail at first, or wait to be let through."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self.durable: list[list[str]] = []
        self.failing = 1
        self.release = asyncio.Event()

    def tools(self) -> list[object]:
        @tool("test.look", effect="pure")
        async def look(after: str = "") -> str:
            """What has ended by now, as another connection sees it."""
            base = apsw.Connection(str(self._store), flags=apsw.SQLITE_OPEN_READONLY)
            rows = base.execute("SELECT step FROM events WHERE type = 'step.completed' ORDER BY rowid")
            self.durable.append([str(step) for (step,) in rows])
            base.close()
            return f"{after}x"

        @tool("test.flaky", effect="pure", pool="narrow")
        async def flaky() -> str:
            """Not the first time."""
            self.failing -= 1
            if self.failing >= 0:
                raise Transient("not yet", retry_after=0.05)
            return "done"

        @tool("test.hold", effect="pure", pool="narrow")
        async def hold() -> str:
            """Wait."""
            await self.release.wait()
            return "held"

        @tool("test.fail", effect="pure")
        async def fail(how: str) -> str:
            """Fail in one of the ways there are."""
            raise FAILURES[how]

        return [look, flaky, hold, fail]


FAILURES: dict[str, Exception] = {
    "transient": Transient("the line is dead"),
    "configuration": Misconfigured("there is no such thing"),
    "permission": Denied("not you"),
    "resource": ResourceExceeded("too much", limit="memory", used=2, max=1),
    "logic": Impossible("a folder cannot be moved into itself"),
    "internal": KeyError("nobody thought of that"),
}


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path / "everstep.db")


@pytest.fixture
async def server(tmp_path: Path, calls: Calls) -> AsyncIterator[Served]:
    async with served(tmp_path, calls.tools(), **{"pools.narrow": 1, "events.tick_hz": 10}) as one:
        yield one
        calls.release.set()


async def watched(server: Served, task: str, until_event: tuple[str, ...] = ENDS) -> list[Frame]:
    """Every frame from the first event to one of these."""
    seen: list[Frame] = []
    async with asyncio.timeout(60), server.socket(f"/v1/tasks/{task}/events?after=0") as socket:
        while not (seen and seen[-1]["type"] == "event" and seen[-1]["event"]["type"] in until_event):
            seen.append(await frame(socket))
    return seen


def events(frames: list[Frame]) -> list[dict[str, Any]]:
    return [one["event"] for one in frames if one["type"] == "event"]


@pytest.mark.req("1.1", "1.5")
async def test_steps_follow_each_other_and_what_they_return(server: Served, calls: Calls) -> None:
    steps: list[Any] = [{"id": "s0", "tool": "test.look"}]
    steps += [{"id": f"s{n}", "tool": "test.look", "with": {"after": f"${{s{n - 1}}}"}} for n in range(1, 5)]
    task = await server.start({"name": "row", "steps": steps})
    await watched(server, task)
    assert calls.durable == [[f"s{n}" for n in range(count)] for count in range(5)], "outcomes first, then calls"
    shown = (await server.good("GET", f"/v1/tasks/{task}"))["steps"]
    assert all(before["ended_at"] <= after["started_at"] for before, after in pairwise(shown))
    inputs = [(await server.good("GET", f"/v1/tasks/{task}/steps/s{n}"))["input"]["value"] for n in range(1, 5)]
    assert inputs == [{"after": "x" * n} for n in range(1, 5)]
    attempt = await server.good("GET", f"/v1/tasks/{task}/steps/s1/attempts/1")
    assert (attempt["number"], attempt["status"], attempt["input"]["value"]) == (1, "succeeded", {"after": "x"})
    assert (attempt["started_at"], attempt["ended_at"]) == (shown[1]["started_at"], shown[1]["ended_at"])
    assert attempt["duration_s"] >= attempt["usage"]["wall_s"] >= 0
    assert (await server.good("GET", f"/v1/tasks/{task}/steps/s1"))["output"]["value"] == "xx"


@pytest.mark.req("1.2", "W.3")
async def test_every_phase_is_seen_in_its_turn(server: Served, calls: Calls) -> None:
    """Approved, kept waiting by another task, called, called again: each as it happens."""
    blocking = await server.start({"name": "block", "steps": [{"id": "a", "tool": "test.hold"}]})
    await watched(server, blocking, ("attempt.started",))
    task = await server.start({"name": "p", "steps": [{"id": "a", "tool": "test.flaky", "approve": True}]})
    phases: list[tuple[str, str]] = []
    async with server.socket(f"/v1/tasks/{task}/events?after=0&ticks=0") as socket:
        while not phases or phases[-1][0] != "step.completed":
            (event,) = events(await until(socket, "event"))[-1:]
            shown = await server.good("GET", f"/v1/tasks/{task}/steps/a")
            phases.append((event["type"], shown["phase"]))
            if event["type"] == "pause.opened":
                answer = next(one for one in event["data"]["answers"] if one["answer"] == "approve")["request"]
                await server.good(answer["method"], answer["path"], answer["body"])
            elif event["type"] == "step.waiting":
                calls.release.set()
    kinds = [kind for kind, _ in phases if kind.partition(".")[0] in {"step", "attempt", "pause"}]
    assert kinds == [
        "step.started",
        "pause.opened",
        "pause.answered",
        "step.waiting",
        "attempt.started",
        "attempt.failed",
        "step.retry_scheduled",
        "attempt.started",
        "step.completed",
    ]
    lasting = dict(phases)
    assert lasting["pause.opened"] == "awaiting_approval"
    assert lasting["step.waiting"] == "waiting_slot"
    assert lasting["step.completed"] == "done"


@pytest.mark.req("1.3", "DoD.3", "TU.4")
async def test_progress_rises_over_retry_skip_and_patch_and_is_whole_only_at_the_end(
    server: Served, calls: Calls
) -> None:
    steps: list[Any] = [
        {"id": "a", "tool": "test.flaky"},
        {"id": "b", "tool": "test.look", "when": "${a == 'no'}"},
        {"id": "c", "tool": "test.hold", "title": "Hold on"},
        {"id": "d", "tool": "test.look"},
    ]
    task = await server.start({"name": "p", "steps": steps})
    shares: list[float] = []
    async with asyncio.timeout(60), server.socket(f"/v1/tasks/{task}/events?after=0") as socket:
        seen = await frame(socket)
        while not (seen["type"] == "event" and seen["event"]["type"] in ENDS):
            if seen["type"] == "tick":
                shares.append(seen["progress"]["fraction"])
                if "c" in [one["id"] for one in seen["steps"]] and not calls.release.is_set():
                    assert (seen["progress"]["done"], seen["progress"]["total"]) == (2, 4)
                    assert {"basis", "p10", "p50", "p90", "n"} <= set(seen["estimate"])
                    more = [{"op": "append", "step": {"id": f"e{n}", "tool": "test.look"}} for n in range(5)]
                    shown = await server.good("GET", f"/v1/tasks/{task}")
                    shares.append(shown["progress"]["fraction"])
                    assert shown["progress"]["current"] == ["c"]
                    body = {"base_revision": 1, "ops": more}
                    await server.good("PATCH", f"/v1/tasks/{task}/plan", body)
                    shares.append((await server.good("GET", f"/v1/tasks/{task}"))["progress"]["fraction"])
                    calls.release.set()
            seen = await frame(socket)
    assert len(shares) >= 3
    assert shares == sorted(shares)
    assert shares[-1] < 1
    ended = await server.good("GET", f"/v1/tasks/{task}")
    assert (ended["status"], ended["progress"]["fraction"]) == ("completed", 1)


@pytest.mark.req("3.5", "W.3", "E.5")
async def test_frames_of_failures_carry_the_whole_error(server: Served) -> None:
    steps: list[Any] = [
        {
            "id": how, "tool": "test.fail", "with": {"how": how}, "on_error": "continue",
            "retry": {"times": 1, "delay": "10ms"}, "needs": [],
        }
        for how in FAILURES
    ]  # fmt: skip
    task = await server.start({"name": "p", "steps": steps})
    shape = {**OBJECTS["Error"], "components": {"schemas": {**OBJECTS}}}
    found: dict[str, set[str]] = {}
    for event in events(await watched(server, task)):
        error = event["data"].get("error")
        if error is not None:
            jsonschema_rs.validate(shape, error)
            found.setdefault(event["step"], set()).add(error["category"])
            if event["type"] == "step.failed":
                assert error["impact"]["lost_outputs"] == [event["step"]]
    assert found == {how: {how} for how in FAILURES}


@pytest.mark.req("3.2", "TP.3", "W.3")
async def test_everybody_hears_everything_once_and_in_order(server: Served, calls: Calls) -> None:
    """120 watchers of six tasks; how fast is for the bench."""
    wanted = NewToken(name="w", owner="local", actor_kind=ActorKind.SERVICE, actor_id="w", scopes=frozenset({"read"}))
    tokens = [(await server.engine.desk.access.issue(wanted)).value for _ in range(4)]
    steps: list[Any] = [{"id": f"s{n}", "tool": "test.look"} for n in range(10)]
    plan = {"name": "many", "steps": [{"id": "a", "tool": "test.hold"}, *steps]}
    async with AsyncExitStack() as stack:
        tasks = [await server.start(plan) for _ in range(6)]
        sockets = [
            await stack.enter_async_context(
                server.socket(f"/v1/tasks/{tasks[n % 6]}/events?after=0&ticks=0&until=end", token=tokens[n // 30])
            )
            for n in range(120)
        ]
        calls.release.set()

        async def heard(socket: Any) -> list[int]:
            return [event["seq"] for event in events([json.loads(text) async for text in socket])]

        async with asyncio.timeout(60):
            seqs = await asyncio.gather(*map(heard, sockets))
    heads = {task: (await server.good("GET", f"/v1/tasks/{task}"))["seq"] for task in tasks}
    assert seqs == [list(range(1, heads[tasks[n % 6]] + 1)) for n in range(120)]
