"""Tasks on the wire of revision 2026-07-28: the extension. Flat, with what ended it or what it asks. Pure."""

from everstep.domain.states import TERMINAL
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.doors.mcp.bridge import (
    MODERN,
    View,
    askable,
    ends_as_error,
    failure_json,
    lasts_ms,
    mcp_status,
    poll_ms,
    seen_json,
    status_message,
    task_result,
)
from everstep.doors.mcp.forms import form_of
from everstep.wire.handoff import variables_json
from everstep.wire.times import to_text

INTERNAL = -32603


def created_json(state: TaskState, view: View) -> JsonObject:
    """The reply to a call that became a task."""
    return {"resultType": "task", **_flat(state, view)}


def task_json(state: TaskState, view: View) -> JsonObject:
    """A poll: where it stands, with its result, its error, or what it asks; variables in `_meta`."""
    body = {"resultType": "complete", **detail_json(state, view)}
    body["_meta"] = {**variables_json(state, view.handle, bytes_max=view.variables_bytes), **seen_json(state, view)}
    return body


def detail_json(state: TaskState, view: View) -> JsonObject:
    """The whole task, as a notification tells it."""
    body = _flat(state, view)
    questions = questions_json(state, view)
    if questions:
        body["inputRequests"] = questions
    if state.status in TERMINAL:
        if ends_as_error(state) and state.error is not None:
            failure = state.error.failure
            body["error"] = {"code": INTERNAL, "message": failure.message, "data": failure_json(failure)}
        elif body["status"] != "cancelled":
            body["result"] = task_result(state)
    return body


def questions_json(state: TaskState, view: View) -> JsonObject:
    """What this client can be asked, as forms by their keys."""
    return {key_of(pause.id, view): form_of(pause, problem_of(pause.id, view)) for pause in askable(state, view)}


def key_of(pause: str, view: View) -> str:
    """What a question is called on the wire; asked again it has another name."""
    asked = view.aside.get(f"{pause}.asked")
    return f"{pause}.{asked}" if isinstance(asked, int) and asked > 1 else pause


def problem_of(pause: str, view: View) -> str | None:
    """What was wrong with the last answer."""
    said = view.aside.get(f"{pause}.problem")
    return said if isinstance(said, str) else None


def _flat(state: TaskState, view: View) -> JsonObject:
    return {
        "taskId": view.handle,
        "status": mcp_status(state, view, MODERN),
        "statusMessage": status_message(state, view),
        "createdAt": to_text(state.created_at),
        "lastUpdatedAt": to_text(state.updated_at),
        "ttlMs": lasts_ms(state, view),
        "pollIntervalMs": poll_ms(state, view),
    }
