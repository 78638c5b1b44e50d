"""Tasks on the wire of revision 2025-11-25: part of the core, experimental. Pure."""

from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.doors.mcp.bridge import (
    LEGACY,
    RELATED,
    View,
    lasts_ms,
    mcp_status,
    poll_ms,
    seen_json,
    status_message,
    task_result,
)
from everstep.wire.handoff import variables_json
from everstep.wire.times import to_text


def created_json(state: TaskState, view: View) -> JsonObject:
    """The reply to a call that the client wanted as a task."""
    return {"task": flat_json(state, view)}


def flat_json(state: TaskState, view: View) -> JsonObject:
    """Where it stands."""
    return {
        "taskId": view.handle,
        "status": mcp_status(state, view, LEGACY),
        "statusMessage": status_message(state, view),
        "createdAt": to_text(state.created_at),
        "lastUpdatedAt": to_text(state.updated_at),
        "ttl": lasts_ms(state, view),
        "pollInterval": poll_ms(state, view),
    }


def task_json(state: TaskState, view: View) -> JsonObject:
    """A poll, with the variables."""
    variables = variables_json(state, view.handle, bytes_max=view.variables_bytes)
    return {**flat_json(state, view), "_meta": {**variables, **seen_json(state, view)}}


def result_json(state: TaskState, view: View) -> JsonObject:
    """The result of the call that the task was made for; flat."""
    return {**(task_result(state) or {}), "_meta": {RELATED: {"taskId": view.handle}}}
