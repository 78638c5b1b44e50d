"""The operator's log: JSON lines in a file that stays small; and progress, passed on to whoever watches.

A line is one line whatever was said in it: control characters are escaped, long texts are cut. Nothing here raises
into the engine: when the disk is full, lines are counted instead, and the count is written once there is room again.
"""

import contextlib
import errno
import json
import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from everstep.domain.ids import Instant, StepPath, TaskId
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.sink import Listener
from everstep.wire.times import to_text

FILE_BYTES_MAX: Final = 10 * 1024 * 1024
FILES: Final = 5
TEXT_CHARS_MAX: Final = 8 * 1024
LINE_BYTES_MAX: Final = 64 * 1024
LISTENERS_MAX: Final = 1000

LEVELS: Final = ("debug", "info", "warning", "error")
OF_AN_ATTEMPT: Final = ("task", "step", "attempt")
"""Fields that stand beside the message, so that the lines of one task can be found."""


class LogSink:
    """Lines to a file, opened with the first one. Any thread may speak."""

    def __init__(self, path: Path, *, level: str = "info", bytes_max: int = FILE_BYTES_MAX) -> None:
        self._path = path
        self._least = LEVELS.index(level)
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._written = 0
        self._lost = 0
        self._listeners: tuple[Listener, ...] = ()

    # Lines

    def note(self, event: str, **fields: JsonValue) -> None:
        """Worth a line in the log; `level` may say how much."""
        level = fields.pop("level", "info")
        self._say(level if isinstance(level, str) and level in LEVELS else "info", event, fields)

    def trouble(self, event: str, error: BaseException, **fields: JsonValue) -> None:
        """Something of ours went wrong; the log keeps the stack."""
        stack = "".join(traceback.format_exception(error))
        said: JsonObject = {**fields, "error": f"{type(error).__name__}: {error}", "stack": stack[-TEXT_CHARS_MAX:]}
        self._say("error", event, said)

    def _say(self, level: str, message: str, fields: JsonObject) -> None:
        if LEVELS.index(level) < self._least:
            return
        line = _line(level, message, fields)
        with self._lock:
            try:
                self._write(line)
            except OSError:
                self._lost += 1
                self._close()

    def _write(self, line: bytes) -> None:
        if self._descriptor is not None and self._written + len(line) > self._bytes_max:
            if self._is_newest(self._descriptor):
                self._shift()
            self._close()
        if self._descriptor is None:
            self._open()
        if self._lost:  # the last one may be there in part
            line = b"\n" + _line("warning", f"{self._lost} lines were lost: the log could not be written", {}) + line
        assert self._descriptor is not None
        written = os.write(self._descriptor, line)
        self._written = os.lseek(self._descriptor, 0, os.SEEK_CUR)  # what others of this folder wrote counts too
        if written < len(line):
            raise OSError(errno.ENOSPC, "no space left")
        self._lost = 0

    def _open(self) -> None:
        for folder in (self._path.parent.parent, self._path.parent):  # `parents` would let others look in above
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._written = os.fstat(self._descriptor).st_size

    def _is_newest(self, descriptor: int) -> bool:
        """Engines of one folder share its log: whoever finds it shifted already goes on in the new one."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        return False

    def _shift(self) -> None:
        """`everstep.log` becomes `everstep.log.1`, and so on; the oldest goes."""
        for number in range(FILES - 1, 0, -1):
            older = numbered(self._path, number - 1)
            if older.exists():
                older.replace(numbered(self._path, number))

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def close(self) -> None:
        """Let go of the file; a later line opens it again."""
        with self._lock:
            self._close()

    # Progress

    def progress(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """How far a running call has come; nobody has to listen."""
        for listener in self._listeners:
            listener.progress(task, step, fraction, text)

    def output(self, task: TaskId, step: StepPath, attempt: int, text: str) -> None:
        """Text that a running call produces; nobody has to listen."""
        for listener in self._listeners:
            listener.output(task, step, attempt, text)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear of progress and output until the returned function is called; beyond the bound nobody more is heard."""
        with self._lock:
            if len(self._listeners) < LISTENERS_MAX:
                self._listeners = (*self._listeners, listener)

        def leave() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return leave


def numbered(path: Path, number: int) -> Path:
    """The log as it was `number` files ago."""
    return path.with_name(f"{path.name}.{number}") if number else path


def _line(level: str, message: str, fields: JsonObject) -> bytes:
    said: JsonObject = {"at": to_text(Instant(time.time_ns() // 1_000_000)), "level": level, "message": _cut(message)}
    said |= {name: fields.get(name) for name in OF_AN_ATTEMPT}
    said["fields"] = {name: _cut(value) for name, value in fields.items() if name not in OF_AN_ATTEMPT}
    text = _spelled(said)
    if len(text) > LINE_BYTES_MAX:
        said["fields"] = {"cut": f"{len(text)} bytes"}
        text = _spelled(said)
    return text + b"\n"


def _spelled(said: JsonObject) -> bytes:
    """One line of ASCII; what a tool said that is no JSON, or never ends, is left out."""
    try:
        text = json.dumps(said, default=str, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps({**said, "fields": {"unreadable": str(error)}}, default=str, separators=(",", ":"))
    return text.replace("\x7f", "\\u007f").encode()


def _cut(value: JsonValue) -> JsonValue:
    return f"{value[:TEXT_CHARS_MAX]}…" if isinstance(value, str) and len(value) > TEXT_CHARS_MAX else value
