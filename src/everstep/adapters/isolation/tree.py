"""A process and all it started: who they are, and what they have."""

import contextlib
from pathlib import Path

import psutil


def tree(pid: int) -> list[psutil.Process]:
    """A process and all below it, it first."""
    found, pending = [], [pid]
    while pending:
        one = pending.pop(0)
        with contextlib.suppress(psutil.Error, OSError):
            found.append(psutil.Process(one))
            pending += _children(one)
    return found


def _children(pid: int) -> list[int]:
    """As the kernel lists them, thread by thread."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += map(int, (thread / "children").read_text().split())
    return found


def lives(process: psutil.Process) -> bool:
    """Whether it is still there, and no corpse."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def parent(process: psutil.Process) -> int:
    """Whose child it is; 0 if it is gone."""
    try:
        return process.ppid()
    except psutil.Error:
        return 0


def pss(pid: int) -> int:
    """Its part of what it shares, and all it has alone."""
    return _field(f"/proc/{pid}/smaps_rollup", "Pss:") * 1024


def most(pid: int) -> int:
    """The most memory it ever had at once, between two looks too."""
    return _field(f"/proc/{pid}/status", "VmHWM:") * 1024


def open_files(pid: int) -> int:
    """How many files it has open."""
    with contextlib.suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return 0


def _field(path: str, name: str) -> int:
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(name)), 0)
