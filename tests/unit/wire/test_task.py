"""Tasks, steps, attempts and pauses as objects: every field of the catalogue, in every state, as strict JSON."""

import json
from typing import cast

import pytest

from everstep.domain import events as e
from everstep.domain import pauses as p
from everstep.domain.attempts import History as Told
from everstep.domain.attempts import history_of
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Digest, Epoch, Instant, PauseId, Seq, StepPath, TaskId
from everstep.domain.plan import Effect, OnError, RetrySpec
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskRow
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.store import TaskSummary
from everstep.wire.step import attempt_json, payload_json, step_json
from everstep.wire.task import pause_json, task_json, task_summary_json
from everstep.wire.values import Codec, loads_strict
from tests.unit.histories import HUMAN, START, TASK, WORKER, History, plan, running, sealed, step

A = StepPath("a")
CODEC = Codec()


def names(text: str) -> list[str]:
    return text.split()


TASK_FIELDS = names(
    "id key title owner status outcome plan generation epoch recoveries seq priority labels inputs outputs issues "
    "error progress estimate explain pause pauses actions limits worker heartbeat_at queue parent created_by "
    "created_at started_at ended_at updated_at steps"
)
STEP_FIELDS = names(
    "id title tool tool_used tool_version effect status phase on_error needs skip fraction retry waiting_on input "
    "bound_from output summary via degraded cached counts error estimate attempts pause started_at ended_at duration_s"
)
ATTEMPT_FIELDS = names(
    "step number status generation epoch worker tool tool_version idempotency_key input approval degraded error "
    "effect_state usage containment started_at ended_at duration_s"
)
PAUSE_FIELDS = names(
    "id task step status title why reason call show guidance may_answer answers opened_at expires_at on_timeout "
    "answered grant"
)
USAGE_FIELDS = names("wall_s cpu_s memory_peak_bytes bytes_in bytes_out files_open cost tokens_in tokens_out counts")

FAILURE = Failure(
    code="http_503", category=Category.TRANSIENT, message="away", what_to_do="wait", effect_state=EffectState.NONE
)
ERROR = e.ErrorRecord(id="e_1", failure=FAILURE, attempt=1, retries=1, retries_max=3, retry_at=Instant(START + 5000))
TOOL_ERROR = p.ToolErrorPause(failed_step=A, error="away", retryable=True, suggested_tool="some.tool")
PAUSE = p.Pause(id=PauseId("p_1"), step=A, reason=TOOL_ERROR, title="a failed", why="away", guidance="be kind")


def strict(value: JsonValue) -> JsonValue:
    """Whatever leaves is strict JSON."""
    return loads_strict(json.dumps(value))


def object_of(value: JsonValue) -> JsonObject:
    assert isinstance(value, dict)
    return value


def failed_and_asked() -> History:
    history = running(step("a", on_error=OnError.PAUSE), step("b"))
    ended = e.AttemptFailed(attempt=1, error=ERROR, effect_state=EffectState.NONE, called=True, duration_s=0.25)
    history.say(ended, "a").say(e.PauseOpened(pause=PAUSE), "a")
    return history.say(e.TaskPaused(pause=PAUSE.id, reason_type=PAUSE.type))


def started_event() -> e.Recorded:
    body = e.AttemptStarted(
        attempt=1, epoch=Epoch(1), worker=WORKER, tool="some.tool", tool_version="1", effect=Effect.PURE,
        idempotency_key="k", input=sealed({"q": 1}),
    )  # fmt: skip
    return e.Recorded(task=TASK, seq=Seq(3), at=START, generation=1, actor=HUMAN, step=A, body=body)


# --- tasks ---


def test_a_task_carries_every_field_in_every_state() -> None:
    histories = [
        History(plan(step("a"))),
        running(step("a")),
        failed_and_asked(),
        running(step("a")).say(e.TaskCancelling()),
        running(step("a")).say(e.StepFailed(attempt=1, error=ERROR, duration_s=1), "a").say(
            e.TaskFailed(error=ERROR, skipped=(), duration_s=1, work_s=1, issues=(_issue(),))
        ),
    ]  # fmt: skip
    for history in histories:
        task = object_of(strict(task_json(history.state)))
        assert list(task) == TASK_FIELDS
        assert task["status"] == history.state.status.value
        explain = object_of(task["explain"])
        assert list(explain) == ["doing", "since", "waiting_on", "next", "text"]
        assert isinstance(task["steps"], list)
        assert [list(object_of(one)) for one in task["steps"]] == [STEP_FIELDS] * len(task["steps"])


def _issue() -> e.Issue:
    return e.Issue(step=A, status="failed", reason="away", error=FAILURE)


