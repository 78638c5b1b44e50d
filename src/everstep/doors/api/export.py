"""`/v1/export`: tasks or their events, all that fit, streamed: a page of tasks is in memory at a time."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Final

from everstep.domain.errors import Validation
from everstep.domain.failure import Category
from everstep.domain.ids import Seq
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.listing import task_filter
from everstep.doors.api.request import NO_STORE, Response
from everstep.ports.store import TaskFilter
from everstep.wire.export import EVENT_COLUMNS, MEDIA_TYPES, TASK_COLUMNS, Writer, event_cells, task_cells
from everstep.wire.task import task_json

PAGE: Final = 100
OF_EVENTS: Final = ("type", "category", "code")


async def read(back: Backing, asked: Asked) -> Response:
    """What was asked for, in the form that was asked for; whatever is wrong with it is said before the first byte."""
    query = asked.query
    what, form = query.get("what", "tasks"), query.get("format", "csv")
    if what not in ("tasks", "events"):
        raise Validation("'what' takes tasks or events")
    if form not in MEDIA_TYPES:
        raise Validation(f"'format' takes one of {', '.join(MEDIA_TYPES)}")
    if what == "tasks" and (wrong := [name for name in OF_EVENTS if name in query]):
        raise Validation(f"'{wrong[0]}' goes with what=events")
    if (category := query.get("category")) is not None and category not in [*Category]:
        raise Validation(f"'category' takes one of {', '.join(Category)}")
    which = replace(task_filter(asked), limit=PAGE)
    parts = _tasks(back, which, form) if what == "tasks" else _events(back, which, query, form)
    headers = {
        **NO_STORE,
        "content-type": MEDIA_TYPES[form],
        "content-disposition": f'attachment; filename="everstep-{what}.{form}"',
    }
    return Response(status=200, headers=headers, body=b"", parts=parts)


async def _tasks(back: Backing, which: TaskFilter, form: str) -> AsyncIterator[bytes]:
    writer = Writer(form, TASK_COLUMNS)
    yield writer.begin()
    async for page in _pages(back, which):
        yield b"".join(writer.item(task_json(state), task_cells(state)) for state in page)
    yield writer.end()


async def _events(back: Backing, which: TaskFilter, only: Mapping[str, str], form: str) -> AsyncIterator[bytes]:
    writer = Writer(form, EVENT_COLUMNS)
    yield writer.begin()
    async for page in _pages(back, which):
        for state in page:
            lines: list[bytes] = []
            async for one in back.desk.events(state.id, Seq(0), follow=False):
                event: JsonObject = json.loads(one.encoded)
                if _fits(event, only):
                    lines.append(writer.item(event, event_cells(event)))
            yield b"".join(lines)
    yield writer.end()


async def _pages(back: Backing, which: TaskFilter) -> AsyncIterator[list[TaskState]]:
    """Newest first; a task that is deleted meanwhile is left out."""
    cursor: str | None = None
    while True:
        page = await back.desk.list(replace(which, cursor=cursor))
        yield await back.desk.monitoring.states([item.id for item in page.items])
        cursor = page.next_cursor
        if cursor is None:
            return


def _fits(event: JsonObject, only: Mapping[str, str]) -> bool:
    kinds = only.get("type", "").split(",") if only.get("type") else []
    kind = str(event["type"])
    if kinds and not any(kind == one or (one.endswith(".") and kind.startswith(one)) for one in kinds):
        return False
    data = event.get("data")
    error = data.get("error") if isinstance(data, dict) else None
    failed = error if isinstance(error, dict) else {}
    return all(name not in only or failed.get(name) == only[name] for name in ("category", "code"))
