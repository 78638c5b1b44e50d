"""The reply with a task that somebody made or moved: whole, brief, or when it is known what came of it."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Final

from everstep.domain.attempts import History
from everstep.domain.errors import EverstepError
from everstep.domain.states import TERMINAL
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.doors.api.channel import STANDS
from everstep.doors.api.context import Asked, Backing, task_reply
from everstep.doors.api.events import WAIT_S_MAX
from everstep.doors.api.halting import with_halt
from everstep.doors.api.request import Response
from everstep.wire.task import task_json

MINIMAL: Final = "return=minimal"
"""In `Prefer` (RFC 7240): whoever follows the task needs only its id."""
MINIMAL_WAIT: Final = f"{MINIMAL}, wait={WAIT_S_MAX}"
"""The same with its last event, if by then it has ended or waits for somebody: nothing has to be read again."""


async def made_reply(back: Backing, asked: Asked, state: TaskState) -> Response:
    """A new task, at once or, for who wants to wait, when it is known what came of it."""
    made = await told(back, asked, state, 201, location=f"/v1/tasks/{state.id}")
    if asked.request.headers.get("prefer") != MINIMAL_WAIT:
        return made
    with suppress(TimeoutError, EverstepError):  # it is made, whatever keeps us from waiting for it
        async with asyncio.timeout(WAIT_S_MAX):
            last = await back.desk.first(state.id, STANDS, state.seq)
            return made if last is None else replace(made, body=made.body[:-1] + b',"last":' + last.encoded + b"}")
    return made


async def told(back: Backing, asked: Asked, state: TaskState, status: int, **headers: str) -> Response:
    """A task that somebody wants carried on: through the local door, by this very engine."""
    if asked.request.local and state.status not in TERMINAL:
        back.desk.carry(state.id)
    brief = asked.request.headers.get("prefer") in (MINIMAL, MINIMAL_WAIT)
    body: JsonObject = {"id": state.id, "status": state.status.value} if brief else await body_of(back, state)
    return task_reply(state, body, status, **headers)


async def body_of(back: Backing, state: TaskState, history: History | None = None) -> JsonObject:
    """A task as it is shown, with what is left of it."""
    expected = await back.desk.forecast.of(state)
    return with_halt(back, task_json(state, history, expected), calling=bool(state.in_flight))
