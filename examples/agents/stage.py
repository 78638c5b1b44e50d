"""Perform an example: `python -m examples.agents.stage research|coder [--chaos] [--kills N] [--seed N] [--yes]`.

A scripted model listens on the loopback; the agent works in a process of its own, in a temporary folder. With `--chaos`
that process is killed at random moments and started again. At the end it is counted what the model was asked.
"""

import argparse
import asyncio
import json
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from everstep import Engine
from everstep.testing.chat import Manner, says_by
from everstep.testing.rig import HttpRig
from examples.agents import models
from examples.agents.coder import coder
from examples.agents.research import research

CHAT: Final = "/v1/chat/completions"
ROOT: Final = Path(__file__).resolve().parents[2]
PAUSED: Final = 8
AGENTS: Final[dict[str, tuple[Any, dict[str, Any], Any]]] = {
    "research": (research, {"topic": "solar storage"}, models.researcher),
    "coder": (coder, {"goal": "Make the tests of slug.py pass."}, models.programmer),
}
FILES: Final = {
    "research": {
        "notes/battery.md": "A battery keeps solar power for the evening.",
        "notes/night.md": "At night a battery of 10 kWh feeds a house.",
        "notes/wind.md": "Wind turbines need no sun.",
    },
    "coder": {
        "slug.py": "def slug(text):\n    return text\n",
        "check.py": "import unittest\n\nfrom slug import slug\n\n\nclass Slugs(unittest.TestCase):\n"
        "    def test_words(self):\n        self.assertEqual(slug('Hello World'), 'hello-world')\n\n"
        "    def test_marks(self):\n        self.assertEqual(slug('Hello, World!'), 'hello-world')\n",
    },
}


async def carry(name: str, folder: Path, url: str, *, approve: bool) -> int:
    """The agent's own process: go on with its task until it ends or asks."""
    agent, inputs, _ = AGENTS[name]
    endpoint: Any = {"llm.endpoints.scripted": {"url": url, "model": "scripted", "price_in": 1, "price_out": 2}}
    config = {**endpoint, "workspace": str(folder), "rates": {"llm.scripted": "1000/1s"}}
    async with Engine(folder / ".everstep" / "everstep.db", tools=[agent], config=config) as engine:
        if approve:
            for pause in await engine.inbox():
                print(f"  approved: {pause.title}")
                await pause.approve(by="you")
        result = await engine.run(agent, inputs, on_pause="return")
    if result.status == "paused":
        return PAUSED
    print(f"  {result.status}: {json.dumps(result.outputs)}")
    return 0 if result.status == "completed" else 1


async def perform(name: str, folder: Path, *, kills: int, seed: int, yes: bool) -> int:
    """Let the agent come to its end, whatever happens to its process."""
    chance, killed, approve = random.Random(seed), 0, False
    for path, text in FILES[name].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    async with HttpRig() as rig:
        rig.on(CHAT, says_by(AGENTS[name][2], Manner(tokens=(200, 20), gap_s=0.01)))
        while True:
            words = ["-m", "examples.agents.stage", name, "--carry", str(folder), rig.url("/v1")]
            child = await asyncio.create_subprocess_exec(sys.executable, *words, *(["--yes"] * approve), cwd=ROOT)
            if killed < kills and await _asked(rig, rig.count(CHAT) + 1, child):
                await asyncio.sleep(chance.random() * 0.1)
                if child.returncode is None:
                    child.kill()
                    killed += 1
                    print("  killed; the same again:", flush=True)
            code = await child.wait()
            if code == PAUSED:
                approve = yes or await asyncio.to_thread(_allowed)
                if not approve:
                    return PAUSED
            elif code >= 0:
                break
        return code or _account(folder, rig, killed)


def _allowed() -> bool:
    return input("  it asks for leave. Allow it? [y/n] ").strip().lower() == "y"


async def _asked(rig: HttpRig, count: int, child: "asyncio.subprocess.Process") -> bool:
    """Until the model was asked so often; false if the process ended before."""
    while rig.count(CHAT) < count:
        if child.returncode is not None:
            return False
        await asyncio.sleep(0.005)
    return True


def _account(folder: Path, rig: HttpRig, killed: int) -> int:
    """What was recorded, and what the model was asked: more than once only where a kill cut the answer off."""
    store = sqlite3.connect(folder / ".everstep" / "everstep.db")
    events = [json.loads(body) for (body,) in store.execute("SELECT body FROM events ORDER BY id")]
    store.close()
    kinds = Counter(event["type"] for event in events)
    answers = sum(e["type"] == "step.completed" and e["data"]["tool_used"] == "llm.json" for e in events)
    print(f"  {kinds['step.completed']} calls recorded, {answers} of them answers of the model")
    print(f"  {killed} kills; the model was asked {rig.count(CHAT)} times")
    return 0 if answers <= rig.count(CHAT) <= answers + killed else 1


def main() -> int:
    """The stage, or one of its actors."""
    parser = argparse.ArgumentParser(prog="examples.agents.stage", description=__doc__)
    parser.add_argument("agent", choices=[*AGENTS])
    parser.add_argument("--chaos", action="store_true", help="kill the agent's process at random moments")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--yes", action="store_true", help="allow what it asks for")
    parser.add_argument("--carry", nargs=2, metavar=("FOLDER", "URL"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.carry:
        folder, url = given.carry
        return asyncio.run(carry(given.agent, Path(folder), url, approve=given.yes))
    with tempfile.TemporaryDirectory(prefix="everstep-agent-") as folder:
        print(f"{given.agent} agent", flush=True)
        kills = given.kills if given.chaos else 0
        return asyncio.run(perform(given.agent, Path(folder), kills=kills, seed=given.seed, yes=given.yes))


if __name__ == "__main__":
    sys.exit(main())
