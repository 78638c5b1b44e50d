"""Control groups: what the kernel itself keeps a program to, all it starts included. v2, else v1, else none.

Which of them there is, is found by making one: a mounted v2 without controllers is none. Groups are made below the one
this process is in, so that nobody gets out of what stands around us.
"""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final, Literal, TypeAlias

from everstep.domain.record import record

Version: TypeAlias = Literal["v2", "v1"]

CONTROLLERS: Final = ("memory", "cpu", "pids")
ALSO_IN_V1: Final = ("cpuacct", "freezer")
PERIOD_US: Final = 100_000
SHARE: Final = 0.5
"""Of a core, for a program that has worked for long."""
REMOVE_S: Final = 2.0
_PREFIX: Final = "everstep-"
_HOME: Final = f"{_PREFIX}home"
"""Where we go when our own group of v2 is to have groups: the kernel lets it have members or controlled groups."""
_serial = count(1)


@record
class Roots:
    """Where groups can be made: a folder per controller; of v2 they are all the same."""

    version: Version
    folders: Mapping[str, Path]


@dataclass
class Group:
    """The group of one attempt."""

    version: Version
    folders: Mapping[str, Path]
    throttled: bool = False

    @property
    def doors(self) -> list[str]:
        """Files by which a process enters it."""
        return [str(folder / "cgroup.procs") for folder in dict.fromkeys(self.folders.values())]

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Raises OSError."""
        if self.version == "v2":
            self._write("memory", "memory.max", memory_bytes)
            self._write("pids", "pids.max", processes)
            with contextlib.suppress(OSError):  # a kernel without swap has no such file
                self._write("memory", "memory.swap.max", 0)
            return
        self._write("memory", "memory.limit_in_bytes", memory_bytes)
        self._write("pids", "pids.max", processes)
        with contextlib.suppress(OSError):
            self._write("memory", "memory.memsw.limit_in_bytes", memory_bytes)

    def throttle(self) -> None:
        """From now on half a core."""
        if self.throttled:
            return
        self.throttled, quota = True, round(PERIOD_US * SHARE)
        with contextlib.suppress(OSError):
            if self.version == "v2":
                self._write("cpu", "cpu.max", f"{quota} {PERIOD_US}")
            else:
                self._write("cpu", "cpu.cfs_period_us", PERIOD_US)
                self._write("cpu", "cpu.cfs_quota_us", quota)

    def cpu_s(self) -> float:
        """What all in it have used."""
        if self.version == "v2":
            return self._field("cpu", "cpu.stat", "usage_usec") / 1e6
        return self._number("cpuacct", "cpuacct.usage") / 1e9

    def memory(self) -> int:
        """What all in it have now, but for files that the system keeps at hand."""
        if self.version == "v2":
            return self._field("memory", "memory.stat", "anon") + self._field("memory", "memory.stat", "shmem")
        return self._field("memory", "memory.stat", "total_rss") + self._field("memory", "memory.stat", "total_shmem")

    def peak(self) -> int:
        """The most it had, between two looks too, but for files that the system still keeps at hand."""
        if self.version == "v2":
            most, kept = self._number("memory", "memory.peak"), self._field("memory", "memory.stat", "file")
        else:
            most = self._number("memory", "memory.max_usage_in_bytes")
            kept = self._field("memory", "memory.stat", "total_cache")
        return max(0, most - kept)

    def memory_ran_out(self) -> bool:
        """Whether the kernel had to end something in it."""
        if self.version == "v2":
            return self._field("memory", "memory.events", "oom_kill") > 0
        return self._field("memory", "memory.oom_control", "oom_kill") > 0

    def forks_refused(self) -> bool:
        """Whether it wanted more processes than it may have."""
        return self._field("pids", "pids.events", "max") > 0

    def members(self) -> list[int]:
        """Who is in it."""
        with contextlib.suppress(OSError):
            return [int(pid) for pid in (self.folders["pids"] / "cgroup.procs").read_text().split()]
        return []

    def kill(self) -> None:
        """All at once, so that nobody gets away by forking."""
        with contextlib.suppress(OSError):
            if self.version == "v2":
                self._write("pids", "cgroup.kill", 1)
                return
            self._write("freezer", "freezer.state", "FROZEN")
        for pid in self.members():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._write("freezer", "freezer.state", "THAWED")

    def remove(self) -> bool:
        """Whether it is gone; not while somebody is in it."""
        left = False
        for folder in dict.fromkeys(self.folders.values()):
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                left = True
        return not left

    def _write(self, controller: str, name: str, value: object) -> None:
        (self.folders[controller] / name).write_text(str(value))

    def _number(self, controller: str, name: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int((self.folders[controller] / name).read_text())
        return 0

    def _field(self, controller: str, name: str, field: str) -> int:
        return _field_of(self.folders[controller] / name, field)


def _field_of(file: Path, field: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            word, _, value = line.partition(" ")
            if word == field:
                return int(value)
    return 0


def new_group(roots: Roots | None, memory_bytes: int, processes: int) -> Group | None:
    """A group with these limits; None where there are none."""
    if roots is None:
        return None
    name = f"{_PREFIX}{os.getpid()}-{next(_serial)}"
    group = Group(roots.version, {controller: folder / name for controller, folder in roots.folders.items()})
    try:
        for folder in dict.fromkeys(group.folders.values()):
            folder.mkdir()
        group.limit(memory_bytes, processes)
    except OSError:
        group.remove()
        return None
    return group


@cache
def best_roots() -> Roots | None:
    """The strongest kind that works here; groups that a dead process has left are removed."""
    for candidate in candidates(Path("/proc/self/mountinfo"), Path("/proc/self/cgroup")):
        if works(candidate):
            _sweep(candidate)
            return candidate
    return None


def works(roots: Roots) -> bool:
    """Whether a group can be made, limited and throttled, by doing it."""
    group = new_group(roots, 64 << 20, 8)
    if group is None:
        return False
    group.throttle()
    quota = "cpu.max" if roots.version == "v2" else "cpu.cfs_quota_us"
    try:
        return (group.folders["cpu"] / quota).read_text().startswith(str(round(PERIOD_US * SHARE)))
    except OSError:
        return False
    finally:
        group.remove()


def candidates(mounts: Path, own: Path) -> Iterator[Roots]:
    """v2, then v1, each if all that is needed is mounted."""
    v1: dict[str, Path] = {}
    for name, here in _own_groups(mounts, own):
        if name:
            v1[name] = here
        elif _controls(here):
            yield Roots(version="v2", folders=dict.fromkeys((*CONTROLLERS, *ALSO_IN_V1), here))
    if all(name in v1 for name in (*CONTROLLERS, *ALSO_IN_V1)):
        yield Roots(version="v1", folders={name: v1[name] for name in (*CONTROLLERS, *ALSO_IN_V1)})


def _own_groups(mounts: Path, own: Path) -> Iterator[tuple[str, Path]]:
    """The groups this process is in: by controller, and that of v2 without a name."""
    try:
        lines, places = mounts.read_text().splitlines(), own.read_text().splitlines()
    except OSError:
        return
    mine = {name: path for _, names, path in (line.split(":", 2) for line in places) for name in names.split(",")}
    for line in lines:
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup2":
            yield "", _inside(Path(point), root, mine.get("", "/").removesuffix(f"/{_HOME}"))
        elif kind == "cgroup":
            yield from ((name, _inside(Path(point), root, mine[name])) for name in options.split(",") if name in mine)


def memory_group(mounts: Path = Path("/proc/self/mountinfo"), own: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The group whose memory this process lives on, if it is in one that is limited."""
    known = ((name, here) for name, here in _own_groups(mounts, own) if name in ("", "memory"))
    return next((here for _, here in known if left_in(here) is not None), None)


