"""A program under supervision: started behind walls, watched, and ended with all it started.

The process handle says when it has ended, never the end of its output: a grandchild may hold the pipe for ever.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Coroutine
from typing import IO, Any, Final, TypeVar

from everstep.adapters.isolation.group import best_roots, new_group
from everstep.adapters.isolation.program import Bounds, Heard, Program, Spoken, Stream, order_of
from everstep.adapters.isolation.started import Started, start
from everstep.adapters.isolation.watch import Over, Watch
from everstep.domain.record import record
from everstep.domain.values import JsonObject

__all__ = ["Bounds", "Child", "Ended", "Program"]

T = TypeVar("T")
CONFIRM_S: Final = 2.0
DRAIN_S: Final = 0.5
LOOK_S: Final = (0.05, 0.5)
"""How often a child is looked at: at first, and after ten seconds."""


@record
class Ended:
    """How it ended, what it said, what it used, and what held it."""

    exit_code: int | None
    signal: int | None
    stdout: Stream
    stderr: Stream
    over: Over | None
    wall_s: float
    cpu_s: float
    memory_peak_bytes: int
    disk_bytes: int
    files: int | None
    containment: JsonObject | None
    refused: tuple[str, ...] = ()
    """Walls that could not be built, so it did not begin."""
    begun: bool = True
    """False: the launcher could not become it."""
    gone: bool = True
    """Whether nothing of it is left."""


class Child:
    """One program, from start to end."""

    def __init__(
        self,
        program: Program,
        *,
        answered: Heard | None = None,
        heard: Heard | None = None,
        started: Started | None = None,
    ) -> None:
        """With `heard`, it is one that stays and talks: what it prints goes there, `say` is what it reads.

        With `answered` it answers on a line of its own, and may be told more on the way.
        """
        self._program = program
        self._started = started
        self._answers = answered is not None
        self._talks = heard is not None or self._answers
        self._stdin: IO[bytes] | None = None
        self._unsent = bytearray(program.stdin)
        self._out = Stream(program.bounds.output_bytes) if heard is None else Spoken(0, told=heard)
        self._err = Stream(program.bounds.output_bytes)
        self._said = Spoken(0, told=answered) if answered is not None else None
        self._report = Stream(4_096)
        roots = None if "cgroup" in program.without else best_roots()
        self._group = new_group(roots, program.bounds.memory_bytes, program.bounds.processes)
        self._watched = Watch(program.bounds, self._group)
        self._began = time.monotonic()
        self.ended: Ended | None = None
        """Once it has, of its own will or not."""

    async def run(self) -> Ended:
        """Start it and wait for its end; cancelled, it is ended with all it started."""
        loop = asyncio.get_running_loop()
        started = self._started or start(stdin=bool(self._program.stdin) or self._talks, answers=self._answers)
        process = started.process
        handle = os.pidfd_open(process.pid)
        ended = asyncio.Event()
        loop.add_reader(handle, ended.set)
        streams = [(process.stdout, self._out), (process.stderr, self._err)]
        streams += [(os.fdopen(started.report, "rb"), self._report)]
        if self._said is not None and started.answers is not None:
            streams.append((os.fdopen(started.answers, "rb"), self._said))
        for pipe, stream in streams:
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            loop.add_reader(pipe.fileno(), self._read, pipe.fileno(), stream)
        try:
            self._order(started)
            await self._watch(process, ended)
        finally:
            await to_its_end(self._close(process, ended, handle, streams))
        assert self.ended is not None
        return self.ended

    async def _close(
        self, process: "subprocess.Popen[bytes]", ended: asyncio.Event, handle: int, streams: list[tuple[Any, Stream]]
    ) -> None:
        """End what is left of it, read what it still said, let go of everything."""
        loop = asyncio.get_running_loop()
        gone = await self._end(process, ended)
        self._reap(process, gone=gone)
        await asyncio.to_thread(self._watched.close)
        await self._drain(streams)
        loop.remove_reader(handle)
        os.close(handle)
        for pipe, _ in streams:
            loop.remove_reader(pipe.fileno())
            pipe.close()
        self._close_stdin()
        self.ended = self._judged(process, gone=gone)

    def _order(self, started: Started) -> None:
        process = started.process
        order = order_of(self._program, self._group, started.answers_there)
        with contextlib.suppress(BrokenPipeError), os.fdopen(started.orders, "wb") as file:
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

    async def _watch(self, process: "subprocess.Popen[bytes]", ended: asyncio.Event) -> None:
        """Look at it until it has ended, or used more than it may."""
        while not ended.is_set():
            self._watched.inside = (self.held() or {}).get("cgroup") != "none"
            await asyncio.to_thread(self._watched.look, process.pid)
            self._watched.tell()
            if self._watched.over is not None:
                return
            every = LOOK_S[time.monotonic() - self._began > 10]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), every)

    async def _end(self, process: "subprocess.Popen[bytes]", ended: asyncio.Event) -> bool:
        """Kill whatever is left of it; whether all of it is gone."""
        began = time.monotonic()
        while True:
            late = time.monotonic() - began
            left = await asyncio.to_thread(self._watched.kill, process.pid, whole=late > CONFIRM_S / 2)
            if ended.is_set() and not left:
                return True
            if late > CONFIRM_S:
                return False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), 0.02)
            await asyncio.sleep(0.005)

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
            self._watched.counted(used.ru_utime + used.ru_stime)

    def _judged(self, process: "subprocess.Popen[bytes]", *, gone: bool) -> Ended:
        code = process.returncode
        number = code - 128 if code is not None and 128 < code <= 192 else None
        _, *later = self._reported()
        self._watched.wrote(sum(int(str(one.get("disk_bytes", 0))) for one in later))
        self._watched.had(max((int(str(one.get("memory_bytes", 0))) for one in later), default=0))
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
            over=self._watched.over,
            wall_s=time.monotonic() - self._began,
            cpu_s=self._watched.cpu_s,
            memory_peak_bytes=self._watched.peak_bytes,
            disk_bytes=self._watched.disk_bytes,
            files=self._watched.files,
            containment=held,
            refused=refused,
            begun=not any("begun" in one for one in later),
            gone=gone,
        )

    def held(self) -> JsonObject | None:
        """What really stands around it; None until it has begun."""
        made = self._reported()[0]
        if "missing" not in made:
            return None
        level = "limited" if made["missing"] else "restricted"
        return {"level": level, "cgroup": "none", "browser_sandbox": None, **made}

    def _reported(self) -> list[JsonObject]:
        """What the launcher said: first what stands, then perhaps that it could not begin, at last what was written."""
        lines = bytes(self._report.data).split(b"\n")[:-1]
        return [json.loads(line) for line in lines] or [{}]


async def to_its_end(work: Coroutine[object, object, T]) -> T:
    """Let it finish, however often somebody cancels meanwhile; whoever did is heard afterwards."""
    doing, cancelled = asyncio.ensure_future(work), False
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    return doing.result()
