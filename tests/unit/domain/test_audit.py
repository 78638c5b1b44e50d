"""The audit: every move with who, when, why and from which state."""

import pytest

from everstep.domain import events as e
from everstep.domain.audit import audit
from everstep.domain.commands import cancel_task, resume_task
from everstep.domain.ids import PauseId
from everstep.domain.pausing import PauseWish, pause_task
from tests.unit.histories import HUMAN, History, plan, step


def story() -> History:
    """Created, paused by Ana, resumed, begun, cancelled."""
    history = History(plan(step("a"), step("b")))
    history.tell(pause_task(history.state, PauseWish(id=PauseId("p_1"), by="ana", note="lunch")))
    history.tell(resume_task(history.state, "back"))
    history.claimed().called("a")
    return history.tell(cancel_task(history.state, "wrong plan"))


@pytest.mark.req("WF-24")
def test_every_move_has_its_author_its_reason_and_where_it_came_from() -> None:
    history = story()
    told = [(change.before, change.after, change.type, change.why) for change in audit(history.recorded, "local")]
    assert told == [
        (None, "queued", "task.created", None),
        ("queued", "paused", "task.paused", None),
        ("paused", "queued", "task.resumed", "back"),
        ("queued", "running", "task.started", None),
        ("pending", "running", "attempt.started", None),
        ("running", "cancelling", "task.cancelling", "wrong plan"),
    ]


def test_what_moves_nothing_is_no_change() -> None:
    history = story()
    before = len(audit(history.recorded, "local"))
    history.say(e.Unknown(type="task.blessed", data={}))
    assert len(audit(history.recorded, "local")) == before
    assert all(change.actor == HUMAN for change in audit(history.recorded, "local"))
