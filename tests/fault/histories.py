"""Hand-made histories: what an engine could have left behind, written by plain SQL without any engine."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from everstep.torture.checker import Bounds, check
from everstep.torture.history import Effect, Frame, Frozen, Logs, Said, Violation

TASK = "t_one"
W1, W2 = "w_first", "w_second"
Edit = Callable[["History"], object]

SCHEMA = """
CREATE TABLE tasks (
    num INTEGER PRIMARY KEY, id TEXT, owner TEXT, key TEXT, status TEXT, generation INTEGER, epoch INTEGER,
    worker TEXT, last_seq INTEGER, recoveries INTEGER, done INTEGER, started_at INTEGER, ended_at INTEGER, outcome TEXT
);
CREATE TABLE events (id INTEGER PRIMARY KEY, task INTEGER, seq INTEGER, at INTEGER, type TEXT, step TEXT, body TEXT);
CREATE TABLE pauses (id TEXT PRIMARY KEY, task INTEGER, status TEXT);
"""


@dataclass
class Line:
    """An event before it is written; `seq` and `at` follow from its place unless an edit says otherwise."""

    type: str
    step: str | None
    data: dict[str, Any]
    by: str
    seq: int = 0
    at: int = 0


@dataclass
class History:
    """All records of one trial with one task."""

    lines: list[Line] = field(default_factory=list)
    row: dict[str, Any] = field(default_factory=dict)
    pauses: dict[str, str] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    frozen: list[Frozen] = field(default_factory=list)
    client: list[Said] = field(default_factory=list)
    streams: list[Frame] = field(default_factory=list)
    more_rows: list[dict[str, Any]] = field(default_factory=list)
    column: dict[str, Any] = field(default_factory=dict)
    """Overrides of the columns beside every body: what a store would do that keeps two truths."""

    def add(self, kind: str, step: str | None = None, by: str = W1, **data: Any) -> Line:
        line = Line(kind, step, data, by, seq=len(self.lines) + 1, at=1000 + 10 * len(self.lines))
        self.lines.append(line)
        return line

    def intent(self, step: str, number: int, epoch: int, worker: str, **more: str) -> Line:
        said = {"effect": "once", "idempotency_key": f"key-{step}", **more}
        return self.add("attempt.started", step, worker, attempt=number, epoch=epoch, worker=worker, **said)

    def acted(self, step: str, number: int, at: int, incarnation: str, **more: Any) -> None:
        pid = {"one": 11, "two": 22}[incarnation]
        self.effects.append(Effect(TASK, step, number, f"key-{step}", pid, incarnation, "start", at, **more))

    def find(self, kind: str, nth: int = 1) -> Line:
        return [line for line in self.lines if line.type == kind][nth - 1]

    def drop(self, kind: str, nth: int = 1) -> None:
        """Forget an event; what follows moves up, as if it had never been."""
        self.lines.remove(self.find(kind, nth))
        for seq, line in enumerate(self.lines, start=1):
            line.seq = seq
        self.row["last_seq"] = len(self.lines)

    def after(self, kind: str, nth: int = 1) -> list[Line]:
        place = self.lines.index(self.find(kind, nth))
        return self.lines[place + 1 :]

    def write(self, path: Path) -> Path:
        with closing(sqlite3.connect(path)) as db:
            db.executescript(SCHEMA)
            for num, row in enumerate([self.row, *self.more_rows], start=1):
                names = ", ".join(row)
                db.execute(f"INSERT INTO tasks (num, {names}) VALUES (?{', ?' * len(row)})", (num, *row.values()))
            for line in self.lines:
                kept = {"seq": line.seq, "at": line.at, "type": line.type, "step": line.step, **self.column}
                db.execute(
                    "INSERT INTO events (task, seq, at, type, step, body) VALUES (1, ?, ?, ?, ?, ?)",
                    (*kept.values(), json.dumps(body(line))),
                )
            db.executemany("INSERT INTO pauses VALUES (?, 1, ?)", self.pauses.items())
            db.commit()
        return path

    def judged(self, folder: Path, bounds: Bounds | None = None) -> list[Violation]:
        logs = Logs(tuple(self.effects), tuple(self.frozen), tuple(self.client), tuple(self.streams))
        return check(self.write(folder / "store.db"), logs, bounds or Bounds(healed=True))


def body(line: Line) -> dict[str, Any]:
    """The event as it stands in a journal."""
    at = datetime.fromtimestamp(line.at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    by_engine = line.by.startswith("w_")
    actor = {"kind": "system" if by_engine else "human", "id": line.by, "via": "engine" if by_engine else "cli"}
    said = {"task": TASK, "seq": line.seq, "at": at, "type": line.type, "step": line.step, "generation": 1}
    return {**said, "actor": actor, "data": line.data}


def row(history: History, **said: Any) -> dict[str, Any]:
    """The row that belongs to a history; figures are given by hand, so that no second fold is needed here."""
    usual = {
        "id": TASK, "owner": "local", "key": "k", "status": "completed", "generation": 1, "epoch": 1, "worker": None,
        "last_seq": len(history.lines), "recoveries": 0, "done": 2, "started_at": history.lines[1].at,
        "ended_at": history.lines[-1].at, "outcome": "success",
    }  # fmt: skip
    return {**usual, **said}


def crashed() -> History:
    """Two steps; the worker dies inside the second, which is `once`; somebody says it did not happen; all ends well."""
    history = History()
    plan = {"name": "two", "steps": [{"id": "a"}, {"id": "b"}], "finally": []}
    history.add("task.created", by="ana", plan=plan, key="k")
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=1)
    history.intent("a", 1, 1, W1, effect="pure")
    history.add("step.completed", "a", attempt=1, via="tool")
    history.intent("b", 1, 1, W1)
    recover(history, epoch=2)
    history.add("task.started", by=W2, **{"from": "stalled"}, worker=W2, epoch=3)
    history.add("attempt.abandoned", "b", W2, attempt=1, effect_state="unknown", called=True)
    history.add("pause.opened", "b", W2, id="p_1", reason={"type": "uncertainOutcome", "blockedStep": "b"})
    history.add("task.paused", by=W2, pause="p_1", type="uncertainOutcome")
    history.add("pause.answered", "b", "ana", pause="p_1", answer="not_happened")
    history.add("task.resumed", by="ana", pause="p_1", to="queued")
    history.add("task.started", by=W2, **{"from": "queued"}, worker=W2, epoch=4)
    history.intent("b", 2, 4, W2)
    history.add("step.completed", "b", W2, attempt=2, via="tool")
    history.add("task.completed", by=W2, outcome="success", outputs={"value": {"n": 1}})
    history.row = row(history, epoch=4)
    history.pauses = {"p_1": "answered"}
    history.acted("a", 1, 1025, "one", intent=True)
    history.acted("b", 1, 1045, "one", intent=True)
    history.acted("b", 2, 1135, "two", intent=True)
    history.client = [
        Said("invoke", "start", key="k"),
        Said("ok", "start", TASK, "k"),
        Said("ok", "answer", TASK, pause="p_1", answer="not_happened"),
        Said("info", "answer", TASK, pause="p_9", answer="fail"),
        Said("ok", "result", TASK, status="completed", outputs={"n": 1}),
    ]
    history.streams = [Frame(TASK, line.seq, line.type, "s", durable=True) for line in history.lines]
    return history


def recover(history: History, epoch: int, recoveries: int = 1) -> None:
    said: dict[str, Any] = {"from": "running", "reason": "worker_dead", "worker": W1, "steps": []}
    history.add("task.recovered", by=W2, **said, epoch=epoch, recoveries=recoveries)


def retried() -> History:
    """One idempotent step fails four times without an effect, each retry under a new key; then it gives up."""
    history = History()
    plan = {"name": "again", "steps": [{"id": "a"}, {"id": "b"}]}
    history.add("task.created", by="ana", plan=plan, key=None)
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=1)
    for number in range(1, 5):
        history.intent("a", number, 1, W1, effect="idempotent", idempotency_key=f"key-{number}")
        history.add("attempt.failed", "a", attempt=number, effect_state="none", called=True)
    history.add("step.failed", "a", attempt=4)
    history.add("task.failed", error={"code": "http_503"}, skipped=["b"])
    history.row = row(history, status="failed", outcome=None, key=None)
    return history


def cancelled() -> History:
    """A pause, then a cancel in the middle; the plan's `finally` step still does its work."""
    history = History()
    plan = {"name": "stop", "steps": [{"id": "a"}, {"id": "b"}], "finally": [{"id": "tidy"}]}
    history.add("task.created", by="ana", plan=plan, key=None)
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=1)
    history.intent("a", 1, 1, W1)
    history.add("pause.opened", by="ana", id="p_1", reason={"type": "userRequested"})
    history.add("task.pausing", by="ana", pause="p_1")
    history.add("step.completed", "a", attempt=1, via="tool")
    history.add("task.paused", pause="p_1", type="userRequested")
    history.add("pause.answered", by="ana", pause="p_1", answer="resume")
    history.add("task.resumed", by="ana", pause="p_1", to="queued")
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=2)
    history.add("task.cancelling", by="ana")
    history.intent("tidy", 1, 2, W1)
    history.add("step.completed", "tidy", attempt=1, via="tool")
    history.add("task.cancelled", reason="requested", skipped=["b"])
    history.row = row(history, status="cancelled", epoch=2, done=3, outcome=None, key=None)
    history.pauses = {"p_1": "answered"}
    history.acted("a", 1, 1025, "one")
    history.acted("tidy", 1, 1115, "one")
    return history


