"""Commands and answers against every status: events, or a typed conflict that names the state."""

from collections.abc import Callable

import pytest

from everstep.domain import events as e
from everstep.domain.commands import Answer, answer_pause, cancel_task, resume_task
from everstep.domain.decide import decide
from everstep.domain.ended import Chance, Ended
from everstep.domain.errors import Conflict, Validation
from everstep.domain.ids import Epoch, PauseId, StepPath
from everstep.domain.outcome import Lost
from everstep.domain.pauses import ANSWERS
from everstep.domain.pausing import PauseWish, pause_task
from everstep.domain.plan import Effect
from everstep.domain.policy import USUAL_RETRY
from everstep.domain.states import StepStatus, TaskStatus
from tests.unit.histories import WORKER, History, plan, running, sealed, step

P1, P2 = PauseId("p_1"), PauseId("p_2")
A = StepPath("a")


def queued() -> History:
    return History(plan(step("a"), step("b")))


def at_work() -> History:
    return running(step("a"), step("b"))


def paused() -> History:
    return queued().tell(pause_task(queued().state, PauseWish(id=P1, by="ana")))


def pausing() -> History:
    history = at_work()
    return history.tell(pause_task(history.state, PauseWish(id=P1, by="ana")))


def stalled() -> History:
    body = e.TaskRecovered(
        from_status=TaskStatus.RUNNING, reason="worker_dead", worker=WORKER, epoch=Epoch(2),
        last_heartbeat_at=None, threshold_s=30.0, recoveries=1, steps=(),
    )  # fmt: skip
    return at_work().say(body)


def cancelling() -> History:
    return at_work().say(e.TaskCancelling())


def cancelled() -> History:
    return queued().say(e.TaskCancelled(reason="requested", skipped=(A, StepPath("b"))))


def uncertain() -> History:
    """A task paused because nobody knows whether a `once` call happened."""
    history = running(step("a"), step("b"), effect=Effect.ONCE)
    ended = Ended(path=A, outcome=Lost(), retry=USUAL_RETRY, chance=Chance(pause_id=P2, error_id="e_1"))
    history.tell(decide(history.state, ended, history.at))
    opened = history.state.pauses[P2]
    return history.say(e.TaskPaused(pause=P2, reason_type=opened.type))


ALL = {
    TaskStatus.QUEUED: queued,
    TaskStatus.RUNNING: at_work,
    TaskStatus.PAUSING: pausing,
    TaskStatus.PAUSED: paused,
    TaskStatus.STALLED: stalled,
    TaskStatus.CANCELLING: cancelling,
    TaskStatus.CANCELLED: cancelled,
}
REFUSED = "conflict"
NOTHING = "nothing"
PAUSE = {
    "queued": "paused", "running": "pausing", "pausing": NOTHING, "paused": NOTHING, "stalled": "stalled",
    "cancelling": REFUSED, "cancelled": REFUSED,
}  # fmt: skip
RESUME = {
    "queued": NOTHING, "running": NOTHING, "pausing": "pausing", "paused": "queued", "stalled": NOTHING,
    "cancelling": REFUSED, "cancelled": REFUSED,
}  # fmt: skip
CANCEL = {
    "queued": "cancelled", "running": "cancelling", "pausing": "cancelling", "paused": "cancelled",
    "stalled": "cancelling", "cancelling": NOTHING, "cancelled": NOTHING,
}  # fmt: skip
COMMANDS: dict[str, tuple[Callable[[History], tuple[e.Draft, ...]], dict[str, str]]] = {
    "pause": (lambda h: pause_task(h.state, PauseWish(id=P2, by="ana")), PAUSE),
    "resume": (lambda h: resume_task(h.state, None), RESUME),
    "cancel": (lambda h: cancel_task(h.state, None), CANCEL),
}


@pytest.mark.parametrize("status", list(ALL))
@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_in_every_status(name: str, status: TaskStatus) -> None:
    command, table = COMMANDS[name]
    history = ALL[status]()
    assert history.state.status is status
    expected = table[status.value]
    if expected == REFUSED:
        with pytest.raises(Conflict, match=f"cannot {name} a task that is {status}") as refusal:
            command(history)
        assert refusal.value.details == {"status": status.value}
        return
    drafts = command(history)
    assert bool(drafts) is (expected != NOTHING)
    history.tell(drafts)
    assert history.state.status.value == (status.value if expected == NOTHING else expected)


def test_resume_of_a_task_that_waits_for_an_answer_names_the_pause() -> None:
    with pytest.raises(Conflict) as refusal:
        resume_task(uncertain().state, None)
    assert (refusal.value.code, refusal.value.details) == ("answer_needed", {"pause": P2})


UNCERTAIN = {
    "happened": (Answer(answer="happened", output=sealed(7)), StepStatus.COMPLETED),
    "not_happened": (Answer(answer="not_happened"), StepStatus.RUNNING),
    "fail": (Answer(answer="fail"), StepStatus.FAILED),
    "skip": (Answer(answer="skip"), StepStatus.SKIPPED),
}


@pytest.mark.parametrize("answer", list(UNCERTAIN))
def test_an_uncertain_outcome_is_settled_by_an_answer(answer: str) -> None:
    given, status = UNCERTAIN[answer]
    history = uncertain()
    history.tell(answer_pause(history.state, history.state.pauses[P2], given))
    found = history.state.steps[A]
    assert (found.status, history.state.status) == (status, TaskStatus.QUEUED)
    assert history.state.pauses == {}
    assert found.tries == 0


def test_an_answer_starts_nothing_while_somebody_holds_the_task_back() -> None:
    history = uncertain()
    history.tell(pause_task(history.state, PauseWish(id=P1, by="ana")))
    history.tell(answer_pause(history.state, history.state.pauses[P2], UNCERTAIN["happened"][0]))
    assert history.state.status.value == "paused"
    history.tell(resume_task(history.state, None))
    assert history.state.status.value == "queued"


def test_an_answer_that_the_pause_does_not_offer_is_refused() -> None:
    history = uncertain()
    pause = history.state.pauses[P2]
    with pytest.raises(Validation, match="no answer to uncertainOutcome") as refusal:
        answer_pause(history.state, pause, Answer(answer="approve"))
    assert refusal.value.what_to_do == "answer one of: " + ", ".join(ANSWERS[pause.type])


def test_cancel_as_an_answer_ends_the_task() -> None:
    history = paused()
    history.tell(answer_pause(history.state, history.state.pauses[P1], Answer(answer="cancel")))
    assert history.state.status is TaskStatus.CANCELLED
