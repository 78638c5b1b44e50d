"""`explain`: what, since when, waiting for what, what next. In every status and phase, never without an answer."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from everstep.domain import events as e
from everstep.domain import pauses as p
from everstep.domain.explain import WaitingOn, clock, explain, explain_row, explain_step, legal_commands, one_line
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Epoch, Instant, PauseId, StepPath
from everstep.domain.pauses import DurableWait
from everstep.domain.states import Phase, TaskStatus
from everstep.domain.task import TaskRow
from tests.unit.histories import START, WORKER, History, plan, running, sealed, step

A = StepPath("a")
LATER = Instant(START + 3_600_000)
FAILURE = Failure(
    code="http_503",
    category=Category.TRANSIENT,
    message="the server is\naway",
    what_to_do="w",
    effect_state=EffectState.NONE,
)
ERROR = e.ErrorRecord(id="e_1", failure=FAILURE, attempt=1, retries=1, retries_max=3, retry_at=LATER)
USER = p.Pause(id=PauseId("p_u"), step=None, reason=p.UserRequested(by="ana", note=None), title="Paused", why="why")


def asked(reason: p.Reason, title: str = "Go on?") -> p.Pause:
    return p.Pause(id=PauseId("p_1"), step=A, reason=reason, title=title, why="why")


TOOL_ERROR = p.ToolErrorPause(failed_step=A, error="x", retryable=False, suggested_tool="some.tool")
UNCERTAIN = p.UncertainOutcome(blocked_step=A, attempt=1, idempotency_key="k", suggested_tool="some.tool")
REASONS: tuple[p.Reason, ...] = (
    p.UnresolvableParams(blocked_step=A, missing_param="x", suggested_tool=None),
    p.SchemaMismatch(blocked_step=A, missing_fields=("x",), suggested_tool=None),
    TOOL_ERROR,
    p.UnresolvedDependency(blocked_step=A, missing_output="b", producing_step=StepPath("b"), suggested_tool=None),
    p.InputRequired(blocked_step=A, question="To whom?", schema=None),
    UNCERTAIN,
)


def paused(reason: p.Reason, title: str = "Go on?") -> History:
    history = running(step("a"), step("b", tool="mail.send"))
    ended = e.AttemptFailed(attempt=1, error=ERROR, effect_state=EffectState.NONE, called=True, duration_s=0.1)
    history.say(ended, "a")
    history.say(e.PauseOpened(pause=asked(reason, title)), "a")
    return history.say(e.TaskPaused(pause=PauseId("p_1"), reason_type=asked(reason).type))


def recovered(history: History) -> History:
    body = e.TaskRecovered(
        from_status=TaskStatus.RUNNING, reason="worker_dead", worker=WORKER, epoch=Epoch(2), last_heartbeat_at=START,
        threshold_s=30, recoveries=1, steps=(),
    )  # fmt: skip
    return history.say(body)


# One row per status, and per way to be in it: how it came about -> doing, waiting on, next, text.
STATUSES: dict[str, tuple[Callable[[], History], TaskStatus, str, WaitingOn | None, str, str]] = {
    "queued": (
        lambda: History(plan(step("a"))), TaskStatus.QUEUED,
        "waits for a worker", WaitingOn(kind="worker", detail="queued"),
        "some.tool, then complete", "waits for a worker since 00:16",
    ),
    "claimed": (
        lambda: History(plan(step("a"))).claimed(), TaskStatus.RUNNING,
        "the next step is being chosen", None, "some.tool, then complete", "the next step is being chosen since 00:16",
    ),
    "running": (
        lambda: running(step("a"), step("b", tool="mail.send")), TaskStatus.RUNNING,
        "step a calls some.tool", None, "mail.send, then complete", "step a calls some.tool since 00:16",
    ),
    "running two": (
        lambda: running(step("a"), step("b", needs=()), parallel=2).called("b"), TaskStatus.RUNNING,
        "step a calls some.tool, and 1 more", None, "complete", "step a calls some.tool, and 1 more since 00:16",
    ),
    "running the last of many": (
        lambda: running(*(step(name) for name in "abcde")), TaskStatus.RUNNING,
        "step a calls some.tool", None, "some.tool, then some.tool, then 2 more steps",
        "step a calls some.tool since 00:16",
    ),
    "failing": (
        lambda: running(step("a"), finally_steps=(step("tidy", tool="file.delete"),)).say(
            e.StepFailed(attempt=1, error=ERROR, duration_s=0.1), "a"
        ), TaskStatus.RUNNING,
        "the next step is being chosen", None, "file.delete, then failed", "the next step is being chosen since 00:16",
    ),
    "pausing": (
        lambda: running(step("a")).say(e.PauseOpened(pause=USER)).say(
            e.TaskPausing(pause=USER.id, mode="graceful", mode_used="graceful", waits_for=(A,))
        ), TaskStatus.PAUSING,
        "lets a end, then pauses", None, "pause", "lets a end, then pauses since 00:16",
    ),
    "paused by someone": (
        lambda: History(plan(step("a"))).say(e.PauseOpened(pause=USER)).say(
            e.TaskPaused(pause=USER.id, reason_type=USER.type)
        ), TaskStatus.PAUSED,
        "paused by ana", WaitingOn(kind="person", detail="userRequested", ref="p_u"),
        "some.tool, then complete", "paused by ana since 00:16",
    ),
    "paused for someone": (
        lambda: paused(TOOL_ERROR, "Send\nit?"), TaskStatus.PAUSED,
        "step a waits for a decision after its failure", WaitingOn(kind="person", detail="toolError", ref="p_1"),
        "some.tool, then mail.send, then complete", "Send it? waits for a person since 00:16",
    ),
    "stalled": (
        lambda: recovered(running(step("a"))), TaskStatus.STALLED,
        "waits for an engine that carries it on", WaitingOn(kind="recovery", detail="its worker died or lost it"),
        "some.tool, then complete", "waits for an engine that carries it on since 00:16",
    ),
    "cancelling": (
        lambda: running(step("a"), finally_steps=(step("tidy", tool="file.delete"),)).say(e.TaskCancelling()),
        TaskStatus.CANCELLING,
        "is being cancelled: step a calls some.tool", None, "file.delete, then cancelled",
        "is being cancelled: step a calls some.tool since 00:16",
    ),
    "cancelling, nothing under way": (
        lambda: running(step("a"), step("b")).completed("a").say(e.TaskCancelling()), TaskStatus.CANCELLING,
        "is being cancelled: nothing is in flight", None, "cancelled",
        "is being cancelled: nothing is in flight since 00:16",
    ),
    "cancelling without a worker": (
        lambda: recovered(running(step("a")).say(e.TaskCancelling())), TaskStatus.CANCELLING,
        "waits for a worker to be cancelled", WaitingOn(kind="worker", detail="somebody has to tidy up"), "cancelled",
        "waits for a worker to be cancelled since 00:16",
    ),
    "completed": (
        lambda: running(step("a")).completed("a").say(
            e.TaskCompleted(outcome="success", outputs=sealed({}), issues=(), duration_s=1, work_s=1)
        ), TaskStatus.COMPLETED, "completed", None, "nothing", "completed at 00:16",
    ),
    "completed with issues": (
        lambda: running(step("a")).completed("a").say(
            e.TaskCompleted(
                outcome="partial", outputs=sealed({}), duration_s=1, work_s=1,
                issues=(e.Issue(step=A, status="failed", reason="x"),),
            )
        ), TaskStatus.COMPLETED, "completed with 1 issue", None, "nothing", "completed with 1 issue at 00:16",
    ),
    "failed": (
        lambda: running(step("a")).say(e.StepFailed(attempt=1, error=ERROR, duration_s=0.1), "a").say(
            e.TaskFailed(error=ERROR, skipped=(), duration_s=1, work_s=1)
        ), TaskStatus.FAILED,
        "failed: the server is\naway", None, "nothing", "failed: the server is away at 00:16",
    ),
    "cancelled": (
        lambda: History(plan(step("a"))).say(e.TaskCancelled(reason="requested", skipped=(A,))),
        TaskStatus.CANCELLED, "cancelled", None, "nothing", "cancelled at 00:16",
    ),
}  # fmt: skip


@pytest.mark.req("N.1")
@pytest.mark.parametrize("way", STATUSES)
def test_every_status_is_explained(way: str) -> None:
    make, status, doing, waiting_on, then, text = STATUSES[way]
    state = make().state
    said = explain(state)
    assert state.status is status
    assert (said.doing, said.waiting_on, said.next, said.text) == (doing, waiting_on, then, text)
    assert START <= said.since <= state.updated_at


@pytest.mark.req("N.1")
def test_the_table_of_statuses_is_complete() -> None:
    assert {row[1] for row in STATUSES.values()} == set(TaskStatus)


PHASES: dict[Phase | None, tuple[str, WaitingOn | None]] = {
    None: ("step a is being prepared", None),
    Phase.VALIDATING: ("step a is being prepared", None),
    Phase.AWAITING_APPROVAL: ("step a waits for approval", WaitingOn(kind="person", detail="approvalRequired")),
    Phase.WAITING_SLOT: ("step a waits for a place", WaitingOn(kind="slot", detail="some.tool")),
    Phase.EXECUTING: ("step a calls some.tool", None),
    Phase.RETRY_WAIT: ("step a waits for try 2 of 4", WaitingOn(kind="retry", detail="http_503", until=LATER)),
    Phase.DONE: ("step a has ended", None),
}


@pytest.mark.req("N.1")
@pytest.mark.parametrize("phase", [None, *Phase])
def test_every_phase_is_explained(phase: Phase | None) -> None:
    state = running(step("a")).state
    one = state.steps[A]
    one.phase, one.error, one.retry_at = phase, ERROR, LATER
    said = explain_step(state, one)
    assert (said.doing, said.waiting_on) == PHASES[phase]
    assert said.since == START + 20


@pytest.mark.req("N.1")
def test_a_wait_that_is_no_call_says_until_when() -> None:
    history = running(step("a"))
    history.state.steps[A].phase = Phase.WAITING_SLOT
    history.state.steps[A].wait = DurableWait(kind="time", detail="wait", until=LATER, output=None)
    said = explain(history.state)
    assert said.waiting_on == WaitingOn(kind="time", detail="wait", until=LATER)
    assert said.text == "step a waits since 00:16, until 01:16"
    assert said.next == "complete"


KINDS = {
    "time": "step a waits",
    "event": "step a waits for event paid",
    "child": "step a waits for task paid",
    "slot": "step a waits for a slot of paid",
    "rate": "step a waits for its turn at paid",
    "breaker": "step a waits for the breaker of paid",
}


@pytest.mark.req("N.1")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_wait_says_for_what_since_when_and_what_comes_then(kind: str) -> None:
    history = History(plan(step("a"))).claimed().say(e.StepStarted(title="A"), "a", after_ms=60_000)
    if kind in ("time", "event", "child"):
        history.called("a")
    history.say(e.StepWaiting(kind=kind, detail="paid", until=LATER, ref="b_1"), "a", after_ms=60_000)
    said = explain(history.state)
    assert (said.doing, said.waiting_on) == (
        KINDS[kind],
        WaitingOn(kind=kind, detail="paid", until=LATER, ref=REF[kind]),
    )
    assert said.since == history.at, "since it waits, not since it began"
    assert said.next == ("complete" if kind in ("time", "event", "child") else "some.tool, then complete")


REF = {**dict.fromkeys(KINDS, "b_1"), "child": "paid"}
"""What it waits for: a breaker's id, a task's."""


@pytest.mark.req("N.1")
def test_a_retry_waits_since_its_last_failure_and_names_another_day() -> None:
    history = running(step("a"))
    ended = e.AttemptFailed(attempt=1, error=ERROR, effect_state=EffectState.NONE, called=True, duration_s=0.1)
    history.say(ended, "a", after_ms=60_000)
    tomorrow = replace(ERROR, retry_at=Instant(START + 86_400_000))
    history.say(e.StepRetryScheduled(attempt=1, error=tomorrow, new_key=True), "a")
    said = explain(history.state)
    assert said.since == history.at
    assert said.text == "step a waits for try 2 of 4 since 00:17, until 1970-01-02 00:16"


@pytest.mark.req("N.1")
def test_a_used_up_limit_and_a_pause_that_runs_out_are_explained() -> None:
    reached = p.LimitReached(limit="calls", used=3, max=3)
    pause = p.Pause(id=PauseId("p_1"), step=None, reason=reached, title="Limit", why="why", expires_at=LATER)
    history = History(plan(step("a"))).say(e.PauseOpened(pause=pause))
    said = explain(history.say(e.TaskPaused(pause=pause.id, reason_type=pause.type)).state)
    assert said.waiting_on == WaitingOn(kind="person", detail="limitReached", until=LATER, ref="p_1")
    assert said.text == "has used up its calls: 3 of 3 since 00:16, until 01:16"


@pytest.mark.req("N.1")
def test_a_task_that_is_cancelled_says_what_its_last_steps_wait_for() -> None:
    history = History(plan(step("a"), finally_steps=(step("tidy"),))).claimed().say(e.TaskCancelling())
    history.say(e.StepStarted(title="T"), "tidy").say(e.StepWaiting(kind="slot", detail="mail", until=None), "tidy")
    said = explain(history.state)
    assert said.doing == "is being cancelled: step tidy waits for a slot of mail"
    assert said.waiting_on == WaitingOn(kind="slot", detail="mail")


@pytest.mark.req("N.1")
@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: type(reason).__name__)
def test_every_reason_to_ask_is_explained(reason: p.Reason) -> None:
    state = paused(reason).state
    said = explain(state)
    assert said.waiting_on == WaitingOn(kind="person", detail=p.TYPE_OF[type(reason)].value, ref="p_1")
    assert said.doing.startswith("step a waits for ")
    assert said.since == state.opened[PauseId("p_1")]
    assert explain_step(state, state.steps[A]).doing == said.doing


def test_a_question_about_the_whole_task_names_no_step() -> None:
    pause = p.Pause(id=PauseId("p_1"), step=None, reason=TOOL_ERROR, title="The code has changed", why="why")
    history = History(plan(step("a"))).say(e.PauseOpened(pause=pause))
    said = explain(history.say(e.TaskPaused(pause=pause.id, reason_type=pause.type)).state)
    assert said.text == "waits for a decision (The code has changed) since 00:16"


def test_items_speak_for_their_step() -> None:
    history = History(plan(step("a", for_each=[1, 2]), step("b"))).claimed()
    history.say(e.StepStarted(title="A", items=sealed([1, 2])), "a").called("a[0]")
    said = explain(history.state)
    assert (said.doing, said.next) == ("step a[0] calls some.tool", "some.tool, then complete")


def test_a_pause_lifted_before_anybody_went_on_is_explained() -> None:
    state = paused(TOOL_ERROR).state
    state.pauses.clear()
    assert explain(state).doing == "is about to go on"


# --- rows of a list ---


@pytest.mark.req("N.1")
@pytest.mark.parametrize("status", TaskStatus)
def test_every_row_is_explained(status: TaskStatus) -> None:
    row = TaskRow(
        status=status, generation=1, recoveries=0, done=2, due_at=None, started_at=START, ended_at=None, outcome=None,
        error_code="http_503",
    )  # fmt: skip
    said = explain_row(row, LATER, 5, None)
    assert said.doing
    assert said.next
    assert said.text.endswith("01:16")
    assert said.since == LATER
    with_pause = explain_row(row, LATER, 5, (asked(TOOL_ERROR), START))
    if status is TaskStatus.PAUSED:
        assert with_pause.text == "Go on? waits for a person since 00:16"
        assert with_pause.waiting_on == WaitingOn(kind="person", detail="toolError", ref="p_1")
    else:
        assert with_pause == said


def test_a_running_row_counts_and_a_failed_one_names_its_error() -> None:
    row = TaskRow(
        status=TaskStatus.RUNNING, generation=1, recoveries=0, done=2, due_at=None, started_at=START, ended_at=None,
        outcome=None, error_code=None,
    )  # fmt: skip
    assert explain_row(row, LATER, 5, None).text == "2 of 5 steps done since 01:16"


# --- commands ---

LEGAL: dict[str, tuple[str, ...]] = {
    "queued": ("cancel", "fork", "patch", "pause"),
    "claimed": ("cancel", "fork", "patch", "pause"),
    "running": ("cancel", "fork", "patch", "pause"),
    "pausing": ("cancel", "fork", "patch", "resume"),
    "paused by someone": ("cancel", "fork", "patch", "resume", "undo"),
    "paused for someone": ("answer", "cancel", "fork", "patch", "pause", "undo"),
    "stalled": ("cancel", "fork", "patch", "pause"),
    "cancelling": ("cancel", "fork"),
    "completed": ("fork", "retry", "undo"),
    "failed": ("fork", "retry", "undo"),
    "cancelled": ("fork", "undo"),
}


@pytest.mark.parametrize("way", LEGAL)
def test_which_commands_are_legal_now(way: str) -> None:
    assert legal_commands(STATUSES[way][0]().state) == LEGAL[way]


def test_a_pause_beside_another_leaves_both_to_be_dealt_with() -> None:
    history = paused(TOOL_ERROR).say(e.PauseOpened(pause=USER))
    assert legal_commands(history.state) == ("answer", "cancel", "fork", "patch", "resume", "undo")


# --- text ---


def test_text_fits_a_line() -> None:
    assert one_line("a\n b\t c") == "a b c"
    assert len(one_line("x" * 1000)) == 200


def test_clock_is_hours_and_minutes_in_utc() -> None:
    assert [clock(Instant(at)) for at in (0, 59_999, 60_000, 86_399_999, 86_400_000)] == [
        "00:00", "00:00", "00:01", "23:59", "00:00",
    ]  # fmt: skip
