"""What every explanation must hold to, whatever state it is of. Written without a look at how it is made."""

from everstep.domain.explain import explain
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.domain.task import TaskState

KINDS = frozenset(
    {"worker", "slot", "rate", "breaker", "retry", "time", "event", "child", "halt", "person", "recovery"}
)
TIMED = frozenset({"rate", "breaker", "retry", "time"})
"""What ends by itself, at a time that can be told."""
ALWAYS = {TaskStatus.QUEUED: "worker", TaskStatus.STALLED: "recovery"}


def check_explanation(state: TaskState) -> None:
    """Raises if somebody who asks about the task would get no answer, or a wrong one."""
    said = explain(state)
    assert said.doing
    assert said.next
    assert said.text
    assert "\n" not in said.text
    assert len(said.text) <= 200
    assert state.created_at <= said.since <= state.updated_at
    on = said.waiting_on
    kind = None if on is None else on.kind
    assert kind is None or kind in KINDS
    assert ALWAYS.get(state.status, kind) == kind
    if state.status in TERMINAL:
        assert (on, said.next) == (None, "nothing")
        return
    assert said.next != "nothing"
    if on is not None:
        assert on.kind not in TIMED or on.until is not None, f"until when does it wait for {on.kind}?"
        assert on.detail
    if kind == "person":
        assert on is not None
        assert on.ref in state.pauses, "the question can be found"
    if state.pauses and state.status is TaskStatus.PAUSED:
        assert kind == "person"
    if state.status is TaskStatus.RUNNING and state.in_flight:
        assert kind is None
        assert any(f"step {path} calls" in said.doing for path in state.in_flight)
    if state.status is TaskStatus.PAUSING:
        assert said.next == "pause"
        assert all(path in said.doing for path in state.in_flight)
