"""The plan, carried out for real in a folder of its own. `pytest` finds it."""

import asyncio
from pathlib import Path

from everstep import Engine
from hello_tools import greet

PLAN = Path(__file__).parent / "hello.plan.yaml"


def test_hello(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def carry():
        async with Engine(tmp_path / "test.db", tools=[greet]) as engine:
            return await engine.run(PLAN, {"name": "Ana"})

    result = asyncio.run(carry())
    assert result.status == "completed"
    assert result.outputs["text"] == "Hello, Ana!"
    assert (tmp_path / "out" / "hello.txt").read_text() == "Hello, Ana!\n"