def left_in(folder: Path) -> tuple[int, int] | None:
    """How much memory its members may still take, and how much in all; None if that is not limited."""
    for most, used, idle in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with contextlib.suppress(OSError, ValueError):
            limit = int((folder / most).read_text())
            files = _field_of(folder / "memory.stat", idle)
            return max(0, limit - int((folder / used).read_text()) + files), limit
    return None


def _inside(point: Path, root: str, path: str) -> Path:
    """The folder of a group, where a part of the tree is mounted."""
    inner = path.removeprefix(root) if root != "/" else path
    return point / inner.lstrip("/")


def _controls(folder: Path) -> bool:
    """Whether groups below this one of v2 are given controllers."""
    control, wanted = folder / "cgroup.subtree_control", " ".join(f"+{name}" for name in CONTROLLERS)
    with contextlib.suppress(OSError):
        try:
            control.write_text(wanted)
        except OSError as error:
            if error.errno == errno.EBUSY and step_aside(folder):
                control.write_text(wanted)
    with contextlib.suppress(OSError):
        return set(CONTROLLERS) <= set(control.read_text().split())
    return False


def step_aside(folder: Path) -> bool:
    """Out of our own group into one below it; whether nobody is left. Strangers are not moved.

    So a service that was given its group (systemd's `Delegate=yes`, a container) can limit what it starts.
    """
    import psutil

    ours = {os.getpid(), *(one.pid for one in psutil.Process().children(recursive=True))}
    if os.getppid() == 1:  # the init of a container
        ours.add(1)
    here = {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
    if folder.name.startswith(_PREFIX) or not here <= ours:
        return False
    home = folder / _HOME
    home.mkdir(exist_ok=True)
    for pid in here:
        (home / "cgroup.procs").write_text(str(pid))
    return True


def _sweep(roots: Roots) -> None:
    for folder in dict.fromkeys(roots.folders.values()):
        with contextlib.suppress(OSError):
            for entry in folder.glob(f"{_PREFIX}*"):
                pid = entry.name.removeprefix(_PREFIX).partition("-")[0]
                if not Path(f"/proc/{pid}").exists():
                    with contextlib.suppress(OSError):
                        entry.rmdir()


def removed(group: Group, wait: Callable[[float], None] = time.sleep) -> bool:
    """Remove it as soon as the last one has left; whether that was soon."""
    until = time.monotonic() + REMOVE_S
    while not group.remove():
        if time.monotonic() > until:
            return False
        wait(0.005)
    return True