def reworked() -> History:
    """A step fails; the plan is patched while a question is open; the task is retried with one item of a list kept."""
    history = History()
    plan = {"name": "redo", "steps": [{"id": "a"}, {"id": "l", "for_each": [1, 2]}, {"id": "b"}]}
    history.add("task.created", by="ana", plan=plan, key=None)
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=1)
    history.intent("a", 1, 1, W1)
    history.add("step.completed", "a", attempt=1, via="tool")
    history.add("plan.revised", by="ana", revision=2, diff=[{"op": "set", "id": "b", "step": {"id": "b"}}])
    history.add("step.started", "l", items={"value": [1, 2]})
    for index in range(2):
        history.intent(f"l[{index}]", 1, 1, W1, idempotency_key=f"key-l{index}")
    history.add("step.completed", "l[0]", attempt=1, via="tool")
    history.add("attempt.failed", "l[1]", attempt=1, effect_state="none", called=True)
    history.add("step.failed", "l[1]", attempt=1)
    history.add("step.failed", "l", attempt=None)
    history.add("task.failed", error={"code": "items_failed"}, skipped=["b"])
    said: dict[str, Any] = {
        "generation": 2,
        "from_step": "l",
        "kept": ["a", "l"],
        "superseded": ["l", "b"],
        "arguments": {},
    }
    history.add("task.reopened", by="ana", **said)
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=2)
    history.add("step.started", "l", items={"value": [1, 2]})
    history.intent("l[1]", 2, 2, W1, idempotency_key="key-l1-again")
    history.add("step.completed", "l[1]", attempt=2, via="tool")
    history.add("step.completed", "l", attempt=None)
    history.intent("b", 1, 2, W1)
    history.add("step.completed", "b", attempt=1, via="tool")
    history.add("task.completed", outcome="success", outputs={"value": {}})
    history.row = row(history, generation=2, epoch=2, done=3, key=None)
    return history


