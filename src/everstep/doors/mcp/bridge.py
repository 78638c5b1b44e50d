"""Between a task and what MCP calls one: its status, what a poll says, the result of a call. Pure."""

import re
from dataclasses import field
from typing import Final

from everstep.domain.continuation import HANDED, is_handoff
from everstep.domain.failure import Category, Failure
from everstep.domain.ids import StepPath
from everstep.domain.pauses import Pause, PauseType
from everstep.domain.progress import progress_of
from everstep.domain.record import record
from everstep.domain.remaining import open_question, shown_status
from everstep.domain.states import TERMINAL, StepStatus, TaskStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject, JsonValue
from everstep.doors.mcp.handoff import compact
from everstep.wire.handoff import reason_json

EXTENSION: Final = "io.modelcontextprotocol/tasks"
RELATED: Final = "io.modelcontextprotocol/related-task"
TASK_ID_KEYS: Final = ("_task_id", "everstep/task_id", RELATED)
LEGACY, MODERN = "2025-11-25", "2026-07-28"
STATUS_CHARS_MAX: Final = 200
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PROXIED: Final = "proxied-call"
"""The name of a plan that stands for one call of a tool behind the proxy."""


@record
class View:
    """How one client sees a task: what it is called there, and which of its questions the client can be asked."""

    handle: str
    ttl_ms: int
    now_ms: int
    elicits: bool = False
    actor_kind: str = "llm"
    estimate: JsonObject | None = None
    """Seconds of work left, `{p10, p50, p90}`, if anything is known."""
    aside: JsonObject = field(default_factory=dict)
    """Questions that the client has put aside, and how often others were asked."""
    variables_bytes: int = 1024 * 1024
    """How much of the results it is shown with the task; the rest is named."""


def askable(state: TaskState, view: View) -> list[Pause]:
    """Questions that this client can be asked; beside them other steps may be at work."""
    if not view.elicits or state.status in TERMINAL or state.status is TaskStatus.CANCELLING:
        return []
    return [
        pause
        for pause in state.pauses.values()
        if not is_handoff(pause) and view.actor_kind in pause.may_answer and view.aside.get(pause.id) != "declined"
    ]


def mcp_status(state: TaskState, view: View, era: str) -> str:
    """One of the five words of MCP."""
    match state.status:
        case TaskStatus.COMPLETED:
            return "completed"
        case TaskStatus.CANCELLED:
            return "cancelled"
        case TaskStatus.FAILED:
            return "failed" if era == LEGACY or ends_as_error(state) else "completed"
        case TaskStatus.CANCELLING if era == LEGACY and view.aside.get("cancelled"):
            return "cancelled"
        case _:
            return "input_required" if askable(state, view) else "working"


def ends_as_error(state: TaskState) -> bool:
    """Whether a direct call would have been answered with an error of the protocol: our bug, or a tool's."""
    error = state.error
    return error is not None and error.failure.category is Category.INTERNAL


def meta_of(state: TaskState, view: View, era: str = MODERN) -> JsonObject:
    """What programs read beside the messages of a prompt, or the result of a call."""
    steps: list[JsonValue] = [
        {"name": spec.id, "status": shown_status(state, state.steps[StepPath(spec.id)])} for spec in state.plan.steps
    ]
    found: JsonObject = {"task_id": view.handle, "task_status": mcp_status(state, view, era), "steps": steps}
    question = open_question(state) if state.status is TaskStatus.PAUSED else None
    return found if question is None else {**found, "pause_reason": reason_json(question)}


def call_result(value: JsonValue) -> JsonObject:
    """What a tool gave."""
    structured: JsonObject = value if isinstance(value, dict) else {"result": value}
    return {
        "content": [{"type": "text", "text": value if isinstance(value, str) else compact(value)}],
        "structuredContent": structured,
        "isError": False,
    }


def proxied_result(value: JsonValue) -> JsonObject:
    """What a tool behind the proxy gave, as it came."""
    assert isinstance(value, dict)
    structured = value.get("structured")
    return {
        "content": value.get("content"),
        **({} if structured is None else {"structuredContent": structured}),
        "isError": False,
    }


def failed_result(error: JsonObject) -> JsonObject:
    """Something that a model can act on: the error object, and its message as text."""
    text = str(error.get("message") or "failed")
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"error": error}, "isError": True}


def failure_json(failure: Failure) -> JsonObject:
    """A failure as an error object; nothing of the inside."""
    return {
        "code": failure.code,
        "category": failure.category.value,
        "message": failure.message,
        "what_to_do": failure.what_to_do,
    }


def task_result(state: TaskState) -> JsonObject | None:
    """What a task that has ended gave, as the result of the call that made it."""
    match state.status:
        case TaskStatus.COMPLETED:
            return completed_result(state.plan.name, {} if state.outputs is None else state.outputs.value)
        case TaskStatus.FAILED if state.error is not None:
            return failure_result(state.plan.name, state.error.failure)
        case TaskStatus.CANCELLED:
            return failed_result({"code": "cancelled", "message": "the task was cancelled"})
        case _:
            return None


