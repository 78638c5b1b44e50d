"""A watch over one program and all it starts: what they use, whether that is too much, and their end.

Where there is a control group the kernel counts and stops; else the tree is looked at many times a second.
"""

import contextlib
import signal
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import psutil

from everstep.adapters.isolation.group import Group, removed
from everstep.adapters.isolation.program import Bounds
from everstep.adapters.isolation.tree import lives, most, open_files, parent, pss, tree

BUSY_CPU_S: Final = 10.0
"""A program that has used so much is given half a core."""
Over: TypeAlias = tuple[str, float, float]


@dataclass
class Watch:
    """What was seen so far."""

    bounds: Bounds
    group: Group | None = None
    inside: bool = True
    """Whether the program is in the group, as the launcher says."""
    over: Over | None = None
    """The limit it broke: name, used, allowed."""
    now_bytes: int = 0
    peak_bytes: int = 0
    cpu_s: float = 0.0
    disk_bytes: int = 0
    files: int | None = None
    """The most that one of them had open; None: it was over before anybody looked."""
    _seen: dict[int, psutil.Process] = field(default_factory=dict)

    def look(self, pid: int) -> None:
        """Memory, CPU time and number of the whole tree."""
        family = tree(pid)
        self._seen.update({one.pid: one for one in family})
        inner = family[2:]  # the walls themselves do not count: keeper and init
        self.files = max((self.files or 0, *(open_files(one.pid) for one in inner))) or None
        used = self._in_group(self.group) if self.group is not None and self.inside else self._in_tree(family, inner)
        self._judge(used)
        self._judge_together()

    def tell(self) -> None:
        """How much of the memory is in use: its own, or that of all attempts of its task."""
        bounds = self.bounds
        if bounds.nearing is not None:
            bounds.nearing("memory", self.now_bytes, bounds.memory_bytes)
            if bounds.together is not None:
                bounds.nearing("memory", bounds.together.total, bounds.together.max_bytes)

    def _judge_together(self) -> None:
        """All attempts of a task have a limit too; whoever takes more when it is reached is ended."""
        together = self.bounds.together
        if together is not None and self.over is None:
            total = together.has(id(self), self.now_bytes)
            self.over = ("memory", total, together.max_bytes) if total > together.max_bytes else None

    def _judge(self, used: dict[str, float]) -> None:
        bounds = self.bounds
        limits = {
            "memory": bounds.memory_bytes,
            "cpu_time": bounds.cpu_s,
            "processes": bounds.processes,
        }
        broken = ((name, used[name], limit) for name, limit in limits.items() if used[name] > limit)
        self.over = self.over or next(broken, None)

    def _in_group(self, group: Group) -> dict[str, float]:
        self.cpu_s = max(self.cpu_s, group.cpu_s())
        self.now_bytes = group.memory()
        self.peak_bytes = max(self.peak_bytes, self.now_bytes)
        if self.cpu_s > BUSY_CPU_S:
            group.throttle()
        return {
            "cpu_time": self.cpu_s,
            "memory": self._wanted(self.bounds.memory_bytes, group.memory_ran_out()),
            "processes": self._wanted(self.bounds.processes, group.forks_refused()),
        }

    def _wanted(self, limit: int, refused: bool) -> int:  # noqa: FBT001
        """The kernel gives no more than the limit, but says that more was asked for."""
        return limit + 1 if refused else 0

    def _in_tree(self, family: list[psutil.Process], inner: list[psutil.Process]) -> dict[str, float]:
        memory, cpu = 0, 0.0
        for one in family:
            with contextlib.suppress(psutil.Error, OSError):
                times = one.cpu_times()
                cpu += times.user + times.system
        for one in inner:
            with contextlib.suppress(psutil.Error, OSError):
                memory += pss(one.pid)
                self.peak_bytes = max(self.peak_bytes, most(one.pid))
        self.now_bytes = memory
        self.peak_bytes, self.cpu_s = max(self.peak_bytes, memory), max(self.cpu_s, cpu)
        return {"memory": memory, "cpu_time": cpu, "processes": len(family)}

    def kill(self, pid: int, *, whole: bool) -> bool:
        """The tree; but its keeper and init end by themselves, and say what all used, unless that takes too long."""
        if self.group is not None:
            self.group.kill()
        self._seen.update({one.pid: one for one in tree(pid)})
        alive = [one for one in self._seen.values() if lives(one)]
        inner = [one for one in alive if one.pid != pid and parent(one) != pid]
        for one in alive if whole else inner or alive[1:]:
            with contextlib.suppress(psutil.Error, OSError):
                one.send_signal(signal.SIGKILL)
        return bool(alive)

    def wrote(self, disk_bytes: int) -> None:
        """What its keeper has counted; it ends whoever writes more than it may."""
        self.disk_bytes = disk_bytes
        if disk_bytes > self.bounds.disk_bytes:
            self.over = self.over or ("disk", disk_bytes, self.bounds.disk_bytes)

    def counted(self, cpu_s: float) -> None:
        """What the kernel says all of them have used, walls included; a group knows better."""
        if self.group is None or not self.inside:
            self.cpu_s = max(self.cpu_s, cpu_s)

    def had(self, memory_bytes: int) -> None:
        """The most that one of them had, as its keeper has heard: all there is of what nobody looked at in time."""
        if self.group is None or not self.inside:
            self.peak_bytes = self.peak_bytes or memory_bytes

    def close(self) -> None:
        """It has ended: what the group counted is kept, and the group removed."""
        if self.bounds.together is not None:
            self.bounds.together.now.pop(id(self), None)
        if self.group is None:
            return
        if self.inside:
            self._judge(self._in_group(self.group))
            self.peak_bytes = max(self.peak_bytes, self.group.peak())
        removed(self.group)
