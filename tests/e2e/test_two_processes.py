"""A second process watches, pauses, answers and cancels what the first one carries; it is obeyed within a second."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest

from everstep.domain.values import JsonValue
from everstep.doors.local.client import LocalClient, find_engine
from everstep.settings import Settings, load_settings
from everstep.wire.times import from_text
from tests.e2e.gates import Gate

ROOT = Path(__file__).resolve().parents[2]
OBEYED_MS = 1000
Frames = AsyncGenerator[dict[str, Any], None]


def plan(*labels: str) -> dict[str, JsonValue]:
    steps: list[JsonValue] = [{"id": label, "tool": "test.gate", "with": {"label": label}} for label in labels]
    return {"name": "gates", "steps": steps}


class Other:
    """The process that carries, and this one's way to it."""

    def __init__(self, settings: Settings, gate: Gate) -> None:
        self.settings = settings
        self.gate = gate
        self.process: asyncio.subprocess.Process | None = None
        self.client: LocalClient | None = None
        self._streams: list[Frames] = []

    async def start(self, carries: str = "all") -> "Other":
        words = ("-m", "tests.e2e.engine_process", str(self.settings.store_path), str(self.gate.path), carries)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, *words, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout is not None
        said = await asyncio.wait_for(self.process.stdout.readline(), 30)
        assert said.startswith(b"ready")
        self.client = await find_engine(self.settings)
        assert self.client is not None
        return self

    async def good(self, method: str, path: str, body: JsonValue = None) -> dict[str, Any]:
        assert self.client is not None
        reply = await self.client.request(method, path, body)
        assert reply.status < 300, reply.body
        return cast("dict[str, Any]", reply.json())

    def watch(self, task: str) -> Frames:
        assert self.client is not None
        self._streams.append(self.client.stream(f"/v1/tasks/{task}/events?after=0&ticks=0"))
        return self._streams[-1]

    async def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        await self.stop()

    async def stop(self) -> None:
        while self._streams:
            await self._streams.pop().aclose()
        if self.client is not None:
            await self.client.close()
        if self.process is not None and self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            await asyncio.wait_for(self.process.wait(), 30)


@pytest.fixture
async def other() -> AsyncIterator[Other]:
    with TemporaryDirectory(prefix="es-") as folder:  # sockets need short paths
        settings = load_settings({"store": f"{folder}/.everstep/everstep.db"}, cwd=Path(folder), env={})
        async with Gate(Path(folder) / "gate").standing() as gate:
            made = Other(settings, gate)
            yield made
            await made.stop()


async def event(frames: Frames, kind: str) -> dict[str, Any]:
    """The next event of that type."""
    async with asyncio.timeout(30):
        async for frame in frames:
            if frame["type"] == "event" and frame["event"]["type"] == kind:
                return cast("dict[str, Any]", frame["event"])
    raise AssertionError(f"the stream ended before {kind}")


async def test_a_second_process_watches_every_event_once(other: Other) -> None:
    await other.start()
    task = (await other.good("POST", "/v1/tasks", {"plan": plan("a", "b")}))["id"]
    frames = other.watch(task)
    for label in ("a", "b"):
        assert await other.gate.next_call() == label
        other.gate.open(label)
    seen = []
    async for frame in frames:
        if frame["type"] == "event":
            seen.append(frame["event"])
            if frame["event"]["type"] == "task.completed":
                break
    assert [one["seq"] for one in seen] == list(range(1, len(seen) + 1))
    page = await other.good("GET", f"/v1/tasks/{task}/events?limit=500")
    assert page["events"] == seen


