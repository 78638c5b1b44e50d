"""What to run, where, what it may use, behind which walls; and what becomes of its output."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TypeAlias

from everstep.adapters.isolation.group import Group
from everstep.domain.record import record

OUTPUT_BYTES: Final = 1 << 20
BEYOND_BYTES: Final = 1 << 16
"""One file can grow so far past the limit that it shows."""
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Heard: TypeAlias = Callable[[bytes], None]


@dataclass(eq=False)
class Together:
    """Memory of all live attempts of one task."""

    max_bytes: int
    now: dict[int, int] = field(default_factory=dict)
    _looking: Lock = field(default_factory=Lock)

    def has(self, who: int, memory_bytes: int) -> int:
        """One of them has so much now; what they have in all. If that is too much it is ended, and counts no more:
        the others, who are looked at in other threads, need not end with it.
        """
        with self._looking:
            self.now[who] = memory_bytes
            total = self.total
            if total > self.max_bytes:
                del self.now[who]
            return total

    @property
    def total(self) -> int:
        """What all of them have now."""
        return sum(self.now.values())


@record
class Bounds:
    """What one attempt may use."""

    memory_bytes: int = 512_000_000
    cpu_s: float = 600.0
    files: int = 256
    processes: int = 64
    disk_bytes: int = 1 << 30
    """Written in all."""
    output_bytes: int = OUTPUT_BYTES
    nearing: Callable[[str, float, float], None] | None = None
    """Whom to tell how much of its memory is in use."""
    together: Together | None = None
    """What all attempts of its task may have at the same time."""
    address_space: bool = True
    """Whether reserved addresses count; some interpreters reserve far more than they use."""


@record
class Program:
    """What to run, where, and behind which walls."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    bounds: Bounds = Bounds()
    network: bool = False
    uid: int | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """Folders it may change; the others it can at most read."""
    require: str = ""
    """`restricted`: it does not begin unless all walls stand."""
    without: tuple[str, ...] = ()
    """Walls that are left out, by name; for tests of what the others hold."""


@dataclass
class Stream:
    """Output: the first part of it, and the size and hash of all."""

    most: int
    data: bytearray = field(default_factory=bytearray)
    size_bytes: int = 0
    digest: Any = field(default_factory=hashlib.sha256)

    def feed(self, piece: bytes) -> None:
        """Some more."""
        self.size_bytes += len(piece)
        self.digest.update(piece)
        self.data += piece[: max(0, self.most - len(self.data))]


@dataclass
class Spoken(Stream):
    """Output that somebody listens to; nothing of it is kept."""

    told: Heard = lambda _: None

    def feed(self, piece: bytes) -> None:
        """Some more."""
        self.size_bytes += len(piece)
        self.told(piece)


def order_of(program: Program, group: Group | None, answers: int | None) -> dict[str, Any]:
    """What the launcher is told."""
    bounds = program.bounds
    answer = {} if answers is None else {"EVERSTEP_ANSWER": str(answers)}
    usual = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": program.cwd, "TMPDIR": program.cwd}
    watched = {"NPROC": bounds.processes}
    if bounds.address_space:
        watched["AS"] = max(4 * bounds.memory_bytes, bounds.memory_bytes + (1 << 30))
    return {
        "argv": program.argv,
        "cwd": program.cwd,
        "env": {**usual, **program.env, **answer},
        "network": "host" if program.network else "none",
        "uid": program.uid,
        "reads": program.reads,
        "writes": program.writes,
        "without": program.without,
        "require": program.require,
        "nice": 5,
        "disk": bounds.disk_bytes,
        "group": None if group is None else {"version": group.version, "doors": group.doors},
        "rlimits": {"CPU": int(bounds.cpu_s) + 2, "FSIZE": bounds.disk_bytes + BEYOND_BYTES, "NOFILE": bounds.files},
        "without_group": watched,
    }
