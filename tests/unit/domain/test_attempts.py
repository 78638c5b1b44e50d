"""What a journal tells beyond the state: every attempt, what a step said of its result, who answered what."""

import pytest

from everstep.domain import events as e
from everstep.domain import pauses as p
from everstep.domain.attempts import history_of
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Epoch, Instant, PauseId, Seq, StepPath
from everstep.domain.plan import Effect
from everstep.domain.states import AttemptStatus
from tests.unit.histories import HUMAN, TASK, WORKER, sealed

A, B = StepPath("a"), StepPath("b[1]")
FAILURE = Failure(code="x", category=Category.LOGIC, message="m", what_to_do="w", effect_state=EffectState.NONE)
ERROR = e.ErrorRecord(id="e_1", failure=FAILURE, attempt=1)
PAUSE = p.Pause(id=PauseId("p_1"), step=A, reason=p.UserRequested(by="ana", note=None), title="t", why="w")


def journal(*bodies: tuple[StepPath | None, e.Body]) -> list[e.Recorded]:
    return [
        e.Recorded(task=TASK, seq=Seq(seq), at=Instant(1000 * seq), generation=1, actor=HUMAN, step=step, body=body)
        for seq, (step, body) in enumerate(bodies, start=1)
    ]


def started(number: int) -> e.AttemptStarted:
    return e.AttemptStarted(
        attempt=number,
        epoch=Epoch(2),
        worker=WORKER,
        tool="some.tool",
        tool_version="1.0",
        effect=Effect.ONCE,
        idempotency_key=f"key {number}",
        input=sealed({"n": number}),
    )


def completed(attempt: int | None, summary: str | None = "done") -> e.StepCompleted:
    return e.StepCompleted(
        attempt=attempt, output=sealed(1), summary=summary, via="tool", tool_used="some.tool", duration_s=9, wall_s=0.5
    )


Ended = e.AttemptFailed | e.AttemptTimedOut | e.AttemptKilled | e.AttemptAbandoned


def ended(kind: type[Ended], number: int) -> Ended:
    return kind(attempt=number, error=ERROR, effect_state=EffectState.UNKNOWN, called=True, duration_s=0.25)


def test_a_success_is_told_by_its_step() -> None:
    history = history_of(journal((A, started(1)), (A, completed(1))))
    (attempt,) = history.attempts[A]
    assert (attempt.number, attempt.status, attempt.wall_s) == (1, AttemptStatus.SUCCEEDED, 0.5)
    assert (attempt.started_at, attempt.ended_at, attempt.generation, attempt.epoch) == (1000, 2000, 1, 2)
    assert (attempt.tool, attempt.tool_version, attempt.effect) == ("some.tool", "1.0", Effect.ONCE)
    assert (attempt.idempotency_key, attempt.input) == ("key 1", sealed({"n": 1}))
    assert history.summaries == {A: "done"}


ENDS: dict[type[Ended], AttemptStatus] = {
    e.AttemptFailed: AttemptStatus.FAILED,
    e.AttemptTimedOut: AttemptStatus.TIMED_OUT,
    e.AttemptKilled: AttemptStatus.KILLED,
    e.AttemptAbandoned: AttemptStatus.ABANDONED,
}


@pytest.mark.parametrize("kind", ENDS)
def test_every_other_end_is_told_by_itself(kind: type[Ended]) -> None:
    history = history_of(journal((A, started(1)), (A, ended(kind, 1)), (A, started(2))))
    first, second = history.attempts[A]
    assert (first.status, first.error, first.effect_state) == (ENDS[kind], ERROR, EffectState.UNKNOWN)
    assert (first.wall_s, first.ended_at) == (0.25, 2000)
    assert (second.status, second.ended_at, second.wall_s) == (AttemptStatus.STARTED, None, None)
    assert history.last(A) is second
    assert history.last(B) is None


def test_a_probe_that_finds_the_result_does_not_rewrite_the_attempt() -> None:
    history = history_of(journal((A, started(1)), (A, ended(e.AttemptTimedOut, 1)), (A, completed(1))))
    assert [attempt.status for attempt in history.attempts[A]] == [AttemptStatus.TIMED_OUT]


def test_what_somebody_supplied_is_no_attempt() -> None:
    history = history_of(journal((A, started(1)), (A, completed(None, "Ana said so"))))
    assert [attempt.status for attempt in history.attempts[A]] == [AttemptStatus.STARTED]
    assert history.summaries == {A: "Ana said so"}


def test_an_end_nobody_began_is_passed_over() -> None:
    assert history_of(journal((A, ended(e.AttemptFailed, 1)), (B, completed(1)))).attempts == {}


def test_pauses_know_who_answered() -> None:
    answer = e.PauseAnswered(pause=PAUSE.id, answer="resume", note="go")
    history = history_of(journal((A, e.PauseOpened(pause=PAUSE)), (None, e.TaskCancelling()), (A, answer)))
    assert history.answers[PAUSE.id].body == answer
    assert history.answers[PAUSE.id].actor == HUMAN
