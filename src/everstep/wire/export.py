"""Tasks and events as tables and lines, for other programs. Piece by piece: nothing here holds two of them."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from everstep.domain.states import StepStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.times import maybe_text

Cell: TypeAlias = str | int | float | None

MEDIA_TYPES: Final = {
    "csv": "text/csv; charset=utf-8; header=present",
    "json": "application/json",
    "jsonl": "application/jsonl",
}
TASK_COLUMNS: Final = (
    "id", "title", "plan", "status", "outcome", "created_at", "started_at", "ended_at", "duration_s", "work_s",
    "steps", "completed", "failed", "skipped", "retries", "error_code",
)  # fmt: skip
EVENT_COLUMNS: Final = (
    "task",
    "seq",
    "at",
    "type",
    "step",
    "generation",
    "actor_kind",
    "actor_id",
    "actor_via",
    "data",
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet take a text for a formula."""


class Writer:
    """One export: how it begins, each item, how it ends."""

    def __init__(self, format: str, columns: Sequence[str]) -> None:
        self._format = format
        self._columns = columns
        self._first = True

    def begin(self) -> bytes:
        """Before the first item."""
        return {"csv": csv_line(self._columns), "json": b"[", "jsonl": b""}[self._format]

    def item(self, whole: JsonObject, cells: Sequence[Cell]) -> bytes:
        """One of them: its cells in a table, the whole of it otherwise."""
        if self._format == "csv":
            return csv_line(cells)
        text = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")
        if self._format == "jsonl":
            return text + b"\n"
        before, self._first = b"\n" if self._first else b",\n", False
        return before + text

    def end(self) -> bytes:
        """After the last one."""
        return b"\n]\n" if self._format == "json" else b""


def csv_line(cells: Sequence[Cell]) -> bytes:
    """One record of RFC 4180; no text of it is taken for a formula."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow([_guarded(cell) for cell in cells])
    return line.getvalue().encode(errors="backslashreplace")


def _guarded(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def task_cells(state: TaskState) -> tuple[Cell, ...]:
    """A task in a row; a retry is every call of a step after its first."""
    ended = [state.steps[path].status for path in state.steps if path in state.specs]
    retries = sum(max(step.attempts - 1, 0) for step in state.steps.values())
    length_s = None if state.ended_at is None else (state.ended_at - state.created_at) / 1000
    return (
        state.id,
        state.title,
        state.plan.name,
        state.status.value,
        state.outcome,
        *(maybe_text(at) for at in (state.created_at, state.started_at, state.ended_at)),
        length_s,
        state.work_ms / 1000,
        len(state.specs),
        *(ended.count(status) for status in (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED)),
        retries,
        None if state.error is None else state.error.failure.code,
    )


def event_cells(event: JsonObject) -> tuple[Cell, ...]:
    """An event in a row; its data as JSON."""
    actor = event.get("actor")
    who = actor if isinstance(actor, dict) else {}
    data = json.dumps(event.get("data"), ensure_ascii=False, separators=(",", ":"))
    named = (event.get(name) for name in EVENT_COLUMNS[:6])
    return (*_cells(named), *_cells(who.get(name) for name in ("kind", "id", "via")), data)


def _cells(values: Iterator[JsonValue]) -> Iterator[Cell]:
    return (value if isinstance(value, str | int | float) else None for value in values)
