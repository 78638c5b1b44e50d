"""A task while everything is halted: what it waits for."""

from typing import Final

from everstep.domain.states import TERMINAL, TaskStatus
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Backing
from everstep.wire.times import to_text

NOT_HELD_UP: Final = frozenset(status.value for status in (*TERMINAL, TaskStatus.PAUSED))


def with_halt(back: Backing, body: JsonObject, *, calling: bool) -> JsonObject:
    """While everything is halted, that is what a task waits for which nobody has paused; a call is let end first."""
    halt = back.desk.halted
    if halt is None or body["status"] in NOT_HELD_UP:
        return body
    explain = body["explain"]
    assert isinstance(explain, dict)
    words = f"everything is halted by {halt.by}"
    said: JsonObject = {
        "doing": f"{explain['doing']}; then {words}" if calling else words,
        "since": explain["since"] if calling else to_text(halt.at),
        "waiting_on": {"kind": "halt", "detail": halt.note or halt.by, "until": None, "ref": None},
        "text": f"{words}: everstep resume --all",
    }
    body["explain"] = {**explain, **said}
    return body
