"""Retry, fork, patch, undo: a task taken up again, changed, or taken back; each also as a question (`dry_run`)."""

from typing import cast

from everstep.domain.errors import PlanError, Validation
from everstep.domain.states import TERMINAL
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.domain.wishes import Fork, Patch, Retry, Undo
from everstep.doors.api.context import Asked, Backing, exists, find_task, key_of, task_reply, unless_changed
from everstep.doors.api.request import Fields, Response, reply
from everstep.wire.again import again_json, revised_json, undo_json
from everstep.wire.change import read_ops
from everstep.wire.task import task_json


async def retry(back: Backing, asked: Asked) -> Response:
    """The same task again, from a step."""
    fields = asked.fields
    wish = Retry(
        from_step=fields.text("from_step"),
        arguments=_arguments(fields),
        note=fields.text("note"),
        confirm_effects=fields.flag("confirm_effects"),
    )
    seen = await _seen(back, asked)
    if fields.flag("dry_run"):
        return reply(again_json(await back.desk.plan_retry(seen.id, asked.who, wish)))
    return await _told(back, asked, await back.desk.retry(seen.id, asked.who, wish), 202)


async def fork(back: Backing, asked: Asked) -> Response:
    """A new task with the outcomes of this one."""
    fields = asked.fields
    wish = Fork(
        from_step=fields.some_text("from_step"),
        inputs=fields.map("inputs") or {},
        arguments=_arguments(fields),
        title=fields.text("title"),
        note=fields.text("note"),
        key=key_of(asked),
    )
    seen = await _seen(back, asked)
    if fields.flag("dry_run"):
        return reply(again_json(await back.desk.plan_fork(seen.id, asked.who, wish)))
    before = wish.key is not None and await exists(back, asked, wish.key)
    return await _made(back, asked, await back.desk.fork(seen.id, asked.who, wish), before=before)


async def patch(back: Backing, asked: Asked) -> Response:
    """Change what has not begun: all of it or nothing. What comes through the local door is the operator's."""
    fields = asked.fields
    ops, problems = read_ops(fields.value("ops"))
    if problems:
        raise PlanError(f"the patch has problems: {problems[0].message}", problems)
    if "base_revision" not in fields:
        raise Validation("'base_revision' is missing", what_to_do="name the revision that the patch was made for")
    wish = Patch(
        base_revision=fields.count("base_revision", 1),
        ops=ops,
        trusted=asked.request.local,
        note=fields.text("note"),
    )
    seen = await _seen(back, asked)
    change = back.desk.plan_patch if fields.flag("dry_run") else back.desk.patch
    done = await change(seen.id, asked.who, wish)
    return reply(revised_json(done.revision, done.digest, done.diff.diff))


async def undo(back: Backing, asked: Asked) -> Response:
    """A new task that takes back what this one did."""
    fields = asked.fields
    steps = fields.value("steps")
    if steps is not None and not (isinstance(steps, list) and all(isinstance(step, str) for step in steps)):
        raise Validation("'steps' must be a list of step ids")
    named = None if steps is None else [str(step) for step in steps]
    wish = Undo(steps=named, note=fields.text("note"), key=key_of(asked))
    seen = await _seen(back, asked)
    if fields.flag("dry_run"):
        return reply(undo_json(await back.desk.plan_undo(seen.id, asked.who, wish)))
    before = wish.key is not None and await exists(back, asked, wish.key)
    return await _made(back, asked, await back.desk.undo(seen.id, asked.who, wish), before=before)


def _arguments(fields: Fields) -> dict[str, JsonObject]:
    """Step -> arguments that win over the plan's."""
    given = fields.map("arguments") or {}
    if not all(isinstance(value, dict) for value in given.values()):
        raise Validation("'arguments' must be a map of steps, each with a map of arguments")
    return cast("dict[str, JsonObject]", given)


async def _seen(back: Backing, asked: Asked) -> TaskState:
    """The task as it stands, if that is what the caller has seen."""
    state = await find_task(back, asked)
    unless_changed(asked, state, task_json(state))
    return state


async def _made(back: Backing, asked: Asked, state: TaskState, *, before: bool) -> Response:
    if before:
        return await _told(back, asked, state, 200, idempotent_replay="true")
    return await _told(back, asked, state, 201, location=f"/v1/tasks/{state.id}")


async def _told(back: Backing, asked: Asked, state: TaskState, status: int, **headers: str) -> Response:
    """Through the local door it is carried on by this very engine."""
    if asked.request.local and state.status not in TERMINAL:
        back.desk.carry(state.id)
    expected = await back.desk.forecast.of(state)
    return task_reply(state, task_json(state, outlook=expected), status, **headers)
