"""A finished task before the independent checker: its journal, and the row that the engine believes in."""

from datetime import datetime

from everstep.facade.task import Task
from everstep.torture.checker import Bounds, judge
from everstep.torture.history import Event, Journal, Logs, Row, Violation
from tests.model.model import RETRIES


async def verdict(task: Task) -> list[Violation]:
    """What the checker has against it."""
    state = task._state  # what the engine believes, before it is shown
    row = Row(
        task=state.id,
        owner=state.owner,
        key=state.key,
        status=state.status.value,
        generation=state.generation,
        epoch=state.epoch,
        worker=state.worker,
        last_seq=state.seq,
        recoveries=state.recoveries,
        done=state.done,
        started_at=state.started_at,
        ended_at=state.ended_at,
        outcome=state.outcome,
    )
    events = [
        Event(one.seq, one.task, one.seq, _millis(one.at), one.type, one.step, one.actor, one.data)
        async for one in task.events(follow=False)
    ]
    journal = Journal(rows={state.id: row}, events={state.id: events}, pauses=_pauses(state.id, events))
    return list(judge(journal, Logs(), Bounds(retries=RETRIES, healed=True)))


def _millis(at: str) -> int:
    return round(datetime.fromisoformat(at).timestamp() * 1000)


_CLOSES = {"pause.answered": "answered", "pause.withdrawn": "withdrawn", "pause.expired": "expired"}


def _pauses(task: str, events: list[Event]) -> dict[str, tuple[str, str]]:
    pauses: dict[str, tuple[str, str]] = {}
    for event in events:
        if event.type == "pause.opened":
            pauses[event.data["id"]] = (task, "open")
        elif event.type in _CLOSES:
            pauses[event.data["pause"]] = (task, _CLOSES[event.type])
    return pauses
