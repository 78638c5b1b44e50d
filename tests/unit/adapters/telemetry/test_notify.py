"""Telling somebody: each occasion once, by command and webhook; whoever cannot be told holds nothing up."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine, Plan, tool
from everstep.adapters.telemetry.notify import occasion_of
from everstep.domain.errors import SettingsError
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.views import Event
from everstep.ports.tool import Misconfigured
from everstep.settings import load_settings

WRITE = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read() + b'\\n')"


@tool("test.fail", effect="pure")
async def fail() -> None:
    """Never works."""
    raise Misconfigured("not like this")


@tool("test.work", effect="pure")
async def work() -> int:
    """Works."""
    return 1


def told(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def carried(tmp_path: Path, steps: list[JsonValue], **notify: JsonValue) -> list[Event]:
    config: JsonObject = {"notify": notify}
    async with Engine(tmp_path / "everstep.db", tools=[fail, work], config=config) as engine:
        task = await engine.start(Plan.from_dict({"name": "p", "steps": steps}))
        await task.result(on_pause="return")
        return [event async for event in task.events(follow=False)]


FAIL: JsonObject = {"id": "a", "tool": "test.fail"}
WORK: JsonObject = {"id": "b", "tool": "test.work"}


@pytest.mark.req("2.4")
async def test_a_final_failure_is_told_once_with_its_impact(tmp_path: Path) -> None:
    file = tmp_path / "told"
    needs: JsonObject = {**WORK, "needs": ["a"]}
    command: list[JsonValue] = [sys.executable, "-c", WRITE, str(file)]
    journal = await carried(tmp_path, [{**FAIL, "on_error": "continue"}, needs], command=command)
    assert [event.step for event in journal if event.type == "step.failed"] == ["a"]
    assert [event.step for event in journal if event.type == "step.skipped"] == ["b"]
    (message,) = told(file)
    assert (message["on"], message["step"], message["event"]["type"]) == ("failed", "a", "step.failed")
    assert message["event"]["data"]["error"]["impact"]["skipped_steps"] == ["b"]
    assert "not like this" in message["text"]


async def test_a_task_that_fails_because_of_a_step_is_told_once(tmp_path: Path) -> None:
    file = tmp_path / "told"
    await carried(tmp_path, [FAIL, WORK], command=[sys.executable, "-c", WRITE, str(file)])
    assert [message["event"]["type"] for message in told(file)] == ["step.failed"]


async def test_whoever_must_answer_is_told_and_may_hear_of_ends_too(tmp_path: Path) -> None:
    file = tmp_path / "told"
    command: list[JsonValue] = [sys.executable, "-c", WRITE, str(file)]
    await carried(tmp_path, [{**WORK, "approve": "May I?"}], command=command)
    (message,) = told(file)
    assert (message["on"], message["text"], message["step"]) == ("needs_you", "May I?", "b")
    await carried(tmp_path, [WORK], command=command, on=["completed"])
    assert [one["on"] for one in told(file)] == ["needs_you", "completed"]


async def test_a_command_that_fails_holds_nothing_up_and_is_noted(tmp_path: Path) -> None:
    await carried(tmp_path, [FAIL], command=["/nowhere/at/all"])
    assert "nobody could be told" in (tmp_path / "logs/everstep.log").read_text()


class Hook(HTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Heard)
        self.heard: list[Any] = []


class _Heard(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Hook)
        self.server.heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def test_a_webhook_is_told_by_post(tmp_path: Path, hook: Hook) -> None:
    await carried(tmp_path, [FAIL], webhook=f"http://127.0.0.1:{hook.server_port}/told")
    (message,) = hook.heard
    assert (message["on"], message["step"]) == ("failed", "a")


def test_what_is_no_occasion() -> None:
    asked = {"type": "pause.opened", "step": None, "data": {"reason": {"type": "userRequested"}}}
    assert occasion_of(asked) is None, "whoever asked for it knows"
    assert occasion_of({"type": "step.failed", "step": "a[3]", "data": {}}) is None, "its step will say so"
    assert occasion_of({"type": "task.failed", "step": None, "data": {"error": {"step": None}}}) == "failed"
    assert occasion_of({"type": "step.completed", "step": "a", "data": {}}) is None


def test_an_occasion_that_there_is_not_is_refused() -> None:
    with pytest.raises(SettingsError, match="needs_you"):
        load_settings({"notify": {"on": ["always"]}}, env={})
