"""A process and all it started: who they are, and what they have."""

import contextlib
from pathlib import Path

import psutil


def tree(pid: int) -> list[psutil.Process]:
    """A process and all below it."""
    with contextlib.suppress(psutil.Error):
        outer = psutil.Process(pid)
        return [outer, *outer.children(recursive=True)]
    return []


def lives(process: psutil.Process) -> bool:
    """Whether it is still there, and no corpse."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def pss(pid: int) -> int:
    """Its part of what it shares, and all it has alone."""
    return _field(f"/proc/{pid}/smaps_rollup", "Pss:")


def most(pid: int) -> int:
    """The most memory it ever had at once, between two looks too."""
    return _field(f"/proc/{pid}/status", "VmHWM:")


def _field(path: str, name: str) -> int:
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith(name)), 0)
