"""Frames of an event stream (interfaces, section 6), each one line of JSON. Only their spelling."""

import json
from collections.abc import Mapping
from typing import Final

from everstep.domain.ids import Instant, Seq, StepPath
from everstep.domain.progress import progress_of
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.ports.store import Journaled
from everstep.wire.times import to_text

HEARTBEAT_S: Final = 15


def hello(state: TaskState, server: str, incarnation: str) -> bytes:
    """The first frame: who answers, and what there is."""
    return _line({
        "type": "hello",
        "v": 1,
        "server": server,
        "incarnation": incarnation,
        "task": state.id,
        "first_seq": 1,
        "head_seq": state.seq,
        "heartbeat_s": HEARTBEAT_S,
    })  # fmt: skip


def snapshot(state: TaskState, task: JsonObject, *, reset: bool) -> bytes:
    """The whole task; events follow from the next seq."""
    return _line({"type": "snapshot", "seq": state.seq, "reset": reset, "task": task})


def resync_required(state: TaskState, reason: str) -> bytes:
    """What was asked for is not there; a snapshot follows."""
    return _line({"type": "resync_required", "reason": reason, "first_seq": 1, "head_seq": state.seq})


def event(journaled: Journaled) -> bytes:
    """One event: the very bytes of the journal."""
    return b'{"type":"event","event":' + journaled.encoded + b"}\n"


def live(seq: Seq) -> bytes:
    """Caught up: what comes now happens now."""
    return _line({"type": "live", "seq": seq})


def tick(state: TaskState, notes: Mapping[StepPath, tuple[float, str | None]], now: Instant) -> bytes:
    """How far it is, between events: volatile."""
    progress = progress_of(state)
    return _line({
        "type": "tick",
        "task": state.id,
        "seq": state.seq,
        "volatile": True,
        "progress": {"fraction": progress.fraction, "done": progress.done, "total": progress.total},
        "estimate": None,
        "steps": [_step(state, path, notes.get(path), now) for path in state.in_flight],
        "usage": None,
    })  # fmt: skip


def _step(state: TaskState, path: StepPath, note: tuple[float, str | None] | None, now: Instant) -> JsonObject:
    fraction, text = note or (None, None)
    elapsed_s = max(0, now - state.open[path].started_at) / 1000
    return {"id": path, "fraction": fraction, "note": text, "elapsed_s": elapsed_s}


def heartbeat(seq: Seq, now: Instant) -> bytes:
    """Nothing happened, and we are still here."""
    return _line({"type": "heartbeat", "seq": seq, "at": to_text(now)})


def bye(reason: str, seq: Seq) -> bytes:
    """The last frame when we end it."""
    return _line({"type": "bye", "reason": reason, "seq": seq})


def _line(frame: JsonObject) -> bytes:
    text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace") + b"\n"
