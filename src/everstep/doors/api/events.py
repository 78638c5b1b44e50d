"""A task's journal, or that of all tasks, page by page; with `wait` the reply waits for news (long poll)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final, cast

from everstep.domain.errors import RequestError, Validation
from everstep.domain.ids import Seq
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.doors.api.channel import STANDS, of_type
from everstep.doors.api.context import Asked, Backing, find_task
from everstep.doors.api.line import cursor_of, place_in, trouble_with
from everstep.doors.api.request import NO_STORE, Response, flag_in, limit_in, number_in, wanted_types
from everstep.ports.store import Journaled, Placed

PAGE: Final = 500
WAIT_S_MAX: Final = 25


async def page(back: Backing, asked: Asked) -> Response:
    """`{events, next_after, head_seq, live}`, at once if there is news; `until=end`: if that has come, or a pause."""
    state = await find_task(back, asked)
    _check_words(asked)
    after = Seq(number_in(asked.query, "after", 0, most=2**53))
    limit = limit_in(asked.query, PAGE, most=PAGE)
    wait_s = number_in(asked.query, "wait", 0, most=WAIT_S_MAX)
    types = wanted_types(asked.query)
    if after > state.seq:
        raise ahead(state, after)
    if wait_s and "until" in asked.query:
        await _standing(back, state, after, wait_s)
    elif wait_s and after == state.seq:
        await _news(back, state, wait_s)
    events = await _read(back, state, after, limit)
    last = events[-1].seq if events else after
    head = max(state.seq, last)
    shown = b",".join(event.encoded for event in events if of_type(event, types))
    facts = b'],"next_after":%d,"head_seq":%d,"live":%s}' % (last, head, b"true" if last == head else b"false")
    return Response(status=200, headers=NO_STORE, body=b'{"events":[' + shown + facts)


def _check_words(asked: Asked) -> None:
    """What only streams obey is not overlooked when it is wrong."""
    flag_in(asked.query, "ticks", default=False)
    if asked.query.get("until", "end") != "end":
        raise Validation("'until' takes end")


async def page_of_all(back: Backing, asked: Asked) -> Response:
    """The same for all tasks of the caller; without `after` only the cursor to begin with."""
    _check_words(asked)
    limit = limit_in(asked.query, PAGE, most=PAGE)
    wait_s = number_in(asked.query, "wait", 0, most=WAIT_S_MAX)
    types, after = wanted_types(asked.query), asked.query.get("after")
    last = await back.desk.watching.last()
    found: list[Placed] = []
    if after is not None:
        reason = await trouble_with(after, back.desk, last)
        if reason is not None:
            raise resync(f"there is nothing to go on from ({reason})", {"reason": reason, "cursor": cursor_of(last)})
        found = await _line(back, asked.who.owner, place_in(after), limit=limit, wait_s=wait_s)
    cursor = cursor_of(found[-1]) if found else after or cursor_of(last)
    shown = b",".join(one.event.encoded for one in found if of_type(one.event, types))
    live = b"false" if len(found) == limit else b"true"
    facts = b'],"next_after":"%s","head_seq":null,"live":%s}' % (cursor.encode(), live)
    return Response(status=200, headers=NO_STORE, body=b'{"events":[' + shown + facts)


async def _line(back: Backing, owner: str, after: int, *, limit: int, wait_s: int) -> list[Placed]:
    """What came after a place, at once if there is something."""
    found = list(await back.desk.watching.read(after, limit, owner))
    if found or not wait_s:
        return found
    following = cast("AsyncGenerator[list[Placed], None]", back.desk.watching.follow(after, owner))
    try:
        async with asyncio.timeout(wait_s), aclosing(following) as pages:
            return (await anext(pages, []))[:limit]
    except TimeoutError:
        return found


async def _news(back: Backing, state: TaskState, wait_s: int) -> None:
    """Return when there is an event after the head, or the time is up."""
    try:
        async with asyncio.timeout(wait_s), aclosing(_journal(back, state, state.seq, follow=True)) as events:
            await anext(events, None)
    except TimeoutError:
        return


async def _standing(back: Backing, state: TaskState, after: Seq, wait_s: int) -> None:
    """Return when the task has ended or stands still, in a way that the caller has not seen, or the time is up."""
    if after < state.seq and (state.terminal or state.status is TaskStatus.PAUSED):
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s):
            await back.desk.first(state.id, STANDS, state.seq)


async def _read(back: Backing, state: TaskState, after: Seq, limit: int) -> list[Journaled]:
    events: list[Journaled] = []
    async with aclosing(_journal(back, state, after, follow=False)) as journal:
        async for event in journal:
            events.append(event)
            if len(events) == limit:
                break
    return events


def _journal(back: Backing, state: TaskState, after: Seq, *, follow: bool) -> AsyncGenerator[Journaled, None]:
    """A reader that can be told to leave before the end."""
    return cast("AsyncGenerator[Journaled, None]", back.desk.events(state.id, after, follow=follow))


def ahead(state: TaskState, after: Seq) -> RequestError:
    """The refusal of a place the journal does not have; never a silent skip."""
    return resync(
        f"the journal ends at {state.seq}, there is no {after}",
        {"reason": "ahead", "first_seq": 1, "head_seq": state.seq},
    )


def resync(message: str, details: JsonObject) -> RequestError:
    """The refusal to go on from somewhere."""
    return RequestError(
        message, code="resync_required", what_to_do="read the task, then go on from its `seq`", details=details
    )
