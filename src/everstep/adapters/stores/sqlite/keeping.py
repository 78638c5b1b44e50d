"""Keeping a store: is it sound, and a copy of it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import apsw

from everstep.adapters.stores.chain import START, Seal, head_of
from everstep.adapters.stores.journal import label_text
from everstep.adapters.stores.sqlite.connect import APPLICATION_ID, connect, one, read, sync_folder
from everstep.adapters.stores.sqlite.readers import Reader
from everstep.domain.errors import Conflict, Unavailable
from everstep.domain.fold import BrokenJournal, fold
from everstep.domain.ids import Instant, Seq, TaskId
from everstep.domain.task import TaskState
from everstep.ports.fault import Fault, no_fault
from everstep.ports.store import Flaw
from everstep.wire.event import Fetch, Unreadable, decode
from everstep.wire.times import to_text

PAGE: Final = 200
CHECK_MAX_S: Final = 3600.0
MARK: Final = "copied_at"
"""In `meta` of a copy: what happened after that time is unknown to it."""
LOCK: Final = "lock"
"""In `meta`: which lock file guards the store. Nobody holds a copy, however young its last beat is."""


def check(reader: Reader, fetch: Fetch, seal: Seal) -> list[Flaw]:
    """Damage of the file; journals that are not dense or not linked; rows that do not follow from them."""
    damage = [line for (line,) in reader.rows("integrity_check", within_s=CHECK_MAX_S) if line != "ok"]
    problems = [Flaw(what=f"file: {line}") for line in damage]
    ((stray,),) = reader.rows("stray_events", within_s=CHECK_MAX_S)
    if stray:
        problems.append(Flaw(what=f"{stray} events belong to no task"))
    ((old,),) = reader.rows("linked_after")
    after = 0
    while page := reader.rows("task_page", {"after": after, "limit": PAGE}):
        for row in page:
            problems += _check_task(reader, fetch, Chain(seal, old), row)
        after = page[-1][0]
    return problems


def head(reader: Reader) -> str:
    """One word for the chains of all journals."""
    return head_of(reader.rows("chain_heads", within_s=CHECK_MAX_S))


class Chain:
    """The links of one journal, followed from its beginning; broken once, it says nothing more."""

    def __init__(self, seal: Seal, old: int) -> None:
        self._seal = seal
        self._old = old
        self._link = START
        self._whole = True

    def breaks(self, row: int, body: str, link: bytes | None) -> bool:
        """Whether this line is the first that does not fit. Lines from before there were links have none."""
        if not self._whole or (link is None and row <= self._old):
            return False
        expected = self._seal(self._link + body.encode())
        self._link, self._whole = expected, expected == link
        return not self._whole


def _check_task(reader: Reader, fetch: Fetch, chain: Chain, row: tuple[Any, ...]) -> Iterator[Flaw]:
    num, task, owner, *columns = row
    state: TaskState | None = None
    for place, seq, at, kind, step, body, link in reader.rows("journal_of", (num,)):
        expected = Seq(state.seq + 1 if state else 1)
        if seq != expected:
            yield Flaw(what=f"seq {seq} stands where {expected} should", task=task, seq=expected)
            return
        if chain.breaks(place, body, link):
            yield Flaw(what="the audit chain breaks: changed, or what stood before it is gone", task=task, seq=seq)
        try:
            event = decode(body, fetch)
            state = fold(state, owner, event)
        except (Unreadable, BrokenJournal) as error:
            yield Flaw(what=str(error), task=task, seq=seq)
            return
        told = (event.task, event.seq, event.at, event.step, json.loads(body)["type"])
        if told != (task, seq, at, step, kind):
            yield Flaw(what="the columns differ from the event", task=task, seq=seq)
    if state is None:
        yield Flaw(what="no journal", task=task)
        return
    yield from _check_row(task, state, columns)
    kept = {pause for (pause,) in reader.rows("open_pauses_of", (num,))}
    if kept != set(state.pauses):
        what = f"open pauses are {sorted(kept)}, the journal says {sorted(state.pauses)}"
        yield Flaw(what=what, task=task)


def _check_row(task: TaskId, state: TaskState, columns: list[Any]) -> Iterator[Flaw]:
    told = {
        "key": state.key,
        "plan_digest": state.first_digest,
        "title": state.title,
        "priority": state.priority,
        "labels": label_text(state.labels),
        "created_at": state.created_at,
        "updated_at": state.updated_at,
        "epoch": state.epoch,
        "worker": state.worker,
        "last_seq": state.seq,
        "status": state.status,
        "generation": state.generation,
        "recoveries": state.recoveries,
        "done": state.done,
        "started_at": state.started_at,
        "ended_at": state.ended_at,
        "outcome": state.outcome,
        "error_code": state.error.failure.code if state.error else None,
    }
    for (name, says), holds in zip(told.items(), columns, strict=True):
        if says != holds:
            yield Flaw(what=f"{name} is {holds!r}, the journal says {says!r}", task=task)


def backup(path: Path, target: Path, at: Instant, fault: Fault = no_fault) -> None:
    """A copy as of one moment, marked as a copy, flushed and checked before it gets its name."""
    if target.exists():
        raise Conflict(f"{target} exists", what_to_do="name a new file")
    fault("backup.copy.before")
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        _copy(path, unfinished)
        _mark(unfinished, at)
        unfinished.chmod(0o600)
        unfinished.rename(target)
        sync_folder(target.parent)
    finally:
        unfinished.unlink(missing_ok=True)
    fault("backup.copy.after")


def _copy(path: Path, target: Path) -> None:
    source = connect(path, write=False)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step()
    finally:
        copy.close()
        source.close()


def _mark(copy: Path, at: Instant) -> None:
    """Say that it is a copy; then look whether it is a whole one. Written with the rollback journal: one file only."""
    connection = connect(copy, write=True)
    try:
        read(connection, "use_rollback_journal")
        read(connection, "put_meta", (MARK, to_text(at)))
        read(connection, "forget_meta", (LOCK,))
        sound = read(connection, "quick_check") == [("ok",)]
        if not sound or one(connection, "get_application_id") != APPLICATION_ID:
            raise Unavailable("the copy is not sound", what_to_do="look at the store: everstep db check")
    finally:
        connection.close()
