"""A task while everything is halted: what it waits for."""

from everstep.domain.states import TERMINAL, TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Backing
from everstep.wire.times import to_text


def with_halt(back: Backing, state: TaskState, body: JsonObject) -> JsonObject:
    """While everything is halted, that is what a task waits for which nobody has paused."""
    halt = back.desk.halted
    if halt is None or state.status in TERMINAL or state.status is TaskStatus.PAUSED:
        return body
    since, words = to_text(halt.at), f"everything is halted by {halt.by}"
    waiting: JsonObject = {"kind": "halt", "detail": halt.note or halt.by, "until": None, "ref": None}
    explain = body["explain"]
    assert isinstance(explain, dict)
    text = f"{words}: everstep resume --all"
    body["explain"] = {**explain, "doing": words, "since": since, "waiting_on": waiting, "text": text}
    return body
