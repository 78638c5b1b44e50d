"""The client for browsers, under Node as it is: its rules, and a stream over cuts, kills and closed ways."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from everstep import tool
from tests.e2e.cutting import Proxy, under_fire
from tests.e2e.served import served

DASHBOARD = Path(__file__).parents[2] / "dashboard"
NODE = Path(sys.executable).with_name("node")


class Following:
    """A process that prints the seq of every event it gets."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self.process: asyncio.subprocess.Process | None = None

    async def seqs(self) -> list[int]:
        out = await self.said()
        return [int(line) for line in out.split()]

    async def said(self) -> str:
        self.process = await asyncio.create_subprocess_exec(
            NODE, "--no-warnings", DASHBOARD / "test/follow.ts", *self._words,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await self.process.communicate()
        assert self.process.returncode == 0, err.decode()
        return out.decode()


def test_its_rules_are_those_of_the_python_client() -> None:
    done = subprocess.run(
        [NODE, "--no-warnings", "--test", DASHBOARD / "test/rules.test.ts"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@tool("test.step", effect="pure")
async def step() -> str:
    """A moment later."""
    await asyncio.sleep(0.02)
    return "done"


@pytest.mark.parametrize("way", ["websocket", "poll"])
async def test_it_follows_a_task_to_its_end(tmp_path: Path, way: str) -> None:
    async with served(tmp_path, [step]) as server:
        proxy = Proxy(int(server.url.rpartition(":")[2]))
        proxy.refuses_upgrades = proxy.refuses_streams = way == "poll"
        async with proxy.standing():
            url = f"http://127.0.0.1:{proxy.port}"
            task = await server.start({"name": "s", "steps": [{"id": f"s{n}", "tool": "test.step"} for n in range(5)]})
            assert await Following(url, server.token, task).seqs() == list(range(1, 14))
            assert await Following(url, server.token).seqs() == list(range(1, 14))
            assert await Following(url, server.token, "t_unknown").said() == "not_found\n"
            assert await Following(url, "es_wrong", task).said() == "unauthenticated\n"


@pytest.mark.req("3.6", "W.3", "TI.3")
async def test_cut_again_and_again_and_the_server_killed_it_gets_every_event_once() -> None:
    async with under_fire() as fire:
        token = fire.mortal.token
        await fire.endure(Following(fire.url, token, fire.task).seqs(), Following(fire.url, token).seqs())
