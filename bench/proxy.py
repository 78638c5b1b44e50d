"""What the durable proxy costs a call: the same server with and without it, beside one commit of the same disk.

    python -m bench.proxy [CALLS]

A call through the proxy is a task of one step, on disk before its answer is given. The target is an overhead of at most
5 ms at the median, over one commit. Exit 1 where it is missed.
"""

import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.kept import Figure, at_most, keep
from tests.fault.proxy_client import Line

ROOT = Path(__file__).parents[1]
TARGET_MS = 5.0
WARM_UP = 20
SERVER = [sys.executable, str(ROOT / "tests" / "e2e" / "proxied_server.py")]
PROXY = [sys.executable, "-m", "everstep", "mcp", "proxy", "--name", "bench", "--"]


def median_ms(once: Callable[[], object], times: int) -> float:
    """What it takes at the median, once it is warm."""
    taken = []
    for number in range(times + WARM_UP):
        began = time.perf_counter()
        once()
        if number >= WARM_UP:
            taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


def calls_ms(words: list[str], folder: Path, times: int) -> float:
    """Calls of a server, one after the other."""
    line = Line(words, folder)
    line.hello()
    found = median_ms(lambda: line.ask("tools/call", name="add", arguments={"n": 1}), times)
    assert line.process.stdin is not None
    line.process.stdin.close()
    line.process.wait(60)
    return found


def commit_ms(folder: Path, times: int) -> float:
    """One row, flushed to the disk."""
    with sqlite3.connect(folder / "bare.db", isolation_level=None) as db:
        db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE rows (said TEXT);")
        return median_ms(lambda: db.execute("INSERT INTO rows VALUES (?)", ("x" * 500,)), times)


def main(times: int = 300) -> int:
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    with tempfile.TemporaryDirectory(dir=ROOT) as name:
        folder = Path(name)
        server = [*SERVER, str(folder)]
        commit = commit_ms(folder, times)
        direct, behind = calls_ms(server, folder, times), calls_ms([*PROXY, *server], folder, times)
    over = behind - direct - commit
    figures = {"direct_ms": direct, "behind_ms": behind, "commit_ms": commit, "over_one_commit_ms": over}
    print(json.dumps({"calls": times, **{name: round(one, 2) for name, one in figures.items()}, "target": TARGET_MS}))
    told = [
        at_most("what a call through the proxy takes longer, over one commit, p50", over, TARGET_MS),
        Figure("the server alone, p50", f"{direct:.2f} ms"),
        Figure("one commit, p50", f"{commit:.2f} ms"),
    ]
    keep("The durable MCP proxy", "python -m bench.proxy", told, figures)
    return 0 if over <= TARGET_MS else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