def approved() -> History:
    """A gated step: asked about, allowed, called, failed without an effect, called again under the same grant."""
    history = History()
    plan = {"steps": [{"id": "a", "tool": "t", "approve": {"title": "?"}}]}
    history.add("task.created", by="ana", plan=plan, key=None)
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=1)
    call = {"tool": "t", "tool_version": "1", "input": {"value": {}, "digest": "sha256:one"}}
    reason = {"type": "approvalRequired"}
    history.add("pause.opened", "a", id="p_1", reason=reason, call=call, expires_at="1970-01-01T00:00:10.000Z")
    history.add("task.paused", pause="p_1", type="approvalRequired")
    history.add("pause.answered", "a", "ana", pause="p_1", answer="approve", digest="sha256:one")
    history.add("task.resumed", by="ana", pause="p_1", to="queued")
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=2)
    granted = {"tool": "t", "tool_version": "1", "input": {"digest": "sha256:one"}, "approval": "p_1"}
    for number in (1, 2):
        line = history.intent("a", number, 2, W1, idempotency_key=f"key-{number}")
        line.data.update(granted)
        if number == 1:
            history.add("attempt.failed", "a", attempt=number, effect_state="none", called=True)
    history.add("step.completed", "a", attempt=2, via="tool")
    history.add("task.completed", outcome="success", outputs={"value": {}})
    history.row = row(history, epoch=2, done=1, key=None)
    history.pauses = {"p_1": "answered"}
    return history
