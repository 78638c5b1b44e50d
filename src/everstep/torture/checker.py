"""The history checker: judges what a trial left behind, from four records that no engine can embellish.

Standard library only, and of ours only its own files: a mistake shared with the engine would never be found.

    python -m everstep.torture.checker STORE [--effects F] [--client F] [--streams F] [--json]
"""

import argparse
import base64
import binascii
import json
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from everstep.torture.approvals import check_approvals
from everstep.torture.effects import check_bounds, check_effect_rule, check_effects
from everstep.torture.fold import fold
from everstep.torture.history import (
    Frame,
    Journal,
    Logs,
    Row,
    Said,
    Violation,
    read_client,
    read_effects,
    read_journal,
    read_streams,
)
from everstep.torture.moves import TERMINAL
from everstep.torture.rework import check_children, check_compensations
from everstep.torture.state import State

PROOF: Final = {
    "start": ("task.created",),
    "pause": ("pause.opened", "task.pausing", "task.paused"),
    "resume": ("task.resumed",),
    "cancel": ("task.cancelling", "task.cancelled"),
    "answer": ("pause.answered",),
    "retry": ("task.reopened",),
    "patch": ("plan.revised",),
}
"""What a client was told, and the events of which one must then be there."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Settings of the judged engine; `healed`: faults have stopped long enough for all work to be done."""

    retries: int = 3
    max_recoveries: int = 5
    healed: bool = False


def check(store: Path, logs: Logs | None = None, bounds: Bounds | None = None) -> list[Violation]:
    """Everything that these records can tell; an empty list is a pass."""
    return list(judge(read_journal(store), logs or Logs(), bounds or Bounds()))


def judge(journal: Journal, logs: Logs, bounds: Bounds) -> Iterator[Violation]:
    """All checks over one history."""
    yield from journal.problems
    states = {task: fold(task, events, bounds.max_recoveries) for task, events in journal.events.items()}
    for task, state in states.items():
        if task in journal.rows:
            compare(state, journal.rows[task], journal.pauses)
        else:
            state.blame("C5", 0, "the journal of a task without a row")
        yield from state.problems
        yield from check_effect_rule(state)
        yield from check_bounds(state, bounds.retries)
        yield from check_approvals(state)
        if bounds.healed:
            yield from _finished(state)
    yield from _shared_keys(states)
    yield from check_compensations(journal.events)
    yield from check_children(journal.events)
    yield from _keys(journal, logs.client)
    yield from check_effects(states, logs.effects, logs.frozen)
    yield from _told(states, logs.client)
    yield from _received(states, logs.streams)


def compare(state: State, row: Row, pauses: Mapping[str, tuple[str, str]]) -> None:
    """The rows kept for querying say exactly what the journal says."""
    folded = {
        "status": state.status,
        "generation": state.generation,
        "epoch": state.epoch,
        "worker": state.worker,
        "last_seq": max((event.seq for event in state.events), default=0),
        "recoveries": state.recoveries,
        "done": state.done,
        "started_at": state.started_at,
        "ended_at": state.ended_at,
        "outcome": state.outcome,
    }
    last = folded["last_seq"]
    assert isinstance(last, int)
    for name, value in folded.items():
        if getattr(row, name) != value:
            state.blame("C5", last, f"the row has {name} {getattr(row, name)!r}, the journal {value!r}")
    if row.status in TERMINAL and row.ended_at is None:
        state.blame("C5", last, f"{row.status} without ended_at")
    kept = {pause: status for pause, (task, status) in pauses.items() if task == state.task}
    told = {pause.id: pause.status for pause in state.pauses.values()}
    for name in sorted(kept.keys() | told.keys()):
        if kept.get(name) != told.get(name):
            state.blame("C5", last, f"pause {name} is {kept.get(name)} in its row, {told.get(name)} in the journal")


def _shared_keys(states: dict[str, State]) -> Iterator[Violation]:
    """C10: a receiver drops what it has seen before, so no idempotency key may serve two steps."""
    users: dict[str, tuple[str, str]] = {}
    for task, state in states.items():
        for step in state.steps.values():
            for attempt in step.attempts:
                user = (task, step.path)
                if users.setdefault(attempt.key, user) != user:
                    what = f"steps {step.path} and {users[attempt.key][1]} share the key {attempt.key}"
                    yield Violation("C10", task, attempt.begun.seq, what)


def _keys(journal: Journal, client: Iterable[Said]) -> Iterator[Violation]:
    """C11: one key, one task, for the store and for everybody who was told a task's id."""
    owners: dict[tuple[str, str], str] = {}
    for row in journal.rows.values():
        if row.key is not None and owners.setdefault((row.owner, row.key), row.task) != row.task:
            yield Violation("C11", row.task, 0, f"the key {row.key} also belongs to {owners[row.owner, row.key]}")
    told: dict[str, str] = {}
    for said in client:
        acknowledged = said.what == "ok" and said.op == "start"
        if acknowledged and said.key and said.task and told.setdefault(said.key, said.task) != said.task:
            yield Violation("C11", said.task, 0, f"the key {said.key} was answered with {told[said.key]} before")


def _told(states: dict[str, State], client: Iterable[Said]) -> Iterator[Violation]:
    """C1: what a client was told is in the journal."""
    for said in client:
        if said.what != "ok" or said.task is None:
            continue
        state = states.get(said.task)
        if state is None:
            yield Violation("C1", said.task, 0, f"{said.op} was acknowledged, but there is no such task")
        elif said.op == "result":
            yield from _told_result(state, said)
        elif said.op in PROOF and not any(
            event.type in PROOF[said.op]
            and (said.pause is None or event.data.get("pause", event.data.get("id")) == said.pause)
            and (said.answer is None or event.data.get("answer") == said.answer)
            for event in state.events
        ):
            yield Violation("C1", said.task, 0, f"{said.op} {said.pause or ''} was acknowledged, but is not recorded")