@pytest.mark.req("WF-11")
async def test_cancel_from_a_second_process_is_obeyed_within_a_second(other: Other) -> None:
    await other.start()
    task = (await other.good("POST", "/v1/tasks", {"plan": plan("a", "b")}))["id"]
    assert await other.gate.next_call() == "a"
    frames = other.watch(task)
    asked = await other.good("POST", f"/v1/tasks/{task}/cancel", {"note": "enough"})
    assert asked["status"] in ("cancelling", "cancelled")
    began, ended = await event(frames, "task.cancelling"), await event(frames, "task.cancelled")
    assert from_text(ended["at"]) - from_text(began["at"]) <= OBEYED_MS
    shown = await other.good("GET", f"/v1/tasks/{task}")
    assert [step["status"] for step in shown["steps"]] == ["skipped", "skipped"]
    assert other.gate.calls == ["a"]


@pytest.mark.req("WF-11")
async def test_pause_and_resume_from_a_second_process(other: Other) -> None:
    await other.start()
    task = (await other.good("POST", "/v1/tasks", {"plan": plan("a", "b")}))["id"]
    assert await other.gate.next_call() == "a"
    frames = other.watch(task)
    asked = await other.good("POST", f"/v1/tasks/{task}/pause", {"note": "lunch"})
    assert asked["status"] == "pausing"
    await event(frames, "task.pausing")
    other.gate.open("a")
    done, paused = await event(frames, "step.completed"), await event(frames, "task.paused")
    assert from_text(paused["at"]) - from_text(done["at"]) <= OBEYED_MS
    assert other.gate.calls == ["a"]
    inbox = await other.good("GET", "/v1/inbox")
    assert [one["reason"] for one in inbox["items"]] == [{"type": "userRequested", "by": "local", "note": "lunch"}]
    await other.good("POST", f"/v1/tasks/{task}/resume")
    assert await other.gate.next_call() == "b"
    other.gate.open("b")
    await event(frames, "task.completed")
    assert other.gate.calls == ["a", "b"]


async def test_a_foreground_engine_carries_what_it_is_handed_and_nothing_else(other: Other) -> None:
    await other.start("own")
    task = (await other.good("POST", "/v1/tasks", {"plan": plan("a"), "pause_after": "a"}))["id"]
    assert await other.gate.next_call() == "a"
    other.gate.open("a")
    await event(other.watch(task), "task.paused")
    await other.stop()
    await other.start("own")
    assert (await other.good("GET", f"/v1/tasks/{task}"))["status"] == "paused"
    await other.good("POST", f"/v1/tasks/{task}/resume")
    await event(other.watch(task), "task.completed")


async def test_a_killed_engine_is_followed_by_another_on_the_same_door(other: Other) -> None:
    await other.start("own")
    task = (await other.good("POST", "/v1/tasks", {"plan": plan("a", "b")}))["id"]
    assert await other.gate.next_call() == "a"
    await other.kill()
    assert other.settings.socket_path.exists()
    assert await find_engine(other.settings) is None
    await other.start("own")
    shown = await other.good("GET", f"/v1/tasks/{task}")
    assert (shown["status"], shown["explain"]["waiting_on"]["kind"]) == ("stalled", "recovery")
    assert (await other.good("POST", "/v1/tasks", {"plan": plan("a", "b"), "attach": True}))["id"] == task
    for label in ("a", "b"):
        assert await other.gate.next_call() == label
        other.gate.open(label)
    frames = other.watch(task)
    await event(frames, "task.completed")
    assert other.gate.calls == ["a", "a", "b"]


async def test_the_door_answers_only_this_user(other: Other) -> None:
    await other.start()
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    path = other.settings.socket_path
    path.chmod(0o666)  # even if the modes said otherwise
    path.parent.chmod(0o755)
    code = (
        "import os, socket, sys\n"
        "os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.connect(sys.argv[1])\n"
        "try:\n"
        '    s.sendall(b\'{"method":"GET","path":"/v1/tasks"}\\n\')\n'
        "    print(s.recv(1000))\n"
        "except ConnectionError:\n"
        "    print(b'')\n"
    )
    nobody = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, path.name, cwd=path.parent, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await nobody.communicate()
    assert (said, nobody.returncode) == (b"b''\n", 0)
