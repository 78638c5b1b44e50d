"""`sim.*` that take too much: memory, CPU time, files, disk, output, processes, time. Each in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from everstep.authoring.tool import FunctionTool, tool


@tool.pure("sim.memory", isolate="process")
def memory(mb: int, hold: float = 0.0) -> dict[str, int]:
    """Allocate so many megabytes, and hold them."""
    kept = bytearray(mb * 1_000_000)
    for at in range(0, len(kept), 4_096):
        kept[at] = 1
    time.sleep(hold)
    return {"mb": len(kept) // 1_000_000}


@tool.pure("sim.cpu", isolate="process")
def cpu(seconds: float) -> dict[str, float]:
    """Burn so many seconds of CPU time."""
    while time.process_time() < seconds:
        pass
    return {"seconds": time.process_time()}


@tool.pure("sim.open", isolate="process")
def open_files(files: int) -> dict[str, int]:
    """Hold so many files open."""
    kept = [os.open(__file__, os.O_RDONLY) for _ in range(files)]
    return {"files": len(kept)}


@tool.idempotent("sim.write", isolate="process")
def write(files: int, bytes: int) -> dict[str, int]:
    """Write so many files of so many bytes."""
    for number in range(files):
        Path(f"sim-{number}").write_bytes(b"\0" * bytes)
    return {"files": files}


@tool.pure("sim.output", isolate="process")
def output(bytes: int) -> dict[str, int]:
    """Print so much."""
    left = bytes
    while left > 0:
        left -= os.write(1, b"x" * min(left, 65_536))
    return {"bytes": bytes}


@tool.pure("sim.fork", isolate="process")
def fork(n: int, setsid: bool = False) -> dict[str, int]:  # noqa: FBT001, FBT002 -- as a plan spells it
    """Start so many processes, perhaps detached, and leave them."""
    for _ in range(n):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=setsid)
    return {"n": n}


@tool.pure("sim.hang", isolate="process")
def hang(ignore_term: bool = False) -> dict[str, str]:  # noqa: FBT001, FBT002 -- as a plan spells it
    """Never end."""
    if ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def hungry_tools() -> tuple[FunctionTool[..., Any], ...]:
    """All of them, for an engine's `tools`."""
    return (memory, cpu, open_files, write, output, fork, hang)
