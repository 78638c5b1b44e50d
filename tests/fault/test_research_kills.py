"""A model that was asked is never asked, nor paid, again for an answer that is recorded."""

import asyncio
import json
import random
import sqlite3
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from everstep.testing.chat import USUAL, says_by
from everstep.testing.rig import HttpRig
from everstep.torture.checker import Bounds, check
from tests.e2e.processes import ROOT
from tests.fault.research import CALLS

KILLS = 10
CHAT = "/v1/chat/completions"
PATIENCE_S = 120


def think(asked: dict[str, Any]) -> str:
    number = int(asked["messages"][-1]["content"].split()[1])
    return json.dumps({"action": "done" if number == CALLS - 1 else "look", "note": f"n{number}"})


async def wait_for(rig: HttpRig, count: int, child: "asyncio.subprocess.Process") -> bool:
    """Until the model was asked so often; false if the child ended before."""
    async with asyncio.timeout(PATIENCE_S):
        while rig.count(CHAT) < count:
            if child.returncode is not None:
                return False
            await asyncio.sleep(0.002)
    return True


@pytest.mark.req("X.4")
async def test_a_research_loop_killed_ten_times_pays_every_answer_once(tmp_path: Path) -> None:
    chance = random.Random(4)
    kills = 0
    async with HttpRig() as rig:
        rig.on(CHAT, says_by(think, replace(USUAL, tokens=(1000, 10), gap_s=0.001)))
        while not (tmp_path / "result.json").exists():
            words = ("-m", "tests.fault.research", str(tmp_path), rig.url("/v1"))
            child = await asyncio.create_subprocess_exec(sys.executable, *words, cwd=ROOT)
            if kills < KILLS and await wait_for(rig, rig.count(CHAT) + chance.randint(1, 2), child):
                await asyncio.sleep(chance.random() * 0.01)
                child.kill()
                kills += 1
            async with asyncio.timeout(PATIENCE_S):
                await child.wait()
        prompts = Counter(json.loads(one.body)["messages"][-1]["content"] for one in rig.asked)
    told = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert kills == KILLS
    assert told["status"] == "completed", told["error"]
    assert told["outputs"] == {"notes": [f"n{number}" for number in range(CALLS)]}
    assert check(tmp_path / "store.db", bounds=Bounds(max_recoveries=100, healed=True)) == []
    events = [json.loads(body) for (body,) in sqlite3.connect(tmp_path / "store.db").execute("SELECT body FROM events")]
    started = Counter(event["step"] for event in events if event["type"] == "attempt.started")
    cut = sum(event["type"] == "attempt.abandoned" for event in events)
    paid = [event["data"]["usage"]["cost"] for event in events if event["type"] == "step.completed"]
    assert len(prompts) == CALLS
    assert sum(prompts.values()) <= sum(started.values()) == CALLS + cut  # only what was cut off was asked again
    assert cut <= KILLS
    assert paid == [0.00102] * CALLS
