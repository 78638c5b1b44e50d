"""What files were before a call changed them: kept beneath the workspace, durable before the change is made.

One entry per idempotency key. A repeat of the call reads it: what is as it should become is done, what is as it was is
done now, anything else is somebody else's and is left alone. Taking back reads the same entry the other way round.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from everstep.adapters.files import FileState
from everstep.domain.record import record

FOLDER: Final = Path(".everstep") / "undo"
UNDO_BYTES: Final = 1 << 30
UNDO_WINDOW_S: Final = 86_400.0
TEMPORARY: Final = ".tmp"
ABANDONED_S: Final = 3600.0
"""Nobody writes so long: what is still unfinished then was left by a process that died."""


@record
class Change:
    """One path: what it was, what it becomes."""

    path: str
    pre: FileState
    post: FileState
    moved_from: str | None = None
    """A folder that comes from there, as a whole."""


class UndoJournal:
    """The entries of one workspace."""

    def __init__(self, workdir: Path, *, bytes_max: int, window_s: float) -> None:
        self._folder = workdir / FOLDER
        self._bytes_max = bytes_max
        self._window_s = window_s

    def read(self, key: str) -> list[Change] | None:
        """The changes of a call; None: there is no entry, or no more."""
        try:
            told = json.loads(self._entry(key).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return [_change(one) for one in told["changes"]]

    def keep(self, key: str, changes: list[Change], before: dict[str, bytes]) -> None:
        """Write down what was, and only then return."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._purge(sum(map(len, before.values())))
        for number, change in enumerate(changes):
            if change.path in before:
                _write(self._image(key, number), before[change.path])
        told = {"changes": [_told(change) for change in changes], "at": time.time()}
        _write(self._entry(key), json.dumps(told).encode())
        with _opened(self._folder) as folder:
            os.fsync(folder)

    def image(self, key: str, number: int) -> bytes:
        """The content before; raises FileNotFoundError when it is no longer kept."""
        return self._image(key, number).read_bytes()

    def forget(self, key: str) -> None:
        """It was taken back."""
        for file in self._folder.glob(f"{_name(key)}*"):
            with suppress(FileNotFoundError):
                file.unlink()

    def _entry(self, key: str) -> Path:
        return self._folder / f"{_name(key)}.json"

    def _image(self, key: str, number: int) -> Path:
        return self._folder / f"{_name(key)}.{number}"

    def _purge(self, more: int) -> None:
        """The oldest go first: what is too old, then what is too much."""
        files = sorted(self._files(), key=lambda one: one[0].st_mtime)
        total, now = more + sum(status.st_size for status, _ in files), time.time()
        for status, file in files:
            if total <= self._bytes_max and now - status.st_mtime <= self._window_s:
                return
            total -= status.st_size
            with suppress(FileNotFoundError):
                file.unlink()

    def _files(self) -> Iterator[tuple[os.stat_result, Path]]:
        """What is kept; others write here too, so a file may be gone by the time it is looked at."""
        for file in self._folder.iterdir():
            with suppress(FileNotFoundError):
                status = file.stat()
                if file.suffix != TEMPORARY or time.time() - status.st_mtime > ABANDONED_S:
                    yield status, file


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_suffix(path.suffix + TEMPORARY)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.rename(path)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _told(change: Change) -> dict[str, Any]:
    def state(one: FileState) -> list[Any]:
        return [one.kind, one.sha256, one.mode, one.mtime_ns]

    return {"path": change.path, "pre": state(change.pre), "post": state(change.post), "moved_from": change.moved_from}


def _change(told: dict[str, Any]) -> Change:
    def state(one: list[Any]) -> FileState:
        return FileState(kind=one[0], sha256=one[1], mode=one[2], mtime_ns=one[3])

    return Change(path=told["path"], pre=state(told["pre"]), post=state(told["post"]), moved_from=told["moved_from"])