def test_a_task_shows_what_it_was_given_and_what_came_of_it() -> None:
    history = running(step("a"), step("b")).completed("a").called("b").completed("b")
    history.say(e.TaskCompleted(outcome="success", outputs=sealed({"n": 1}), issues=(), duration_s=1, work_s=1))
    task = task_json(history.state)
    assert (task["inputs"], task["outputs"], task["issues"], task["error"]) == ({}, {"n": 1}, [], None)
    assert task["plan"] == {"name": "p", "digest": "sha256:p", "revision": 1}
    assert task["progress"] == {"fraction": 1.0, "done": 2, "total": 2, "current": []}
    assert task["created_by"] == {"kind": "human", "id": "ana", "via": "cli"}
    assert (task["created_at"], task["ended_at"]) == ("1970-01-01T00:16:40.000Z", "1970-01-01T00:16:40.060Z")
    assert (task["actions"], task["pause"], task["pauses"]) == (["fork", "retry", "undo"], None, [])


def test_a_failed_task_carries_the_whole_error_and_its_issues() -> None:
    history = running(step("a")).say(e.StepFailed(attempt=1, error=ERROR, duration_s=1), "a")
    history.say(e.TaskFailed(error=ERROR, skipped=(), duration_s=1, work_s=1, issues=(_issue(),)))
    task = task_json(history.state)
    assert object_of(task["error"])["code"] == "http_503"
    assert isinstance(task["issues"], list)
    issue = object_of(task["issues"][0])
    assert (issue["step"], issue["status"]) == ("a", "failed")


def test_a_large_value_that_is_not_at_hand_is_shown_by_reference() -> None:
    state = History(plan(step("a"))).state
    state.inputs.present, state.inputs.by_reference = False, True
    assert task_json(state)["inputs"] == {
        "artifact": "sha256:{}", "media_type": "application/json", "bytes": 2, "preview": "", "untrusted": False,
    }  # fmt: skip


def test_only_the_first_five_hundred_steps_come_with_their_task() -> None:
    state = History(plan(*(step(f"s{at}") for at in range(501)))).state
    steps = task_json(state)["steps"]
    assert isinstance(steps, list)
    assert len(steps) == 500


# --- steps and attempts ---


def test_a_step_tells_its_story() -> None:
    history = failed_and_asked()
    told = history_of([started_event()])
    shown = object_of(strict(step_json(history.state, A, told)))
    assert list(shown) == STEP_FIELDS
    assert (shown["tool_version"], shown["effect"], shown["on_error"]) == ("1", "pure", "pause")
    assert (shown["status"], shown["pause"]) == ("paused", "p_1")
    assert shown["input"] == {"value": {"q": 1}, "digest": "sha256:{'q': 1}", "bytes": 8, "untrusted": False}
    assert shown["waiting_on"] == {"kind": "person", "detail": "toolError", "until": None, "ref": "p_1"}
    attempts = shown["attempts"]
    assert isinstance(attempts, list)
    assert [list(object_of(one)) for one in attempts] == [ATTEMPT_FIELDS]
    without = step_json(history.state, A, told, payloads=False)
    assert (without["input"], without["output"], without["attempts"]) == (None, None, [])


def test_suggestions_are_requests_that_need_nothing_more() -> None:
    error = object_of(step_json(failed_and_asked().state, A)["error"])
    suggestions = [object_of(one) for one in cast("list[JsonValue]", error["suggestions"])]
    assert [(one["action"], one["label"]) for one in suggestions] == [
        ("retry", "Try a again"),
        ("wait", "Try a again at 00:21"),
        ("skip", "Skip a"),
        ("cancel", "Cancel the task"),
    ]
    assert suggestions[0]["request"] == {"method": "POST", "path": "/v1/inbox/p_1/answer", "body": {"answer": "retry"}}


def test_a_skipped_step_says_why() -> None:
    history = running(step("a"), step("b", retry=RetrySpec(times=7)))
    history.say(e.StepSkipped(reason=e.SkipReason.UPSTREAM, upstream=A), "b")
    shown = step_json(history.state, StepPath("b"))
    assert shown["skip"] == {"reason": "upstream", "upstream": "a"}
    assert (shown["status"], shown["phase"], shown["fraction"]) == ("skipped", "done", 1.0)
    assert shown["retry"] == {"count": 0, "max": 7, "next_at": None}


def test_waiting_for_a_retry_says_until_when() -> None:
    history = running(step("a"))
    ended = e.AttemptFailed(attempt=1, error=ERROR, effect_state=EffectState.NONE, called=True, duration_s=0.25)
    history.say(ended, "a").say(e.StepRetryScheduled(attempt=1, error=ERROR, new_key=True), "a")
    shown = step_json(history.state, A)
    assert shown["phase"] == "retry_wait"
    assert shown["retry"] == {"count": 1, "max": 3, "next_at": "1970-01-01T00:16:45.000Z"}
    assert object_of(shown["waiting_on"])["kind"] == "retry"


def test_an_item_and_its_step() -> None:
    history = History(plan(step("a", for_each=[1, 2]))).claimed()
    history.say(e.StepStarted(title="A", items=sealed([1, 2])), "a").called("a[0]").completed("a[0]", 5)
    assert step_json(history.state, A)["counts"] == {"total": 2, "completed": 1, "failed": 0, "skipped": 0}
    item = step_json(history.state, StepPath("a[0]"))
    assert (item["id"], item["counts"]) == ("a[0]", None)
    assert object_of(item["output"])["value"] == 5


