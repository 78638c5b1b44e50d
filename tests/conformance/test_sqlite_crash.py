"""kill -9 around every write of the store: what was acknowledged is there, and nothing is half there."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from everstep.domain.ids import Digest, Instant
from everstep.domain.states import HELD, TaskStatus
from everstep.ports.fault import POINTS
from everstep.ports.store import TaskFilter
from everstep.testing.conformance.stage import Scene
from tests.conformance.sqlite_stage import opened

CHILD = Path(__file__).parent / "crash_child.py"
WRITES = ("create", "claim", "intent", "outcome", "command", "sweep", "renew")
OTHERS = ("artifact", "migrate", "backup", "checkpoint")
STRIKES = sorted(point for point in POINTS if point.partition(".")[0] in WRITES + OTHERS)


def play(folder: Path, failpoints: str = "") -> tuple[int, list[dict[str, Any]]]:
    """The child's end, and what it was told before."""
    ended = subprocess.run(
        [sys.executable, CHILD, folder],
        env={**os.environ, "EVERSTEP_FAILPOINTS": failpoints},
        stdout=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]


async def nothing_acknowledged_is_lost(on: Scene, facts: list[dict[str, Any]]) -> None:
    for fact in facts:
        if "task" in fact:
            assert (await on.load(fact["task"])).seq >= fact["last_seq"]
        if "payload" in fact:
            (value,) = await on.store.get_payloads([Digest(fact["payload"])])
            assert value == {"text": "x" * 50_000}


async def interruption_is_visible(on: Scene) -> None:
    """Every held task is found dead, with its worker, and can be moved; a second look finds nothing."""
    dead = {one.task: one for one in await on.store.find_dead(on.me.id, Instant(0), 100)}
    listed = (await on.store.list_tasks(TaskFilter(statuses=HELD))).items
    assert set(dead) == {item.id for item in listed if item.worker is not None}
    assert all(one.worker is not None and not one.worker.released for one in dead.values())


@pytest.mark.req("WF-9")
@pytest.mark.parametrize("point", STRIKES)
async def test_a_crash_at(point: str, tmp_path: Path) -> None:
    code, facts = play(tmp_path, f"{point}=sigkill")
    assert code == -signal.SIGKILL, f"{point} never fired"
    async with opened(tmp_path / "everstep.db") as on:
        await on.sound()
        await nothing_acknowledged_is_lost(on, facts)
        await interruption_is_visible(on)
    if (tmp_path / "copy.db").exists():
        async with opened(tmp_path / "copy.db") as on:
            await on.sound()


@pytest.mark.parametrize("hit", [1, 2])
async def test_what_was_committed_is_there_although_nobody_was_told(hit: int, tmp_path: Path) -> None:
    code, facts = play(tmp_path, f"create.commit.after:{hit}=sigkill")
    assert (code, len(facts)) == (-signal.SIGKILL, 1)
    async with opened(tmp_path / "everstep.db") as on:
        items = (await on.store.list_tasks(TaskFilter())).items
        assert [item.row.status for item in items] == [TaskStatus.QUEUED] * hit


async def test_without_a_crash_the_story_ends(tmp_path: Path) -> None:
    code, facts = play(tmp_path)
    assert (code, facts[-1]) == (0, {"copy": "copy.db"})
    async with opened(tmp_path / "everstep.db") as on:
        await on.sound()
        await nothing_acknowledged_is_lost(on, facts)
