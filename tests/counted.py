"""Work, counted instead of timed, so that the machine does not matter."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import apsw

import everstep

HOME = str(Path(everstep.__file__).parent)
LOOP, WRITER, READER = "MainThread", "everstep-writer", "everstep-reader"


class Counted:
    """What is done while it is open: our own functions by the thread they run in, and SQLite's statements."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.statements: list[str] = []
        self._open = False
        threading.setprofile(self._look)  # threads that begin from now on; a writer begins with its store

    def begin(self, writer: apsw.Connection) -> None:
        writer.trace_v2(apsw.SQLITE_TRACE_STMT, lambda said: self.statements.append(said["sql"]))
        self._open = True
        sys.setprofile(self._look)

    def end(self) -> None:
        self._open = False
        sys.setprofile(None)
        threading.setprofile(None)

    def _look(self, frame: FrameType, event: str, _argument: object) -> None:
        if self._open and event == "call" and frame.f_code.co_filename.startswith(HOME):
            self.calls[threading.current_thread().name.partition("_")[0]] += 1


@contextmanager
def counting() -> Iterator[Counted]:
    counted = Counted()
    try:
        yield counted
    finally:
        counted.end()


def writer_of(desk: Any) -> apsw.Connection:
    """The connection that a desk's store writes with; what looks at tasks by the clock is stopped: it is no part."""
    for watch in desk._runtime.duties._watches:
        watch.cancel()
    connection: apsw.Connection = desk._kit.store._hold.ledger._desk.connection
    return connection


def flushes_of(desk: Any) -> int:
    """How often it waited for the disk."""
    return int(desk._kit.store._hold.writes.tally.flushes)
