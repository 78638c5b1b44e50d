"""What is left when mixed tasks have ended, over kills: nothing.

python -m tests.fault.leftovers [--tasks 100] [--kills 10]     the whole campaign
python -m tests.fault.leftovers carry FOLDER TASKS             one life of it; ends when all tasks have
"""

import argparse
import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import psutil

from everstep import Ctx, Engine, Plan, tool
from everstep.adapters.isolation.group import best_roots
from everstep.domain.values import JsonObject

NAP: Final = "617"
"""Sleeps of programs that nobody waits for: how they are found."""


@tool.idempotent("left.large")
async def large(n: int, *, ctx: Ctx) -> dict[str, str]:
    """A value that is kept by its content, after a moment; goes on where it was."""
    await ctx.checkpoint(n)
    await asyncio.sleep(0.02)
    return {"text": f"{n} " * 20_000}


@tool.idempotent("left.apart", isolate="process")
def apart(n: int, *, ctx: Ctx) -> int:
    """In a process of its own, which leaves another one behind."""
    subprocess.Popen(["sleep", NAP], start_new_session=True)
    Path(ctx.workdir, f"apart-{n}").write_text("x")
    time.sleep(0.05)
    return n


def plan_of(n: int) -> Plan:
    plan = Plan("left")
    match n % 4:
        case 0:
            plan.step("a", "file.write", {"path": f"out/{n}.txt", "text": "x" * 200_000})
            plan.step("b", "file.write", {"path": f"out/{n}.txt", "text": "y" * 200_000})
        case 1:
            plan.step("a", "left.large", {"n": n}, retry=1)
            plan.step("b", "left.large", {"n": n + 1})
        case 2:
            script = f"setsid sleep {NAP} & sleep 0.1; echo done"
            plan.step("a", "shell.run", {"argv": ["sh", "-c", script]}, on_uncertain="retry")
        case _:
            plan.step("a", "left.apart", {"n": n})
            plan.step("b", "wait", {"for": "50ms"})
    return plan


async def carry(folder: Path, tasks: int) -> None:
    """One life: the same tasks by the same keys, until all have ended."""
    config: JsonObject = {
        "workspace": str(folder / "work"),
        "containment.uid_base": 0,
        "engine.max_recoveries": 1000,  # here nobody is to blame for the kills
        "log_level": "error",
        "shell.commands": {"sh": {"program": "/bin/sh", "arguments": ["-c", "(?s).*"], "effect": "idempotent"}},
    }
    async with Engine(folder / "store" / "s.db", tools=[large, apart], config=config) as engine:
        every = [await engine.start(plan_of(n), key=f"left-{n}") for n in range(tasks)]
        ended = [await task.result() for task in every]
    others = sorted({f", {one.status}: {one.error}" for one in ended if one.status != "completed"})
    sys.stdout.write(f"{sum(one.status == 'completed' for one in ended)} completed{''.join(others)}")


def campaign(folder: Path, tasks: int, kills: int, seed: int = 1) -> list[str]:
    """Play it, and say what is left."""
    for name in ("work", "store", "tmp"):
        (folder / name).mkdir()
    draw = random.Random(seed)
    command = [sys.executable, "-m", "tests.fault.leftovers", "carry", str(folder), str(tasks)]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    said = b""
    for life in range(kills + 1):
        engine = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        if life < kills:
            before = ended(folder)
            until = time.monotonic() + 120
            while engine.poll() is None and time.monotonic() < until and ended(folder) < before + tasks // (kills + 2):
                time.sleep(draw.random() * 0.05)
            engine.send_signal(signal.SIGKILL)
        said, _ = engine.communicate(timeout=600)
    return [*([] if said == f"{tasks} completed".encode() else [f"ended with {said!r}"]), *left(folder)]


def ended(folder: Path) -> int:
    return (
        len(rows(folder, "SELECT 1 FROM tasks WHERE ended_at IS NOT NULL")) if (folder / "store/s.db").exists() else 0
    )


def rows(folder: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{folder / 'store/s.db'}?mode=ro", uri=True, timeout=30)
    try:
        return connection.execute(query).fetchall()
    except sqlite3.OperationalError:  # before its first migration
        return []
    finally:
        connection.close()


def left(folder: Path) -> list[str]:
    """Processes, groups, temporary files, leases, listeners: each in words."""
    found = [f"process {one.pid}" for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", NAP]]
    roots = best_roots()
    groups = {*roots.folders.values()} if roots is not None else set()
    dead = [
        one
        for place in groups
        for one in place.glob("everstep-[0-9]*")
        if not Path(f"/proc/{one.name.split('-')[1]}").exists()
    ]
    found += [f"group {one}" for one in dead]
    found += [f"temporary {one.relative_to(folder)}" for one in (folder / "tmp").rglob("*")]
    hidden = [one for place in ("work", "store") for one in (folder / place).rglob("*") if temporary(one)]
    found += [f"temporary {one.relative_to(folder)}" for one in hidden]
    found += [f"lease {task}" for (task,) in rows(folder, "SELECT id FROM tasks WHERE worker IS NOT NULL")]
    found += [f"not ended {task}" for (task,) in rows(folder, "SELECT id FROM tasks WHERE ended_at IS NULL")]
    found += [f"listener {task}" for (task,) in rows(folder, "SELECT task FROM listeners")]
    found += [
        f"worker {one}"
        for (one,) in rows(folder, "SELECT id FROM workers WHERE released_at IS NULL AND fenced_at IS NULL")
    ]
    return found


def temporary(path: Path) -> bool:
    return path.is_file() and (".begun" in path.parts or path.name.startswith(".") or path.suffix == ".tmp")


def main() -> int:
    if sys.argv[1:2] == ["carry"]:
        asyncio.run(carry(Path(sys.argv[2]), int(sys.argv[3])))
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--kills", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everstep-left-") as folder:
        found = campaign(Path(folder), given.tasks, given.kills)
    print(f"{given.tasks} tasks, {given.kills} kills: {len(found)} left over", *found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
