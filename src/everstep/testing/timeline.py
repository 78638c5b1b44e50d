"""What happened in a store, for people who look at a failed test, and for the checker."""

import json

from everstep.domain.ids import Seq
from everstep.ports.store import PauseFilter, Store, TaskFilter
from everstep.torture.checker import Bounds, judge
from everstep.torture.history import Event, Journal, Logs, Row, Violation, millis

PAGE = 500


async def timeline(store: Store) -> str:
    """Every task with its journal, a line per event."""
    told = []
    for task, events in (await journal_of(store)).events.items():
        told.append(task)
        began = events[0].at
        told += [
            f"  {event.seq:>4} {(event.at - began) / 1000:>9.3f} s  {event.type:<22} {event.step or ''}"
            for event in events
        ]
    return "\n".join(told)


async def violations(store: Store) -> list[Violation]:
    """Invariants that the history breaks, by the checker that shares no line with the engine."""
    return list(judge(await journal_of(store), Logs(), Bounds(max_recoveries=1000)))


async def journal_of(store: Store) -> Journal:
    """The whole store, as the checker reads it from a file."""
    journal = Journal()
    place, cursor = 0, None
    while True:
        page = await store.list_tasks(TaskFilter(limit=PAGE, cursor=cursor))
        for item in page.items:
            row = item.row
            journal.rows[item.id] = Row(
                task=item.id,
                owner=item.owner,
                key=item.key,
                status=row.status.value,
                generation=row.generation,
                epoch=item.epoch,
                worker=item.worker,
                last_seq=item.seq,
                recoveries=row.recoveries,
                done=row.done,
                started_at=row.started_at,
                ended_at=row.ended_at,
                outcome=row.outcome,
            )
            events = journal.events[item.id] = []
            for one in await store.read_events(item.id, Seq(0), item.seq):
                said, place = json.loads(one.encoded), place + 1
                at = millis(said["at"])
                assert at is not None
                events.append(Event(place, item.id, one.seq, at, one.type, one.step, said["actor"], said["data"]))
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
    for kept in await store.list_pauses(PauseFilter(status=None, limit=100_000)):
        journal.pauses[kept.pause.id] = (kept.task, kept.status.value)
    return journal
