"""Where one browser lives: a folder that is emptied after it, a control group, the order for whoever builds its walls.

What stands is known when the walls have been built, never before; the ways out of its network come with it.
"""

import asyncio
import json
import os
import shlex
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from everstep.adapters.browser import inside
from everstep.adapters.isolation.group import Group, Roots, best_roots, new_group, removed
from everstep.adapters.isolation.program import Bounds, Program, order_of
from everstep.adapters.isolation.started import begun_in
from everstep.domain.record import record
from everstep.domain.values import JsonObject

MEMORY_BYTES: Final = 1_000_000_000
COUNTED: Final = ("memory", "pids", "freezer")
FONTS: Final = "/var/cache/fontconfig"
BOUNDS: Final = Bounds(memory_bytes=MEMORY_BYTES, cpu_s=7_200, files=4_096, processes=2_048, address_space=False)
"""For all its pages, for as long as one browser is kept; threads count as processes."""


@record
class Wanted:
    """Around which program, as whom, for how many contexts, with how much memory."""

    program: str
    uid: int | None
    ways: int
    memory_bytes: int = MEMORY_BYTES
    without: tuple[str, ...] = ()
    """Walls that are left out, by name; for tests of what the others hold."""


@dataclass(eq=False)
class Place:
    """One of them."""

    wanted: Wanted
    folder: Path
    group: Group | None
    ways: list[socket.socket] = field(default_factory=list)
    """They listen in the browser's network; each is good for one context."""
    held: JsonObject = field(default_factory=dict)
    """What stands around it."""
    _door: socket.socket = field(default_factory=lambda: socket.socket(socket.AF_UNIX))

    @property
    def program(self) -> str:
        """What to start instead of the browser."""
        return str(self.folder / "browser")

    def furnish(self) -> None:
        """Raises OSError."""
        (self.folder / "home").mkdir(mode=0o700)
        self.folder.chmod(0o700 if self.wanted.uid is None else 0o711)
        words = (sys.executable, "-I", "-S", "-c", begun_in(inside.__name__), str(self.folder))
        Path(self.program).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        Path(self.program).chmod(0o700)
        at = os.open(self.folder, os.O_PATH)
        try:
            self._door.bind(f"/proc/self/fd/{at}/{inside.DOOR}")
        finally:
            os.close(at)
        (self.folder / inside.DOOR).chmod(0o600)
        self._door.listen(1)
        self._door.settimeout(0)

    async def told(self) -> None:
        """Wait for whoever builds the walls, say what is wanted, and hear what stands."""
        loop = asyncio.get_running_loop()
        line, _ = await loop.sock_accept(self._door)
        with line:
            line.settimeout(0)
            await loop.sock_sendall(line, json.dumps(self._order()).encode() + b"\n")
            await _readable(line)
            _, ways, _, _ = socket.recv_fds(line, 1, self.wanted.ways, socket.MSG_CMSG_CLOEXEC)
            self.ways = [socket.socket(fileno=way) for way in ways]
            said = b""
            while not said.endswith(b"\n") and (piece := await loop.sock_recv(line, 4_096)):
                said += piece
        made: JsonObject = json.loads(said)
        self.held = {"level": "limited" if made["missing"] else "restricted", **made}

    def _order(self) -> dict[str, Any]:
        wanted, home = self.wanted, str(self.folder / "home")
        reads = (str(Path(wanted.program).resolve().parent), *([FONTS] if Path(FONTS).is_dir() else []))
        program = Program(
            argv=(wanted.program,),
            cwd=home,
            bounds=BOUNDS,
            uid=wanted.uid,
            reads=reads,
            writes=(home,),
            without=wanted.without,
        )
        order = order_of(program, self.group, None)
        return {**order, "network": "proxy", "ways": wanted.ways, "also": ["mount"], "sandboxes": True, "nice": 0}

    def memory_ran_out(self) -> bool:
        """Whether the kernel had to end something of it."""
        return self.group is not None and self.group.memory_ran_out()

    def close(self) -> None:
        """Nothing of it is left; whoever is still there is ended."""
        import shutil

        for one in (self._door, *self.ways):
            one.close()
        if self.group is not None:
            self.group.kill()
            removed(self.group)
        shutil.rmtree(self.folder, ignore_errors=True)


def place_for(wanted: Wanted) -> Place:
    """A new one; raises OSError where there can be none."""
    import tempfile

    roots = None if "cgroup" in wanted.without else _roots()
    group = new_group(roots, wanted.memory_bytes, BOUNDS.processes)
    place = Place(wanted=wanted, folder=Path(tempfile.mkdtemp(prefix="everstep-browser-")), group=group)
    try:
        place.furnish()
    except OSError:
        place.close()
        raise
    return place


def _roots() -> Roots | None:
    """Without that of CPU time, where it is one of its own: many processes would get the share of one."""
    roots = best_roots()
    return roots and Roots(version=roots.version, folders={name: roots.folders[name] for name in COUNTED})


async def _readable(line: socket.socket) -> None:
    """Descriptors come with the first byte, so it must not be read by somebody who would drop them."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(line, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(line)
