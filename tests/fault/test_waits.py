"""Waits that a `kill -9` falls into: backoff and open breaker stand in the store, so a restart shortens neither."""

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everstep.torture.checker import check
from everstep.torture.history import Effect, Event, Logs, millis, read_effects, read_journal
from everstep.torture.trial import BOUNDS
from tests.fault.mutants import SOURCE
from tests.fault.waiting import PLAN, SETTINGS

ROOT = SOURCE.parent
PATIENCE_S = 60.0


class World:
    """A folder with a store, and the lives of the process that carries its tasks."""

    def __init__(self, folder: Path, tasks: int, retry: dict[str, object], settings: dict[str, object]) -> None:
        self.folder = folder
        self._tasks = tasks
        self._life: subprocess.Popen[bytes] | None = None
        step = {"id": "a", "tool": "wait.get", "with": {}, "retry": retry}
        (folder / PLAN).write_text(json.dumps({"name": "p", "steps": [step]}), encoding="utf-8")
        (folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")

    def live(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "child.log").open("ab") as said:
            self._life = subprocess.Popen(
                [sys.executable, "-m", "tests.fault.waiting", str(self.folder), str(self._tasks)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
                stdout=said,
                stderr=said,
            )
        return self._life

    def kill(self) -> None:
        if self._life is not None:
            self._life.kill()
            self._life.wait()

    def until(self, ready: Callable[[], bool]) -> None:
        """Look from outside, through the file."""
        latest = time.monotonic() + PATIENCE_S
        while not ready():
            assert time.monotonic() < latest, (self.folder / "child.log").read_text()[-2000:]
            time.sleep(0.005)

    def events(self, kind: str) -> list[Event]:
        try:
            lines = read_journal(self.folder / "store.db").events.values()
        except sqlite3.Error:  # not made yet
            return []
        return [event for line in lines for event in line if event.type == kind]

    def breaker(self) -> dict[str, Any]:
        with contextlib.closing(sqlite3.connect(f"file:{self.folder / 'store.db'}?mode=ro", uri=True)) as store:
            (row,) = store.execute("SELECT body FROM breakers").fetchall()
        found: dict[str, Any] = json.loads(row[0])
        return found

    def calls(self, what: str = "start") -> list[Effect]:
        return [effect for effect in read_effects(self.folder / "effects.jsonl") if effect.what == what]

    def end(self) -> None:
        """One more life, in which the server is back; nothing may be wrong afterwards."""
        (self.folder / "up").touch()
        assert self.live().wait(PATIENCE_S) == 0, (self.folder / "child.log").read_text()[-2000:]
        assert check(self.folder / "store.db", Logs(effects=read_effects(self.folder / "effects.jsonl")), BOUNDS) == []


@pytest.fixture
def opened() -> Iterator[list[World]]:
    worlds: list[World] = []
    yield worlds
    for world in worlds:
        world.kill()


@pytest.mark.req("8.2", "4.3")
def test_killed_inside_a_backoff_only_the_remainder_is_waited(tmp_path: Path, opened: list[World]) -> None:
    world = World(tmp_path, 1, {"times": 3, "delay": "20s"}, {})
    opened.append(world)
    world.live()
    world.until(lambda: bool(world.events("step.retry_scheduled")))
    world.kill()
    world.live()  # and once more, inside the same wait
    world.until(lambda: len(world.events("task.started")) == 2)
    world.kill()
    (scheduled,) = world.events("step.retry_scheduled")
    retry_at = millis(scheduled.data["retry"]["next_at"])
    assert retry_at is not None
    assert time.time() * 1000 < retry_at, "both kills fell into the wait"
    world.end()
    assert world.events("step.retry_scheduled") == [scheduled], "no restart began the wait anew"
    first, second = world.calls()
    assert (first.attempt, second.attempt) == (1, 2), "called once more, not twice"
    assert second.at >= retry_at, "not earlier"


@pytest.mark.req("8.3")
def test_killed_with_an_open_breaker_it_is_still_open_and_lets_one_probe_through(
    tmp_path: Path, opened: list[World]
) -> None:
    world = World(tmp_path, 3, {"times": 20, "delay": "1ms"}, {"breaker.cool_down": "15s"})
    opened.append(world)
    world.live()
    held = 3
    world.until(lambda: len({one.task for one in world.events("step.waiting")}) == held)
    world.kill()
    tried = len(world.calls())
    before = world.breaker()
    world.live()
    world.until(lambda: len(world.events("task.started")) == 2 * held)
    world.kill()
    assert world.breaker() == before, "still open, until the same moment"
    assert len(world.calls()) == tried, "no call while it is open"
    world.end()
    probes = world.calls()[tried:]
    assert probes[0].at >= before["retry_at"], "not earlier"
    ends = world.calls("end")[tried:]
    assert len(probes) == held, "each of the three calls once more"
    one_at_a_time = all(end.at <= following.at for end, following in zip(ends, probes[1:], strict=False))
    assert one_at_a_time, "although three wait, one probes until two have succeeded"
