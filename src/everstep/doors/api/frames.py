"""Frames of an event stream (interfaces, section 6): their spelling. Each is spelled once, whoever gets it."""

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from everstep.domain.ids import Instant, Seq, StepPath
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.facade.watching import Notice
from everstep.ports.store import Journaled
from everstep.wire.estimate import Outlook, estimate_json, progress_json
from everstep.wire.times import to_text

Place: TypeAlias = Seq | str
"""Where a stream is: the seq of a task, or the cursor of all tasks."""
Notes: TypeAlias = Mapping[StepPath, tuple[float, str | None]]
"""What running calls said of how far they are."""

VERSION: Final = 1


class Frame:
    """One frame; every form of it is made at most once, and shared. `place` is set on events: where they lead to."""

    __slots__ = ("_sse", "_text", "data", "place", "type")

    def __init__(self, type: str, data: bytes, place: Place | None = None) -> None:
        self.type = type
        self.data = data
        self.place = place
        self._text: str | None = None
        self._sse: bytes | None = None

    @property
    def line(self) -> bytes:
        """As a line of its own."""
        return self.data + b"\n"

    @property
    def text(self) -> str:
        """As a WebSocket message."""
        if self._text is None:
            self._text = self.data.decode()
        return self._text

    @property
    def sse(self) -> bytes:
        """As a server-sent event."""
        if self.type == "heartbeat":
            return b": hb\n\n"
        if self._sse is None:
            name = b"" if self.place is None else b"id: %s\n" % str(self.place).encode()
            self._sse = b"event: %s\n%sdata: %s\n\n" % (self.type.encode(), name, self.data)
        return self._sse


def hello(server: str, incarnation: str, heartbeat_s: float, **what: str | int) -> Frame:
    """The first frame: who answers, and what there is."""
    beat = int(heartbeat_s) if heartbeat_s.is_integer() else heartbeat_s
    said: JsonObject = {"v": VERSION, "server": server, "incarnation": incarnation, **what, "heartbeat_s": beat}
    return _frame("hello", said)


def snapshot(seq: Seq, task: JsonObject, *, reset: bool) -> Frame:
    """The whole task; events follow from the next seq."""
    return _frame("snapshot", {"seq": seq, "reset": reset, "task": task})


def resync_required(reason: str, **ends: int | str | None) -> Frame:
    """What was asked for is not there; what follows begins anew."""
    return _frame("resync_required", {"reason": reason, **ends})


def event(journaled: Journaled) -> Frame:
    """One event: the very bytes of the journal."""
    return Frame("event", b'{"type":"event","event":%s}' % journaled.encoded, journaled.seq)


def event_at(cursor: str, journaled: Journaled) -> Frame:
    """The same in the stream of all tasks."""
    data = b'{"type":"event","cursor":"%s","event":%s}' % (cursor.encode(), journaled.encoded)
    return Frame("event", data, cursor)


def live(place: Place) -> Frame:
    """Caught up: what comes now happens now."""
    return _frame("live", _at(place))


def tick(state: TaskState, outlook: Outlook, notes: Notes, now: Instant) -> Frame:
    """How far it is, and what is left, between events: volatile."""
    return _frame("tick", {
        "task": state.id,
        "seq": state.seq,
        "volatile": True,
        "progress": progress_json(state, outlook),
        "estimate": estimate_json(outlook.task),
        "steps": [_step(state, path, notes.get(path), now) for path in state.in_flight],
        "usage": None,
    })  # fmt: skip


def _step(state: TaskState, path: StepPath, note: tuple[float, str | None] | None, now: Instant) -> JsonObject:
    fraction, text = note or (None, None)
    elapsed_s = max(0, now - state.open[path].started_at) / 1000
    return {"id": path, "fraction": fraction, "note": text, "elapsed_s": elapsed_s}


def output(state: TaskState, call: tuple[StepPath, int], n: int, text: str) -> Frame:
    """Text that a running call produced: volatile; `n` counts, so that a gap shows."""
    step, attempt = call
    said: JsonObject = {"step": step, "attempt": attempt, "n": n, "text": text}
    return _frame("output", {"task": state.id, "seq": state.seq, "volatile": True, **said})


def notice(told: Notice) -> Frame:
    """Something changed that is no event of a task."""
    return _frame("notice", {"topic": told.topic, "data": told.data})


def heartbeat(place: Place, now: Instant) -> Frame:
    """Nothing happened, and we are still here."""
    return _frame("heartbeat", {**_at(place), "at": to_text(now)})


def bye(reason: str, place: Place) -> Frame:
    """The last frame when we end it."""
    return _frame("bye", {"reason": reason, **_at(place)})


def _at(place: Place) -> JsonObject:
    return {"cursor": place} if isinstance(place, str) else {"seq": place}


def _frame(type: str, said: JsonObject) -> Frame:
    text = json.dumps({"type": type, **said}, ensure_ascii=False, separators=(",", ":"))
    return Frame(type, text.encode(errors="backslashreplace"))