def completed_result(plan: str, outputs: JsonValue) -> JsonObject:
    """What a task of this plan gave."""
    if plan in ("call", PROXIED) and isinstance(outputs, dict) and [*outputs] == ["result"]:
        outputs = outputs["result"]
    return proxied_result(outputs) if plan == PROXIED else call_result(outputs)


def failure_result(plan: str, failure: Failure) -> JsonObject:
    """Why it gave nothing."""
    said = (failure.details or {}).get("content")
    if plan == PROXIED and isinstance(said, list):
        return {"content": said, "isError": True}
    return failed_result(failure_json(failure))


def status_message(state: TaskState, view: View | None = None) -> str:
    """One line for people: no ids, no arguments."""
    total = len(state.plan.steps)
    steps = [state.steps[StepPath(spec.id)] for spec in state.plan.steps]
    done = sum(step.status is StepStatus.COMPLETED for step in steps)
    match state.status:
        case TaskStatus.COMPLETED if state.outcome == "partial":
            failed = sum(step.status is StepStatus.FAILED for step in steps)
            skipped = sum(step.status is StepStatus.SKIPPED for step in steps)
            return f"Done with issues: {failed} failed, {skipped} skipped."
        case TaskStatus.COMPLETED:
            return f"Done: {done} of {total} steps."
        case TaskStatus.CANCELLED | TaskStatus.CANCELLING:
            return "Cancelled."
        case TaskStatus.FAILED:
            return _short("" if state.error is None else f"Failed: {state.error.failure.message}")
        case TaskStatus.PAUSED:
            return _short(_waiting(state, done, total))
        case _:
            return _short(_working(state, total, view))


def _waiting(state: TaskState, done: int, total: int) -> str:
    question = open_question(state)
    if question is None:
        left = "All steps done. Complete it with a result."
        return left if done == total else f"{done} of {total} steps done. The client goes on."
    step = "" if question.step is None else f" of step '{question.step}'"
    match question.type:
        case PauseType.APPROVAL_REQUIRED:
            return f"Waiting for approval{step}."
        case PauseType.INPUT_REQUIRED:
            return f"Waiting for an answer{step}."
        case kind if kind in HANDED:
            return f"Step '{question.step}' cannot go on: {kind}."
        case kind:
            return f"Waiting for an answer: {kind}."


def _working(state: TaskState, total: int, view: View | None) -> str:
    for number, spec in enumerate(state.plan.steps, start=1):
        step = state.steps[StepPath(spec.id)]
        if step.ended:
            continue
        waits = _retry(step, view)
        return f"Step {number} of {total}: {spec.id}. {waits or _left(None if view is None else view.estimate)}"
    return f"{total} of {total} steps done."


def _retry(step: StepState, view: View | None) -> str | None:
    error = step.error
    if step.retry_at is None or error is None or view is None:
        return None
    soon = max(0, step.retry_at - view.now_ms) / 1000
    return f"Retry {error.retries} of {error.retries_max} in {_length(soon)}."


def _left(estimate: JsonObject | None) -> str:
    low, middle, high = (None if estimate is None else estimate.get(key) for key in ("p10", "p50", "p90"))
    if not all(isinstance(one, int | float) for one in (low, middle, high)):
        return "No estimate yet."
    return f"About {_length(middle)} left ({_length(low)} to {_length(high)})."


def _length(seconds: JsonValue) -> str:
    """A length of time in words that are easy to say."""
    assert isinstance(seconds, int | float)
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{round(seconds / 3600)} h"


def _short(text: str) -> str:
    return text if len(text) <= STATUS_CHARS_MAX else text[: STATUS_CHARS_MAX - 1] + "…"


def poll_ms(state: TaskState, view: View | None = None) -> int:
    """When it is worth asking again: an eighth of what is left, as far as that is known."""
    if state.status is TaskStatus.PAUSED:
        return 5000
    middle = None if view is None or view.estimate is None else view.estimate.get("p50")
    if not isinstance(middle, int | float):
        return 1000
    return round(1000 * min(10.0, max(0.5, middle / 8)))


def seen_json(state: TaskState, view: View) -> JsonObject:
    """The same for programs: up to which event this is true, how far it is, what is left."""
    done = progress_of(state)
    return {
        "everstep/seq": state.seq,
        "everstep/progress": {"fraction": done.fraction, "done": done.done, "total": done.total},
        "everstep/estimate": view.estimate,
    }


def lasts_ms(state: TaskState, view: View) -> int:
    """From creation on: while the task is open every look leaves the whole time, after its end no more is added."""
    until = view.now_ms if state.ended_at is None else state.ended_at
    return view.ttl_ms + max(0, until - state.created_at)


def expired(state: TaskState, view: View) -> bool:
    """Whether the handle is unknown by now."""
    return state.ended_at is not None and view.now_ms > state.ended_at + view.ttl_ms


def task_id_in(meta: JsonObject) -> str | None:
    """The task that a call belongs to; raises ValueError if its names differ."""
    found = {_id_of(meta[key]) for key in TASK_ID_KEYS if key in meta}
    if len(found) > 1 or None in found:
        raise ValueError("the task ids in _meta differ, or are none")
    return next(iter(found), None)


def _id_of(said: JsonValue) -> str | None:
    if isinstance(said, dict):
        said = said.get("taskId")
    return said if isinstance(said, str) else None
