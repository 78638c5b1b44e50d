"""Kills of the proxy, of its client and of the server behind it: `python -m tests.fault.proxy_kills [KILLS] [SEED]`.

No outcome that a client was told is lost, and no call that may be made once is made twice. Part of `make torture`; one
line of JSON at the end, exit 1 on a violation.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tests.e2e.mcp_project import environment
from tests.fault.proxy_client import Line

HERE: Final = Path(__file__).parent
SERVER: Final = [sys.executable, str(HERE.parent / "e2e" / "proxied_server.py")]
PATIENCE_S: Final = 120.0
VICTIMS: Final = ("client", "proxy", "server")


class Market:
    """A client that buys through the proxy, again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        proxy = [sys.executable, "-m", "everstep", "mcp", "proxy", "--name", "shop", "--", *SERVER, str(folder)]
        self.proxy = proxy
        self.words = [sys.executable, str(HERE / "proxy_client.py"), str(folder), *proxy]
        self.client: subprocess.Popen[bytes] | None = None

    def lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def running(self) -> int:
        """The client's process id; one that has ended is started again."""
        if self.client is None or self.client.poll() is not None:
            with (self.folder / "stderr").open("ab") as log:
                self.client = subprocess.Popen(self.words, env=environment(), cwd=HERE.parents[1], stderr=log)
        return self.client.pid

    def until_it_buys(self) -> None:
        """Somebody was told of one thing more."""
        told, until = len(self.lines("replies.jsonl")), time.monotonic() + PATIENCE_S
        while len(self.lines("replies.jsonl")) == told:
            self.running()
            assert time.monotonic() < until, "nothing is bought any more: " + "\n".join(self.lines("stderr")[-20:])
            time.sleep(0.01)

    def kill(self, who: str) -> None:
        pid = self.running() if who == "client" else int((self.folder / f"{who}.pid").read_text() or 0)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        (self.folder / "stop").touch()
        assert self.client is not None
        self.client.wait(PATIENCE_S)


def wrong_in(market: Market) -> list[str]:
    """What must not be: a call made twice, an outcome that is not what it was."""
    calls = Counter(json.loads(line.partition(" ")[2])["n"] for line in market.lines("calls.log"))
    wrong = [f"thing {n} was bought {times} times" for n, times in calls.items() if times > 1]
    told: list[Any] = [json.loads(line) for line in market.lines("replies.jsonl")]
    wrong += [f"thing {n} was never bought" for n, (failed, _) in enumerate(told) if not failed and calls[n] != 1]
    line = Line(market.proxy, market.folder, environment())
    with line.process:
        line.hello()
        for n, before in enumerate(told):
            after = line.buy(n)
            wrong += [] if after == before else [f"thing {n}: {before} became {after}"]
    return wrong


def campaign(folder: Path, kills: int, seed: int) -> tuple[list[str], dict[str, int]]:
    """So many kills, in turn and at random moments; what was wrong, and what was seen."""
    chance, market = random.Random(seed), Market(folder)
    for number in range(kills):
        market.until_it_buys()
        time.sleep(chance.random() * 0.03)  # somewhere inside the next call
        market.kill(VICTIMS[number % len(VICTIMS)])
    market.until_it_buys()
    market.close()
    failed = sum(json.loads(line)[0] for line in market.lines("replies.jsonl"))
    seen = {"kills": kills, "told": len(market.lines("replies.jsonl")), "uncertain": failed}
    return wrong_in(market), {**seen, "calls": len(market.lines("calls.log"))}


def main(kills: int = 200, seed: int = 0) -> int:
    with tempfile.TemporaryDirectory() as folder:
        wrong, seen = campaign(Path(folder), kills, seed)
    print(json.dumps({**seen, "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
