"""Pauses and signals: what waits for someone or something. Which answers there are is `domain/pauses`' business."""

from everstep.domain.commands import Reply
from everstep.domain.errors import Conflict, NotFound
from everstep.domain.ids import PauseId
from everstep.domain.pauses import PauseStatus
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing, journal
from everstep.doors.api.request import Response, reply
from everstep.ports.store import KeptPause, PauseFilter
from everstep.wire.task import pause_json


async def inbox(back: Backing, asked: Asked) -> Response:
    """What waits for someone, oldest first."""
    named = asked.query.get("task")
    task = (await back.desk.get(named, asked.who)).id if named else None
    kept = await back.desk.inbox(PauseFilter(owner=asked.who.owner, task=task))
    kind = asked.query.get("type")
    shown = [one for one in kept if kind is None or one.pause.type == kind]
    items = [pause_json(one.pause, one.task, one.opened_at) for one in shown]
    return reply({"items": [*items], "next_cursor": None})


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
