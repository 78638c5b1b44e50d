"""What went wrong over all tasks: recorded errors, and breakers with the steps they hold back."""

from typing import Final

from everstep.domain.errors import Validation
from everstep.domain.failure import Category
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.cursor import cursor_of, place_in
from everstep.doors.api.listing import since
from everstep.doors.api.request import Response, limit_in, reply
from everstep.ports.store import ErrorFilter, KeptError
from everstep.wire.breaker import breaker_json
from everstep.wire.failure import error_json
from everstep.wire.times import to_text

PAGE: Final = 50
PAGE_MAX: Final = 500


async def errors(back: Backing, asked: Asked) -> Response:
    """Every error of the caller's tasks, newest first."""
    query = asked.query
    named = query.get("task")
    task = (await back.desk.get(named, asked.who)).id if named else None
    limit = limit_in(query, PAGE, most=PAGE_MAX)
    place = place_in("errors", query.get("cursor"))
    which = ErrorFilter(
        owner=asked.who.owner,
        category=_category(query.get("category")),
        code=query.get("code"),
        tool=query.get("tool"),
        task=task,
        since=since(query.get("since")),
        limit=limit + 1,
        cursor=None if place is None else int(place),
    )
    found = await back.desk.troubles.errors(which)
    shown = found[:limit]
    more = cursor_of("errors", str(shown[-1].number)) if len(found) > limit else None
    return reply({"items": [_error(one) for one in shown], "next_cursor": more})


async def breakers(back: Backing, asked: Asked) -> Response:
    """Breakers that are in trouble; the others need nobody."""
    shown = await back.desk.troubles.breakers(asked.who)
    return reply({"items": [breaker_json(one.breaker, one.held) for one in shown], "next_cursor": None})


async def reset(back: Backing, asked: Asked) -> Response:
    """Let calls pass again."""
    now = await back.desk.troubles.reset(asked.params["breaker"], asked.who)
    return reply(breaker_json(now.breaker, now.held))


def _error(one: KeptError) -> JsonObject:
    error = error_json(one.error, one.step)
    return {**error, "task": one.task, "tool": one.tool, "at": to_text(one.at)}


def _category(text: str | None) -> Category | None:
    if text is None:
        return None
    try:
        return Category(text)
    except ValueError:
        raise Validation(f"'category' takes one of {', '.join(Category)}") from None