def _told_result(state: State, said: Said) -> Iterator[Violation]:
    if said.status not in TERMINAL:
        return
    ends = [event for event in state.events if event.type == f"task.{said.status}"]
    if not ends:
        yield Violation("C1", state.task, 0, f"a client was told {said.status}, which is not recorded")
    for event in ends:
        kept = event.data.get("outputs") or {}
        if said.outputs is not None and "value" in kept and kept["value"] != said.outputs:
            yield Violation("C1", state.task, event.seq, "a client was told other outputs than are recorded")


def _received(states: dict[str, State], frames: Iterable[Frame]) -> Iterator[Violation]:
    """C1 and C7: a subscriber gets c+1, c+2, … and nothing that is not in the journal."""
    cursors: dict[tuple[str, str], int] = {}
    known = {(event.task, event.seq): event.type for state in states.values() for event in state.events}
    for frame in frames:
        line = (frame.subscriber, frame.task)
        last = cursors.get(line, 0)
        if frame.type in {"subscribed", "resync_required"}:
            cursors[line] = frame.seq
            continue
        cursors[line] = max(last, frame.seq)
        if frame.durable is False:
            yield Violation("C1", frame.task, frame.seq, f"{frame.type} was published before it was durable")
        if (frame.task, frame.seq) not in known:
            yield Violation("C1", frame.task, frame.seq, f"{frame.type} was received, but is not in the journal")
        elif known[frame.task, frame.seq] != frame.type:
            what = f"received as {frame.type}, recorded as {known[frame.task, frame.seq]}"
            yield Violation("C7", frame.task, frame.seq, what)
        if frame.seq > last + 1:
            yield Violation("C7", frame.task, frame.seq, f"{last + 1} to {frame.seq - 1} were skipped")
        elif frame.seq <= last:
            yield Violation("C7", frame.task, frame.seq, f"came after {last}")


def _finished(state: State) -> Iterator[Violation]:
    """C14: with faults gone, only a question may keep a task from its end."""
    asks = any(pause.status == "open" for pause in state.pauses.values())
    if state.status not in TERMINAL and not (state.status == "paused" and asks):
        last = state.events[-1] if state.events else None
        what = f"still {state.status}; the last event is {last.type if last else 'none'}"
        yield Violation("C14", state.task, last.seq if last else 0, what)


def check_processes(pids: Iterable[int]) -> Iterator[Violation]:
    """C12: no process of a trial outlives it."""
    for pid in pids:
        if _alive(pid):
            yield Violation("C12", "", 0, f"process {pid} is still there")


def _alive(pid: int) -> bool:
    """Whether it exists and is more than an entry nobody has collected yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:  # it went away meanwhile, or there is no /proc to ask
        return not stat.parent.parent.joinpath("self").exists()


def check_canary(folder: Path, secret: str) -> Iterator[Violation]:
    """C13: a secret is in no file, in none of the forms in which it could travel."""
    forms = _forms(secret)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        for name, form in forms.items():
            if form in content:
                yield Violation("C13", "", 0, f"the secret stands in {path.relative_to(folder)}, {name}")
                break


def _forms(secret: str) -> dict[str, bytes]:
    raw = secret.encode()
    forms = {
        "as it is": raw,
        "in hexadecimal": binascii.hexlify(raw),
        "URL-escaped": quote(secret, safe="").encode(),
        "JSON-escaped": json.dumps(secret)[1:-1].encode(),
        "in UTF-16": secret.encode("utf-16-le"),
    }
    for offset in range(3):
        # What precedes it shifts the text; the characters touched by neighbours are left out at both ends.
        coded = base64.b64encode(b"\0" * offset + raw)
        whole = coded[(offset * 8 + 5) // 6 : (offset + len(raw)) * 8 // 6]
        forms[f"in base64, offset {offset}"] = whole
        forms[f"in URL-safe base64, offset {offset}"] = whole.translate(bytes.maketrans(b"+/", b"-_"))
    return forms


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge one store; 0: no violation, 1: violations, 2: it could not be read."""
    parser = argparse.ArgumentParser(prog="everstep.torture.checker", description=check.__doc__)
    parser.add_argument("store", type=Path, help="the SQLite file")
    parser.add_argument("--effects", type=Path, help="effect log, JSON lines")
    parser.add_argument("--client", type=Path, help="client log, JSON lines")
    parser.add_argument("--streams", type=Path, help="stream logs, JSON lines")
    parser.add_argument("--max-recoveries", type=int, default=Bounds().max_recoveries)
    parser.add_argument("--retries", type=int, default=Bounds().retries)
    parser.add_argument("--healed", action="store_true", help="unfinished work is a violation")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    given = parser.parse_args(arguments)
    logs = Logs(
        effects=read_effects(given.effects) if given.effects else (),
        client=read_client(given.client) if given.client else (),
        streams=read_streams(given.streams) if given.streams else (),
    )
    bounds = Bounds(retries=given.retries, max_recoveries=given.max_recoveries, healed=given.healed)
    try:
        found = check(given.store, logs, bounds)
    except sqlite3.Error as error:
        print(f"error: cannot read {given.store}: {error}", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps({"violations": [violation._asdict() for violation in found]}))
    else:
        for violation in found:
            print(f"{violation.check} {violation.task} {violation.seq}: {violation.what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
