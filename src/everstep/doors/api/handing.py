"""A task taken over by a client: calls made for it, its completion, its variables, and the packet to go on from."""

import secrets
from typing import Final

from everstep.domain.continued import ClientCall, Done
from everstep.domain.errors import Validation
from everstep.domain.task import TaskState
from everstep.doors.api.context import Asked, Backing, find_task, task_reply
from everstep.doors.api.request import Response, reply
from everstep.facade.handing import Handing
from everstep.facade.handles import find_handle, handle_of, note
from everstep.wire.failure import write_failure
from everstep.wire.handoff import packet_json, variables_json
from everstep.wire.step import plain, plain_object
from everstep.wire.task import task_json

KEY: Final = "idempotency-key"
VALUES_BYTES_MAX: Final = 1024 * 1024
"""Larger outputs are not fetched to be shown among the variables."""


async def go_on(back: Backing, asked: Asked) -> Response:
    """One call of a client's for a paused task; answered when its outcome is recorded."""
    seen = await find_task(back, asked)
    call = ClientCall(
        tool=asked.fields.some_text("tool"),
        arguments=asked.fields.map("arguments") or {},
        key=asked.request.headers.get(KEY),
    )
    came = await Handing(back.desk).call(seen.id, asked.who, call)
    if asked.request.local:
        back.desk.carry(seen.id)
    said = came.said
    output = None if said.output is None else await back.desk.value(said.output)
    error = None if said.failure is None else plain_object(write_failure(said.failure, came.step))
    task = task_json(came.task)
    return reply({"step": came.step, "output": output, "error": error, "task": task})


async def complete(back: Backing, asked: Asked) -> Response:
    """A client's word that a paused task is done."""
    if not asked.fields.given("result"):
        raise Validation("'result' is missing", what_to_do="give the result, null if there is none")
    seen = await find_task(back, asked)
    done = Done(result=asked.fields.value("result"), note=asked.fields.text("note"))
    state = await Handing(back.desk).complete(seen.id, asked.who, done)
    return task_reply(state, task_json(state))


async def variables(back: Backing, asked: Asked) -> Response:
    """`_workflow.*`, and what the client keeps with the task."""
    state = await find_task(back, asked)
    await fetch(back, state)
    return reply(variables_json(state, asked.params["task"], bytes_max=_most(back)))


async def set_variables(back: Backing, asked: Asked) -> Response:
    """Keep values for the client; null deletes. For the MCP door alone."""
    seen = await find_task(back, asked)
    changes = asked.fields.map("variables") or {}
    state = await Handing(back.desk).set_variables(seen.id, asked.who, changes, bytes_max=_most(back))
    return reply(variables_json(state, asked.params["task"], bytes_max=_most(back)))


def _most(back: Backing) -> int:
    return int(str(back.settings.said["mcp.variables"].value))


async def handoff(back: Backing, asked: Asked) -> Response:
    """Everything that another client needs to go on."""
    state = await find_task(back, asked)
    await fetch(back, state)
    return reply(packet_json(state, asked.params["task"]))


async def handle(back: Backing, asked: Asked) -> Response:
    """What a client outside calls this generation of the task, and what it has noted; for the MCP door alone."""
    state = await find_task(back, asked)
    known = await find_handle(back.desk, asked.params["task"], asked.who.owner)
    named = known or await handle_of(
        back.desk, state, f"mt_{secrets.token_urlsafe(24)}", asked.fields.count("ttl_ms", 0)
    )
    notes = asked.fields.map("notes")
    if notes is not None:
        named = await note(back.desk, named, notes)
    return reply(plain(named))


async def fetch(back: Backing, state: TaskState) -> None:
    """Inputs and outputs that are kept elsewhere, as far as they would be shown."""
    for sealed in (state.inputs, *(step.output for step in state.steps.values())):
        if sealed is not None and not sealed.present and sealed.size_bytes <= VALUES_BYTES_MAX:
            sealed.value, sealed.present = await back.desk.value(sealed), True