def test_an_attempt_that_goes_on_has_no_end() -> None:
    (attempt,) = history_of([started_event()]).attempts[A]
    shown = object_of(strict(attempt_json(attempt)))
    assert list(shown) == ATTEMPT_FIELDS
    assert (shown["status"], shown["usage"], shown["ended_at"], shown["duration_s"]) == ("started", None, None, None)


def test_an_attempt_that_ended_says_how_and_what_it_used() -> None:
    ended = e.AttemptTimedOut(attempt=1, error=ERROR, effect_state=EffectState.UNKNOWN, called=True, duration_s=0.25)
    event = e.Recorded(task=TASK, seq=Seq(4), at=Instant(START + 250), generation=1, actor=HUMAN, step=A, body=ended)
    (attempt,) = history_of([started_event(), event]).attempts[A]
    shown = attempt_json(attempt)
    assert (shown["status"], shown["effect_state"], shown["duration_s"]) == ("timed_out", "unknown", 0.25)
    assert list(object_of(shown["usage"])) == USAGE_FIELDS
    assert object_of(shown["error"])["code"] == "http_503"


def test_a_payload_is_its_value_or_a_reference() -> None:
    assert payload_json(None) is None
    small = CODEC.seal({"a": 1}, untrusted=True)
    assert payload_json(small) == {"value": {"a": 1}, "digest": small.digest, "bytes": 7, "untrusted": True}
    large = Codec(inline_bytes_max=4).seal("x" * 5000)
    shown = payload_json(large)
    assert shown is not None
    assert (shown["artifact"], shown["bytes"], shown["media_type"]) == (large.digest, 5002, "application/json")
    assert len(str(shown["preview"])) == 2048


# --- pauses ---


def test_an_open_pause_lists_every_answer_with_its_request() -> None:
    shown = object_of(strict(pause_json(PAUSE, TASK, START)))
    assert [*shown] == PAUSE_FIELDS
    assert (shown["status"], shown["answered"], shown["guidance"]) == ("open", None, "be kind")
    assert object_of(shown["reason"]) == {
        "type": "toolError", "failedStep": "a", "error": "away", "retryable": True, "suggestedTool": "some.tool",
    }  # fmt: skip
    answers = shown["answers"]
    assert isinstance(answers, list)
    assert [object_of(one)["answer"] for one in answers] == list(p.ANSWERS[PAUSE.type])


def test_a_closed_pause_says_who_answered_what() -> None:
    body = e.PauseAnswered(pause=PAUSE.id, answer="skip", note="not needed")
    event = e.Recorded(task=TASK, seq=Seq(9), at=START, generation=1, actor=HUMAN, step=A, body=body)
    shown = pause_json(PAUSE, TASK, START, status=p.PauseStatus.ANSWERED, history=Told(answers={PAUSE.id: event}))
    assert (shown["status"], shown["answers"]) == ("answered", [])
    assert shown["answered"] == {
        "answer": "skip",
        "actor": {"kind": "human", "id": "ana", "via": "cli"},
        "at": "1970-01-01T00:16:40.000Z",
        "note": "not needed",
        "diff": None,
    }
    withdrawn = pause_json(PAUSE, TASK, START, status=p.PauseStatus.WITHDRAWN)
    assert (withdrawn["status"], withdrawn["answered"]) == ("withdrawn", None)


def test_a_task_shows_its_oldest_pause_and_lists_all() -> None:
    task = task_json(failed_and_asked().state)
    assert object_of(task["pause"])["opened_at"] == "1970-01-01T00:16:40.040Z"
    assert task["pauses"] == ["p_1"]
    assert task["actions"] == ["answer", "cancel", "fork", "patch", "pause", "undo"]


# --- rows ---


@pytest.mark.parametrize("status", TaskStatus)
def test_a_row_is_a_task_without_its_inside(status: TaskStatus) -> None:
    ended = START if status in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED) else None
    row = TaskRow(
        status=status, generation=1, recoveries=0, done=1, due_at=None, started_at=START, ended_at=ended, outcome=None,
        error_code=None,
    )  # fmt: skip
    summary = TaskSummary(
        id=TaskId("t_1"), owner="local", key="k", title="T", plan_name="p", plan_digest=Digest("sha256:p"), priority=1,
        created_at=START, updated_at=START, epoch=Epoch(1), worker=None, seq=Seq(3), steps=2, row=row,
    )  # fmt: skip
    shown = object_of(strict(task_summary_json(summary, {TaskId("t_1"): (PAUSE, START)})))
    missing = set(TASK_FIELDS) - set(shown)
    assert missing == {"inputs", "outputs", "steps"}
    assert object_of(shown["progress"])["fraction"] == (1.0 if ended else 0.5)
    assert object_of(shown["pause"])["id"] == "p_1"
    assert object_of(shown["explain"])["text"]
    assert task_summary_json(summary)["pause"] is None
