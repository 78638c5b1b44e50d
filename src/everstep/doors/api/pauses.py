"""Pauses and signals: what waits for someone or something. Which answers there are is `domain/pauses`' business."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from everstep.domain.commands import Reply
from everstep.domain.errors import Conflict, NotFound
from everstep.domain.ids import PauseId
from everstep.domain.pauses import PauseStatus
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing, journal
from everstep.doors.api.cursor import cursor_of, place_in
from everstep.doors.api.request import Response, flag_in, limit_in, reply
from everstep.ports.store import KeptPause, PauseFilter
from everstep.wire.task import pause_json

PAGE: Final = 50
PAGE_MAX: Final = 500
OPEN_MAX: Final = 10_000
ANSWERED_MAX: Final = 50
"""Who answered stands in the journal of the task, and each of them is read."""


async def inbox(back: Backing, asked: Asked) -> Response:
    """What waits for someone, oldest first; or what was answered, newest first, with who did it."""
    named = asked.query.get("task")
    task = (await back.desk.get(named, asked.who)).id if named else None
    limit, after = limit_in(asked.query, PAGE, most=PAGE_MAX), place_in("inbox", asked.query.get("cursor"))
    if flag_in(asked.query, "answered", default=False):
        return await _answered(back, PauseFilter(owner=asked.who.owner, task=task), min(limit, ANSWERED_MAX))
    kept = await back.desk.inbox(PauseFilter(owner=asked.who.owner, task=task, limit=OPEN_MAX))
    kind, plan = asked.query.get("type"), asked.query.get("plan")
    fitting = [one for one in kept if kind in (None, one.pause.type) and plan in (None, one.plan_name)]
    left = fitting[_begin(fitting, after) :]
    shown = left[:limit]
    items = [pause_json(one.pause, one.task, one.opened_at) for one in shown]
    return reply({"items": [*items], "next_cursor": _next(shown) if len(left) > limit else None})


async def _answered(back: Backing, of: PauseFilter, limit: int) -> Response:
    kept = await back.desk.inbox(replace(of, status=PauseStatus.ANSWERED, newest=True, limit=limit))
    told = {task: await journal(back, task) for task in {one.task for one in kept}}
    items = [pause_json(one.pause, one.task, one.opened_at, status=one.status, history=told[one.task]) for one in kept]
    return reply({"items": [*items], "next_cursor": None})


def _next(shown: Sequence[KeptPause]) -> str:
    return cursor_of("inbox", f"{shown[-1].opened_at} {shown[-1].pause.id}")


def _begin(kept: Sequence[KeptPause], after: str | None) -> int:
    """Behind the last one seen, or, if that was answered meanwhile, behind when it was opened."""
    if after is None:
        return 0
    opened_at, _, name = after.partition(" ")
    known = [one.pause.id for one in kept]
    if name in known:
        return known.index(PauseId(name)) + 1
    return sum(one.opened_at < int(opened_at) for one in kept)


async def get(back: Backing, asked: Asked) -> Response:
    """One, closed too: then with who answered."""
    return reply(await _pause(back, await _kept(back, asked)))


async def answer(back: Backing, asked: Asked) -> Response:
    """Give an answer: one wins. The step goes on at once, unless the whole task stands still."""
    kept = await _kept(back, asked)
    fields = asked.fields
    said = Reply(
        answer=fields.some_text("answer"),
        note=fields.text("note"),
        arguments=fields.map("arguments"),
        output=fields.value("output"),
        value=fields.value("max") if "max" in fields else fields.value("value"),
        digest=fields.text("digest"),
        at=fields.time("at", "answer_invalid"),
        tool=fields.text("tool"),
    )
    try:
        state = await back.desk.answer(kept.pause.id, asked.who, said)
    except Conflict as late:
        if late.code == "already_answered":
            late.details["answered"] = (await _pause(back, await _kept(back, asked)))["answered"]
        raise
    if asked.request.local and not state.terminal:
        back.desk.carry(state.id)
    return reply(await _pause(back, await _kept(back, asked)))


async def signal(back: Backing, asked: Asked) -> Response:
    """What steps wait for has come: durable before the reply; 200 if it was known already."""
    fields = asked.fields
    event, key, data = fields.some_text("event"), fields.text("key"), fields.value("data")
    name, sent = await back.desk.signal(event, key, data, asked.who, id=fields.text("id"))
    return reply({"id": name, "delivered": sent.delivered}, 202 if sent.new else 200)


async def _kept(back: Backing, asked: Asked) -> KeptPause:
    which = PauseFilter(owner=asked.who.owner, id=PauseId(asked.params["pause"]), status=None)
    kept = await back.desk.inbox(which)
    if not kept:
        raise NotFound("there is no such pause", what_to_do="list what waits for someone: everstep inbox")
    return kept[0]


async def _pause(back: Backing, kept: KeptPause) -> JsonObject:
    history = None if kept.status is PauseStatus.OPEN else await journal(back, kept.task)
    return pause_json(kept.pause, kept.task, kept.opened_at, status=kept.status, history=history)
