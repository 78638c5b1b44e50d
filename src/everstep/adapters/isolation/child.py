"""A program under supervision: started behind walls, watched, and ended with all it started.

The process handle says when it has ended, never the end of its output: a grandchild may hold the pipe for ever.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final, TypeAlias

import psutil

from everstep.adapters.isolation import launcher
from everstep.adapters.isolation.tree import lives, most, pss, tree
from everstep.domain.record import record
from everstep.domain.values import JsonObject

LAUNCHER: Final = launcher.__file__
OUTPUT_BYTES: Final = 1 << 20
GRACE_S: Final = 5.0
CONFIRM_S: Final = 2.0
DRAIN_S: Final = 0.5
LOOK_S: Final = (0.05, 0.5)
"""How often a child is looked at: at first, and after ten seconds."""
Heard: TypeAlias = Callable[[bytes], None]
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@record
class Bounds:
    """What one attempt may use."""

    memory_bytes: int = 512_000_000
    cpu_s: float = 600.0
    files: int = 256
    processes: int = 64
    file_bytes: int = 1 << 30
    output_bytes: int = OUTPUT_BYTES
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


@record
class Ended:
    """How it ended, what it said, what it used, and what held it."""

    exit_code: int | None
    signal: int | None
    stdout: Stream
    stderr: Stream
    over: tuple[str, float, float] | None
    """The limit it broke: name, used, allowed."""
    wall_s: float
    cpu_s: float
    memory_peak_bytes: int
    containment: JsonObject | None
    refused: tuple[str, ...] = ()
    """Walls that could not be built, so it did not begin."""
    gone: bool = True
    """Whether nothing of it is left."""
    answer: bytes = b""


class Child:
    """One program, from start to end."""

    def __init__(self, program: Program, *, answers: bool = False, heard: Heard | None = None) -> None:
        """With `heard`, it is one that stays and talks: what it prints goes there, `say` is what it reads."""
        self._program = program
        self._answers = answers
        self._talks = heard is not None
        self._stdin: IO[bytes] | None = None
        self._unsent = bytearray(program.stdin)
        self._out = Stream(program.bounds.output_bytes) if heard is None else Spoken(0, told=heard)
        self._err = Stream(program.bounds.output_bytes)
        self._said = Stream(program.bounds.output_bytes * 16)
        self._report = Stream(4_096)
        self._over: tuple[str, float, float] | None = None
        self._peak = 0
        self._cpu_s = 0.0
        self._seen: dict[int, psutil.Process] = {}

    async def run(self) -> Ended:
        """Start it and wait for its end; cancelled, it is ended with all it started."""
        loop, began = asyncio.get_running_loop(), time.monotonic()
        pipes = [os.pipe() for _ in range(3 if self._answers else 2)]
        handed = [pipes[0][0], *(pipe[1] for pipe in pipes[1:])]
        process = subprocess.Popen(  # noqa: ASYNC220, S603 -- a start takes a millisecond; a thread would cost more
            [sys.executable, "-I", "-S", LAUNCHER, *map(str, handed)],
            stdin=subprocess.PIPE if self._program.stdin or self._talks else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=handed,
            env={"PATH": PATH},
            close_fds=True,
        )
        for descriptor in handed:
            os.close(descriptor)
        handle = os.pidfd_open(process.pid)
        ended = asyncio.Event()
        loop.add_reader(handle, ended.set)
        streams = [(process.stdout, self._out), (process.stderr, self._err)]
        streams += [(os.fdopen(pipes[1][0], "rb"), self._report)]
        streams += [(os.fdopen(pipes[2][0], "rb"), self._said)] if self._answers else []
        for pipe, stream in streams:
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            loop.add_reader(pipe.fileno(), self._read, pipe.fileno(), stream)
        try:
            self._order(pipes[0][1], process, handed[2:])
            await self._watch(process, ended, began)
        except asyncio.CancelledError:
            await asyncio.shield(self._end(process, ended))
            raise
        finally:
            gone = await self._end(process, ended)
            self._reap(process, gone=gone)
            await self._drain(streams)
            loop.remove_reader(handle)
            os.close(handle)
            for pipe, _ in streams:
                assert pipe is not None
                loop.remove_reader(pipe.fileno())
                pipe.close()
            self._close_stdin()
        return self._ended(process, began, gone=gone)

    def _order(self, pipe: int, process: "subprocess.Popen[bytes]", kept: list[int]) -> None:
        program, bounds = self._program, self._program.bounds
        answer = {"EVERSTEP_ANSWER": str(kept[0])} if kept else {}
        order = {
            "argv": program.argv,
            "cwd": program.cwd,
            "env": {
                "PATH": PATH,
                "LANG": "C.UTF-8",
                "HOME": program.cwd,
                "TMPDIR": program.cwd,
                **program.env,
                **answer,
            },
            "network": program.network,
            "uid": program.uid,
            "reads": program.reads,
            "writes": program.writes,
            "without": program.without,
            "require": program.require,
            "nice": 5,
            "rlimits": {
                **(
                    {"AS": max(4 * bounds.memory_bytes, bounds.memory_bytes + (1 << 30))}
                    if bounds.address_space
                    else {}
                ),
                "CPU": int(bounds.cpu_s) + 2,
                "FSIZE": bounds.file_bytes,
                "NOFILE": bounds.files,
                "NPROC": bounds.processes,
            },
        }
        with os.fdopen(pipe, "wb") as file:
            file.write(json.dumps(order).encode())
        if process.stdin is not None:
            self._stdin = process.stdin
            os.set_blocking(process.stdin.fileno(), False)
            self._send()

    def say(self, words: bytes) -> None:
        """Something for it to read; lost if it has ended."""
        self._unsent += words
        if self._stdin is not None:
            self._send()

    def _send(self) -> None:
        """As much as the pipe takes; the rest when there is room again."""
        assert self._stdin is not None
        loop = asyncio.get_running_loop()
        try:
            while self._unsent:
                del self._unsent[: os.write(self._stdin.fileno(), self._unsent[:65_536])]
        except BlockingIOError:
            loop.add_writer(self._stdin.fileno(), self._send)
            return
        except OSError:
            self._unsent.clear()
        loop.remove_writer(self._stdin.fileno())
        if not self._talks:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            asyncio.get_running_loop().remove_writer(self._stdin.fileno())
            with contextlib.suppress(OSError):
                self._stdin.close()
            self._stdin = None

    def _read(self, descriptor: int, stream: Stream) -> None:
        try:
            piece = os.read(descriptor, 1 << 18)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if piece:
            stream.feed(piece)
        else:
            asyncio.get_running_loop().remove_reader(descriptor)

    async def _watch(self, process: "subprocess.Popen[bytes]", ended: asyncio.Event, began: float) -> None:
        """Look at it until it has ended, or used more than it may."""
        while not ended.is_set():
            await asyncio.to_thread(self._look, process.pid)
            if self._over is not None:
                return
            every = LOOK_S[time.monotonic() - began > 10]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), every)

    def _look(self, pid: int) -> None:
        """Memory as it is shared out, CPU time and number of the whole tree."""
        family = tree(pid)
        self._seen.update({one.pid: one for one in family})
        memory, cpu = 0, 0.0
        for one in family:
            with contextlib.suppress(psutil.Error, OSError):
                times = one.cpu_times()
                cpu += times.user + times.system
                if LAUNCHER not in one.cmdline():  # the walls themselves do not count
                    memory += pss(one.pid)
                    self._peak = max(self._peak, most(one.pid))
        self._peak, self._cpu_s = max(self._peak, memory), max(self._cpu_s, cpu)
        bounds = self._program.bounds
        for name, used, limit in (
            ("memory", memory, bounds.memory_bytes),
            ("cpu_time", cpu, bounds.cpu_s),
            ("processes", len(family), bounds.processes),
        ):
            if used > limit:
                self._over = (name, used, limit)
                return

    async def _end(self, process: "subprocess.Popen[bytes]", ended: asyncio.Event) -> bool:
        """Kill whatever is left of it; whether all of it is gone."""
        until = time.monotonic() + CONFIRM_S
        while True:
            left = await asyncio.to_thread(self._kill, process.pid)
            if ended.is_set() and not left:
                return True
            if time.monotonic() > until:
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), 0.02)
            await asyncio.sleep(0.005)

    def _kill(self, pid: int) -> bool:
        """The tree, the inner ones first: the outermost ends by itself, and then says what all of them used."""
        family = tree(pid)
        self._seen.update({one.pid: one for one in family})
        alive = [one for one in self._seen.values() if lives(one)]
        for one in alive:
            if one.pid != pid or len(alive) == 1:
                with contextlib.suppress(psutil.Error, OSError):
                    one.send_signal(signal.SIGKILL)
        return bool(alive)

    async def _drain(self, streams: list[tuple[Any, Stream]]) -> None:
        """What is still in the pipes, but not for long: somebody may hold their other end."""
        until = time.monotonic() + DRAIN_S
        for pipe, stream in streams:
            while time.monotonic() < until:
                try:
                    piece = os.read(pipe.fileno(), 1 << 18)
                except OSError:
                    break
                if not piece:
                    break
                stream.feed(piece)

    def _reap(self, process: "subprocess.Popen[bytes]", *, gone: bool) -> None:
        """What the kernel counted, of it and all it waited for."""
        with contextlib.suppress(ChildProcessError):
            _, status, used = os.wait4(process.pid, 0 if gone else os.WNOHANG)
            process.returncode = os.waitstatus_to_exitcode(status)
            self._cpu_s = max(self._cpu_s, used.ru_utime + used.ru_stime)

    def _ended(self, process: "subprocess.Popen[bytes]", began: float, *, gone: bool) -> Ended:
        code = process.returncode
        number = code - 128 if code is not None and 128 < code <= 192 else None
        held = self.held()
        lacking = held["missing"] if held else None
        refused = (
            tuple(map(str, lacking)) if self._program.require == "restricted" and isinstance(lacking, list) else ()
        )
        return Ended(
            exit_code=code if number is None else None,
            signal=number,
            stdout=self._out,
            stderr=self._err,
            over=self._over,
            wall_s=time.monotonic() - began,
            cpu_s=self._cpu_s,
            memory_peak_bytes=self._peak,
            containment=held,
            refused=refused,
            gone=gone,
            answer=bytes(self._said.data),
        )

    def held(self) -> JsonObject | None:
        """What really stands around it; None until it has begun."""
        try:
            made = json.loads(bytes(self._report.data))
        except ValueError:
            return None
        level = "limited" if made["missing"] else "restricted"
        return {"level": level, "cgroup": "none", "browser_sandbox": None, **made}
