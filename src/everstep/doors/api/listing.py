"""Lists of tasks: what may be asked for, and rows with the oldest thing each waits for."""

import time
from collections.abc import Mapping, Sequence
from typing import Final, get_args

from everstep.domain.errors import Validation
from everstep.domain.ids import Instant, TaskId
from everstep.domain.pauses import Pause, PauseType
from everstep.domain.quantities import parse_duration
from everstep.domain.states import HELD, TaskStatus
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.halting import with_halt
from everstep.doors.api.request import Response, flag_in, limit_in, reply
from everstep.ports.store import KeptPause, PauseFilter, Sort, TaskFilter
from everstep.wire.task import task_summary_json
from everstep.wire.times import from_text

PAGE: Final = 50
PAGE_MAX: Final = 500


async def list_all(back: Backing, asked: Asked) -> Response:
    """Tasks of the caller, newest first."""
    page = await back.desk.list(task_filter(asked))
    paused = any(item.row.status is TaskStatus.PAUSED for item in page.items)
    pauses = _oldest(await back.desk.inbox(PauseFilter(owner=asked.who.owner))) if paused else {}
    told = await back.desk.monitoring.explained(page.items)
    items = [
        with_halt(back, task_summary_json(item, pauses, told.get(item.id)), calling=item.row.status in HELD)
        for item in page.items
    ]
    return reply({"items": [*items], "next_cursor": page.next_cursor})


def task_filter(asked: Asked) -> TaskFilter:
    """Which tasks are asked for; raises what is wrong with the question."""
    query = asked.query
    return TaskFilter(
        owner=asked.who.owner,
        statuses=_statuses(query.get("status")),
        plan_name=query.get("plan"),
        tool=query.get("tool"),
        reason=_reason(query.get("reason")),
        label=_label(query.get("label")),
        since=since(query.get("since")),
        until=since(query.get("until"), "until"),
        parent=_parent(query.get("parent")),
        needs_you=flag_in(query, "needs_you", default=False),
        sort=_sort(query.get("sort")),
        text=query.get("q"),
        limit=limit_in(query, PAGE, most=PAGE_MAX),
        cursor=query.get("cursor"),
    )


def _oldest(kept: Sequence[KeptPause]) -> Mapping[TaskId, tuple[Pause, Instant]]:
    """The first of each task; they come oldest first."""
    return {one.task: (one.pause, one.opened_at) for one in reversed(kept)}


def _statuses(text: str | None) -> frozenset[TaskStatus] | None:
    if not text:
        return None
    try:
        return frozenset(TaskStatus(word.strip()) for word in text.split(","))
    except ValueError:
        raise Validation(f"'status' takes {', '.join(TaskStatus)}, with commas between them") from None


def _reason(text: str | None) -> PauseType | None:
    if text is None:
        return None
    try:
        return PauseType(text)
    except ValueError:
        raise Validation(f"'reason' takes one of {', '.join(PauseType)}") from None


def _label(text: str | None) -> tuple[str, str] | None:
    if not text:
        return None
    name, colon, value = text.partition(":")
    if not name or not colon:
        raise Validation("'label' takes NAME:VALUE")
    return name, value


def _parent(text: str | None) -> TaskId | None:
    """A task that others were made of; one that is not there has none."""
    return TaskId(text) if text else None


def _sort(text: str | None) -> Sort:
    sorts: tuple[Sort, ...] = get_args(Sort)
    for sort in sorts:
        if text in (sort, None):
            return sort
    raise Validation(f"'sort' takes one of {', '.join(sorts)}")


def since(text: str | None, name: str = "since") -> Instant | None:
    """A time, or how long ago."""
    if not text:
        return None
    ago = parse_duration(text)
    if ago is not None:
        return Instant(time.time_ns() // 1_000_000 - ago)
    try:
        return from_text(text)
    except ValueError:
        raise Validation(
            f"'{name}' must be a time such as 2026-11-15T18:00:00.000Z, or a duration such as 2h"
        ) from None
