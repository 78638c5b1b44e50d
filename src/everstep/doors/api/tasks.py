"""Tasks: create, look, pause, resume, cancel. Each handler translates; what happens is the desk's business."""

from typing import Final

from everstep.domain.errors import Validation
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.doors.api.context import (
    Asked,
    Backing,
    admit_task,
    etag,
    exists,
    find_task,
    journal,
    key_of,
    task_reply,
    unless_changed,
)
from everstep.doors.api.made import body_of, made_reply, told
from everstep.doors.api.request import Response
from everstep.doors.api.sources import requested_plan
from everstep.facade.accept import Wish
from everstep.wire.plan import to_json as plan_to_json
from everstep.wire.step import attempt_json
from everstep.wire.task import shown_steps, task_json

PARTS: Final = frozenset({"attempts", "plan"})
"""What `include` may add to a task."""


async def create(back: Backing, asked: Asked) -> Response:
    """A new task; or, with `attach`, the newest unfinished one of the same plan and inputs."""
    plan = requested_plan(back, asked)
    inputs = asked.fields.map("inputs") or {}
    if asked.fields.flag("attach"):
        found = await back.desk.newest(plan.spec, plan.digest, inputs, asked.who)
        if found is not None:
            return await told(back, asked, found, 200)
    key = key_of(asked)
    made_before = key is not None and await exists(back, asked, key)
    wish = Wish(
        plan=plan.spec,
        digest=plan.digest,
        inputs=inputs,
        trusted=plan.trusted,
        key=key,
        title=asked.fields.text("title"),
        labels=asked.fields.texts("labels"),
        priority=asked.fields.count("priority", 1),
        pause_after=asked.fields.text("pause_after"),
        pause_timeout_ms=asked.fields.seconds("pause_timeout"),
        limits=asked.fields.map("limits"),
        deadline=asked.fields.time("deadline"),
        continue_by=asked.fields.text("continue_by"),
        unannounced=asked.fields.flag("unannounced"),
        checked=plan.spec.durable is None,
    )
    if not made_before:
        admit_task(back)
    state = await back.desk.submit(wish, asked.who)
    if made_before:
        return await told(back, asked, state, 200, idempotent_replay="true")
    return await made_reply(back, asked, state)


async def get(back: Backing, asked: Asked) -> Response:
    """A task with all it has; `include` adds the attempts of its steps, and its plan."""
    state = await find_task(back, asked)
    include = frozenset(filter(None, asked.query.get("include", "").split(",")))
    if not include <= PARTS:
        raise Validation(f"'include' takes {', '.join(sorted(PARTS))}")
    if not include and asked.request.headers.get("if-none-match") == etag(state):
        return Response(status=304, headers={"etag": etag(state)}, body=b"")
    history = await journal(back, state.id, None if "attempts" in include else frozenset(shown_steps(state)))
    await _fetch(back, state)
    body = await body_of(back, state, history)
    body["queue"] = await _queue(back, state)
    if "attempts" in include:
        body["attempts"] = [attempt_json(attempt) for tries in history.attempts.values() for attempt in tries]
    if "plan" in include:
        body["plan_source"] = plan_to_json(state.plan)
    return task_reply(state, body)


async def pause(back: Backing, asked: Asked) -> Response:
    """Ask for a pause; what cannot be cut off is let end, and the reply says which way it went."""
    mode = asked.fields.text("mode") or "graceful"
    seen = await _seen(back, asked)
    state = await back.desk.pause(seen.id, asked.who, asked.fields.text("note"), mode)
    body = await body_of(back, state)
    under_way = state.pausing
    body["mode_used"] = mode if under_way is None else under_way.mode_used
    body["waits_for"] = [] if under_way is None else [*under_way.waits_for]
    return task_reply(state, body, 200 if state.status is TaskStatus.PAUSED else 202)


async def resume(back: Backing, asked: Asked) -> Response:
    """Lift the pause someone asked for; nothing to lift is fine too."""
    seen = await _seen(back, asked)
    state = await back.desk.resume(seen.id, asked.who, asked.fields.text("note"))
    return await told(back, asked, state, 202 if seen.held_back else 200)


async def update(back: Backing, asked: Asked) -> Response:
    """Another title, other labels, another priority."""
    seen = await _seen(back, asked)
    fields = asked.fields
    state = await back.desk.update(
        seen.id,
        asked.who,
        title=fields.text("title"),
        labels=fields.texts("labels"),
        priority=fields.count("priority", 1) if "priority" in fields else None,
        pause_timeout_ms=fields.seconds("pause_timeout"),
    )
    return await told(back, asked, state, 200)


async def delete(back: Backing, asked: Asked) -> Response:
    """Forget a task that has ended, journal and all."""
    seen = await _seen(back, asked)
    await back.desk.delete(seen.id, asked.who)
    return Response(status=204, headers={"cache-control": "no-store"}, body=b"")


async def cancel(back: Backing, asked: Asked) -> Response:
    """End it: at once, or when what is in flight has ended."""
    seen = await _seen(back, asked)
    state = await back.desk.cancel(seen.id, asked.who, asked.fields.text("note"))
    return await told(back, asked, state, 200 if state.terminal else 202)


async def _queue(back: Backing, state: TaskState) -> JsonObject | None:
    """Its place among those that wait to be claimed, and how long it will wait, if anybody can know."""
    if state.status is not TaskStatus.QUEUED:
        return None
    position = await back.desk.place_of(state.id)
    if position is None:
        return None
    wait_s = None if back.desk.halted is not None else await back.desk.forecast.wait_s(position)
    return {"position": position, "wait_s": wait_s}


async def _fetch(back: Backing, state: TaskState) -> None:
    """Inputs and outputs are part of a task, however large they are."""
    for sealed in (state.inputs, state.outputs):
        if sealed is not None and not sealed.present:
            sealed.value = await back.desk.value(sealed)
            sealed.present = True


async def _seen(back: Backing, asked: Asked) -> TaskState:
    """The task as it stands, if that is what the caller has seen."""
    state = await find_task(back, asked)
    unless_changed(asked, state, task_json(state))
    return state
