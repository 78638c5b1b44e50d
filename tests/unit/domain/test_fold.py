"""fold: what the journal means, and what it cannot say."""

from collections.abc import Callable

import pytest

from everstep.domain import events as e
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.fold import fold
from everstep.domain.ids import Epoch, Seq, StepPath
from everstep.domain.moves import BrokenJournal
from everstep.domain.plan import OnError
from everstep.domain.states import Phase, StepStatus, TaskStatus
from tests.unit.histories import HUMAN, TASK, WORKER, History, plan, running, sealed, step

A, B = StepPath("a"), StepPath("b")


def error() -> e.ErrorRecord:
    failure = Failure(code="x", category=Category.LOGIC, message="m", what_to_do="w", effect_state=EffectState.NONE)
    return e.ErrorRecord(id="e_1", failure=failure)


def test_a_task_is_queued_with_all_steps_pending() -> None:
    state = History(plan(step("a"), step("b"))).state
    assert state.status is TaskStatus.QUEUED
    assert [s.status for s in state.steps.values()] == [StepStatus.PENDING] * 2


def test_a_step_from_intent_to_outcome() -> None:
    history = running(step("a"), step("b"))
    assert history.state.steps[A].phase is Phase.EXECUTING
    assert history.state.in_flight == (A,)
    history.completed("a", {"n": 1})
    assert history.state.steps[A].status is StepStatus.COMPLETED
    assert history.state.open == {}
    assert history.state.done == 1


def test_a_gap_in_the_journal_is_seen() -> None:
    history = running(step("a"))
    late = e.Recorded(
        task=TASK, seq=Seq(9), at=history.at, generation=1, actor=HUMAN, step=None, body=e.TaskCancelling()
    )
    with pytest.raises(BrokenJournal, match="seq 9 follows 3"):
        fold(history.state, "local", late)


def test_a_journal_begins_with_its_task() -> None:
    late = e.Recorded(
        task=TASK, seq=Seq(1), at=History(plan(step("a"))).at, generation=1, actor=HUMAN, step=None,
        body=e.TaskCancelling(),
    )  # fmt: skip
    with pytest.raises(BrokenJournal, match=r"begins with task\.cancelling"):
        fold(None, "local", late)


ILLEGAL: list[tuple[Callable[[History], object], str]] = [
    (lambda h: h.completed("a").called("a"), "starts while completed"),
    (lambda h: h.called("a"), "starts while running"),
    (
        lambda h: h.say(e.TaskStarted(from_status=TaskStatus.RUNNING, worker=WORKER, epoch=Epoch(1))),
        "running cannot become running",
    ),
    (lambda h: h.say(e.TaskCancelled(reason="requested", skipped=())), "running cannot become cancelled"),
    (lambda h: h.completed("a").completed("a"), "completed cannot become"),
    (lambda h: h.completed("zzz"), "no step zzz"),
]


@pytest.mark.parametrize(("say", "complaint"), ILLEGAL)
def test_a_move_the_tables_do_not_have_breaks_the_journal(say: Callable[[History], object], complaint: str) -> None:
    history = running(step("a"))
    with pytest.raises(BrokenJournal, match=complaint):
        say(history)


def test_a_critical_failure_marks_the_task_and_an_optional_one_does_not() -> None:
    for on_error, failing in ((OnError.FAIL, True), (OnError.CONTINUE, False)):
        history = running(step("a", on_error=on_error))
        history.say(e.StepFailed(attempt=1, error=error(), duration_s=0.0), "a")
        assert (history.state.failing is not None) is failing


def test_recovery_takes_the_lease_and_counts_until_the_next_outcome() -> None:
    history = running(step("a"), step("b"))
    history.say(
        e.TaskRecovered(
            from_status=TaskStatus.RUNNING, reason="worker_dead", worker=WORKER, epoch=Epoch(2),
            last_heartbeat_at=None, threshold_s=30.0, recoveries=1, steps=(),
        )
    )  # fmt: skip
    assert (history.state.status, history.state.worker) == (TaskStatus.STALLED, None)
    history.claimed(epoch=3)
    assert history.state.recoveries == 1
    history.completed("a")
    assert history.state.recoveries == 0


def test_a_deliberate_retry_begins_a_new_try_and_a_repeat_does_not() -> None:
    for new_key, tries in ((True, 1), (False, 0)):
        history = running(step("a"))
        ended = e.AttemptFailed(
            attempt=1, error=error(), effect_state=error().failure.effect_state, called=True, duration_s=0.0
        )
        history.say(ended, "a").say(e.StepRetryScheduled(attempt=1, error=error(), new_key=new_key), "a")
        assert history.state.steps[A].tries == tries
        assert history.state.steps[A].phase is Phase.RETRY_WAIT


def test_items_are_sub_steps_of_their_step() -> None:
    history = History(plan(step("a", for_each=[1, 2]), step("b"))).claimed()
    history.say(e.StepStarted(title="a", items=sealed([1, 2])), "a").called("a[0]").called("a[1]")
    parent = history.state.steps[A]
    assert (parent.items_next, list(parent.items_open)) == (2, [0, 1])
    history.completed("a[1]").completed("a[0]")
    assert (parent.items_ended, list(parent.items_open)) == (2, [])
    assert history.state.done == 0


def test_what_is_skipped_at_the_end_is_named_by_the_terminal_event() -> None:
    history = History(plan(step("a"), step("b"))).claimed().called("a").completed("a").say(e.TaskCancelling())
    history.say(e.TaskCancelled(reason="requested", skipped=(B,)))
    assert history.state.steps[B].skip_reason is e.SkipReason.TASK_CANCELLED
    assert history.state.ended_at == history.at
    assert history.state.terminal


def test_events_of_a_newer_version_change_nothing_but_the_seq() -> None:
    history = running(step("a"))
    before = history.state.status
    history.say(e.Unknown(type="task.blessed", data={}))
    assert history.state.status is before
