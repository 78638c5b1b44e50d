"""Is every journal dense and linked, and does its row follow from it?"""

import json
from collections.abc import Iterator
from typing import Any, Final

from everstep.adapters.stores.chain import START, Seal, beginning, head_of
from everstep.adapters.stores.journal import label_text
from everstep.adapters.stores.sql.hold import Reader
from everstep.domain.fold import fold
from everstep.domain.ids import Seq, TaskId
from everstep.domain.task import TaskState
from everstep.ports.store import Flaw
from everstep.wire.event import Fetch, decode

PAGE: Final = 200
CHECK_MAX_S: Final = 3600.0


def check_journals(reader: Reader, fetch: Fetch, seal: Seal) -> list[Flaw]:
    """Journals that are not dense or not linked; rows that do not follow from them; lines of no task."""
    ((stray,),) = reader.rows("stray_events", within_s=CHECK_MAX_S)
    problems = [Flaw(what=f"{stray} events belong to no task")] if stray else []
    ((old,),) = reader.rows("linked_after")
    after = 0
    while page := reader.rows("task_page", {"after": after, "limit": PAGE}):
        for row in page:
            problems += _check_task(reader, fetch, Chain(seal, old, row[2]), row)
        after = page[-1][0]
    return problems


def head(reader: Reader) -> str:
    """One word for the chains of all journals."""
    return head_of(reader.rows("chain_heads", within_s=CHECK_MAX_S))


class Chain:
    """The links of one journal, followed from its beginning; broken once, it says nothing more."""

    def __init__(self, seal: Seal, old: int, owner: str) -> None:
        self._seal = seal
        self._old = old
        self._links: tuple[bytes, ...] = (beginning(owner), START)
        self._whole = True

    def breaks(self, row: int, body: str, link: bytes | None) -> bool:
        """Whether this line is the first that does not fit. Lines from before there were links have none."""
        if not self._whole or (link is None and row <= self._old):
            return False
        expected = [self._seal(before + body.encode()) for before in self._links]
        self._whole = link in expected
        self._links = (link or START,)
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
        except Exception as error:  # noqa: BLE001 -- that is what is looked for
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
