"""What a trial left behind: the journal read by plain SQL, and three logs of what was really seen.

Standard library only. Nothing here knows how the engine reads its own store: columns and fields are spelled by hand
from the specification, so that a wrong reading on their side cannot excuse itself on ours.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

NOBODY: Final = 0
"""No task has this number: what was deleted leaves one line under it, so that its place is never given again."""
Data: TypeAlias = Mapping[str, Any]
"""JSON that somebody else wrote."""


class Violation(NamedTuple):
    """One broken promise: which check found it, where, and what is wrong there."""

    check: str
    task: str
    seq: int
    what: str


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a journal; `place` is its row key, which rises in commit order."""

    place: int
    task: str
    seq: int
    at: int
    type: str
    step: str | None
    actor: Data
    data: Data


@dataclass(frozen=True, slots=True)
class Row:
    """What the store keeps beside the journal for one task."""

    task: str
    owner: str
    key: str | None
    status: str
    generation: int
    epoch: int
    worker: str | None
    last_seq: int
    recoveries: int
    done: int
    started_at: int | None
    ended_at: int | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class Effect:
    """A call as the world saw it: one line at its start, one at its end.

    `intent` tells whether a reader of the store could see the call's intent when it began; None: nobody looked.
    """

    task: str
    step: str
    attempt: int
    key: str
    pid: int
    incarnation: str
    what: str
    at: int
    intent: bool | None = None
    output: Any = None


@dataclass(frozen=True, slots=True)
class Said:
    """One line of a client: what it asked for, or what it was told. `info` and a missing answer count as neither."""

    what: str
    op: str
    task: str | None = None
    key: str | None = None
    pause: str | None = None
    answer: str | None = None
    status: str | None = None
    outputs: Any = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One event as a subscriber received it; the types `subscribed` and `resync_required` set its cursor to `seq`.

    `durable` tells whether a reader of the store could see the event when it arrived; None: nobody looked.
    """

    task: str
    seq: int
    type: str
    subscriber: str = ""
    durable: bool | None = None


@dataclass(slots=True)
class Journal:
    """The dump of one store, and what was already wrong while reading it."""

    rows: dict[str, Row] = field(default_factory=dict)
    events: dict[str, list[Event]] = field(default_factory=dict)
    pauses: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Pause id -> (task, status)."""
    problems: list[Violation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A process that somebody froze, and when he let it go on."""

    pid: int
    until: int


@dataclass(frozen=True, slots=True)
class Logs:
    """What was seen from outside; empty where nobody looked."""

    effects: tuple[Effect, ...] = ()
    frozen: tuple[Frozen, ...] = ()
    client: tuple[Said, ...] = ()
    streams: tuple[Frame, ...] = ()


_TASKS = """
SELECT num, id, owner, key, status, generation, epoch, worker, last_seq, recoveries, done, started_at, ended_at, outcome
FROM tasks ORDER BY num
"""
_EVENTS = "SELECT id, task, seq, at, type, step, body FROM events ORDER BY id"
_PAUSES = "SELECT id, task, status FROM pauses"


def read_journal(store: Path) -> Journal:
    """The whole store, without a write: the file belongs to its engine."""
    journal = Journal()
    # A store that was killed leaves its WAL behind; a read-only reader sees through it without touching it.
    with contextlib.closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as db:
        for (line,) in db.execute("PRAGMA quick_check"):
            if line != "ok":
                journal.problems.append(Violation("C1", "", 0, f"the file is damaged: {line}"))
        names: dict[int, str] = {}
        for num, *columns in db.execute(_TASKS):
            row = Row(*columns)
            names[num] = row.task
            journal.rows[row.task] = row
            journal.events[row.task] = []
        for place, num, *columns in db.execute(_EVENTS):
            if num == NOBODY:
                continue
            task = names.get(num, f"#{num}")
            event = _event(journal, place, task, tuple(columns))
            journal.events.setdefault(task, []).append(event)
        for pause, num, status in db.execute(_PAUSES):
            journal.pauses[pause] = (names.get(num, f"#{num}"), status)
    return journal


def _event(journal: Journal, place: int, task: str, columns: tuple[Any, ...]) -> Event:
    """One event; its columns, kept for querying, must say what its body says."""
    seq, at, kind, step, body = columns
    said = json.loads(body)
    copies = {"task": task, "seq": seq, "type": kind, "step": step, "at": at}
    told = {**{name: said.get(name) for name in copies}, "at": millis(said.get("at"))}
    if wrong := [f"{name} {copies[name]!r} is not {told[name]!r}" for name in copies if copies[name] != told[name]]:
        journal.problems.append(Violation("C5", task, seq, f"columns differ from the event: {', '.join(wrong)}"))
    return Event(place, task, seq, at, kind, step, said.get("actor") or {}, said.get("data") or {})


def millis(at: object) -> int | None:
    """An instant of the journal."""
    if not isinstance(at, str):
        return None
    return round(datetime.fromisoformat(at).timestamp() * 1000)


def read_effects(path: Path) -> tuple[Effect, ...]:
    """The effect log, in the order in which the world saw it."""
    return tuple(Effect(**_only(Effect, line)) for line in read_lines(path))


def read_on(path: Path, start: int) -> Iterator[tuple[Effect, int]]:
    """Effects that were written after byte `start`, each with the byte behind it."""
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if not line.endswith(b"\n"):
                return
            start += len(line)
            if _whole(line.decode()):
                yield Effect(**_only(Effect, json.loads(line))), start


def read_client(path: Path) -> tuple[Said, ...]:
    """The client log."""
    return tuple(Said(**_only(Said, line)) for line in read_lines(path))


def read_streams(path: Path) -> tuple[Frame, ...]:
    """The stream logs of all subscribers, each in the order of receipt."""
    return tuple(Frame(**_only(Frame, line)) for line in read_lines(path))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """JSON lines; a killed writer may leave one unfinished, which then says nothing."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for line in text.splitlines(keepends=True):
        if _whole(line):
            yield json.loads(line)


def _whole(line: str) -> bool:
    """Whoever writes after an unfinished line ends it with a mark; the mark alone is a line too."""
    return line.endswith("\n") and not line.endswith("#\n")


def _only(kind: type, line: dict[str, Any]) -> dict[str, Any]:
    """The fields we judge; a log may say more."""
    return {name: line[name] for name in kind.__dataclass_fields__ if name in line}  # type: ignore[attr-defined]
