"""What is asked of a reader, and how its rows become answers."""

import json
import zlib
from collections.abc import Sequence

from everstep.adapters.stores.sql import rows
from everstep.adapters.stores.sql.hold import Reader
from everstep.domain.errors import StoreRefused, Validation
from everstep.domain.fold import fold
from everstep.domain.ids import Instant, Seq, TaskId, WorkerId
from everstep.domain.pauses import PauseStatus
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.ports.store import Dead, Due, Journaled, KeptPause, Page, PauseFilter, Sort, TaskFilter
from everstep.wire.event import Fetch, decode

_NEWEST = (2**62, 2**62)
_OLDEST = (-(2**62), -(2**62))
LIVE = frozenset(TaskStatus) - TERMINAL


def load_tasks(reader: Reader, ids: Sequence[TaskId], fetch: Fetch) -> list[TaskState | None]:
    """States as the fold of their journals."""
    states: dict[str, TaskState] = {}
    for task, owner, body in reader.rows("load_tasks", {"ids": json.dumps(list(dict.fromkeys(ids)))}):
        try:
            states[task] = fold(states.get(task), owner, decode(body, fetch))
        except Exception as error:
            raise StoreRefused(f"the journal of {task} cannot be read: {error}") from error
    return [states.get(task) for task in ids]


def read_events(reader: Reader, task: TaskId, after: Seq, limit: int) -> list[Journaled]:
    """A part of one journal."""
    found = reader.rows("read_events", {"task": task, "after": after, "limit": limit})
    return [
        Journaled(task=task, seq=Seq(seq), type=kind, step=step, encoded=body.encode())
        for seq, kind, step, body in found
    ]


def list_tasks(reader: Reader, which: TaskFilter) -> Page:
    """A page of summaries, newest first."""
    usual = _OLDEST if which.sort == "created_at" else _NEWEST
    at, num = usual if which.cursor is None else _position(which.cursor, which.sort)
    statuses = None if which.statuses is None else json.dumps(sorted(which.statuses))
    name = _statement(which)
    values = {
        "at": at,
        "num": num,
        "owner": which.owner,
        "statuses": statuses,
        "plan_name": which.plan_name,
        "plan_digest": which.plan_digest,
        "inputs_digest": which.inputs_digest,
        "since": which.since,
        "until": which.until,
        "parent": which.parent,
        "needs_you": which.needs_you,
        "paused": which.needs_you or which.reason is not None,
        "live": which.statuses is not None and not which.needs_you and which.reason is None and which.parent is None,
        "ended": next(iter(which.statuses)) if which.statuses else None,
        "sort": which.sort,
        "tool": which.tool,
        "label": None if which.label is None else which.label[0],
        "labelled": None if which.label is None else which.label[1],
        "reason": which.reason,
        "text": None if which.text is None else which.text.lower(),
        "limit": which.limit + 1,
    }
    found = reader.rows(name, values)
    shown = found[: which.limit]
    more = len(found) > which.limit
    last = shown[-1] if shown else None
    when = 8 if which.sort == "-updated_at" else 7
    cursor = _cursor(last[when], last[22], which.sort) if more and last is not None else None
    return Page(items=tuple(rows.summary(row) for row in shown), next_cursor=cursor)


def _statement(which: TaskFilter) -> str:
    """By what few can be meant, if anything says so; else by the order that is asked for."""
    statuses = which.statuses or frozenset()
    if which.owner is None:
        assert which.sort == "-created_at", "those who keep the store read newest first"
        return "list_all_tasks"
    if which.parent is not None or which.needs_you or which.reason is not None or (statuses and statuses <= LIVE):
        return "list_some_tasks"
    if which.sort != "-created_at":
        return "list_tasks_oldest" if which.sort == "created_at" else "list_tasks_changed"
    if len(statuses) == 1:
        return "list_tasks_ended"
    return "list_tasks" if which.plan_name is None else "list_tasks_of_plan"


def _cursor(at: int, num: int, sort: Sort) -> str:
    """Opaque, of one order only, and recognisably altered if somebody alters it."""
    text = f"{at}-{num}"
    return f"{text}-{_mark(text, sort)}"


def _position(cursor: str, sort: Sort) -> tuple[int, int]:
    text, _, mark = cursor.rpartition("-")
    if _mark(text, sort) != mark:
        raise Validation("the cursor was altered", what_to_do="begin without a cursor")
    at, _, num = text.partition("-")
    return int(at), int(num)


def _mark(text: str, sort: Sort) -> str:
    return f"{zlib.crc32(f'{text} {sort}'.encode()):08x}"


def find_task(reader: Reader, owner: str, name: str) -> list[TaskId]:
    """By id or key, else by the beginning of an id."""
    values = {"owner": owner, "name": name}
    found = reader.rows("find_task_by_name", values) or reader.rows("find_task_by_prefix", values)
    return [TaskId(task) for (task,) in found]


def list_pauses(reader: Reader, which: PauseFilter) -> list[KeptPause]:
    """Oldest first, or newest; timed ones by when they are due."""
    values: dict[str, str | int | None] = {"owner": which.owner, "task": which.task}
    if which.id is not None:
        found = reader.rows("find_pause", {**values, "id": which.id, "status": which.status})
    elif which.timed:
        found = reader.rows("list_timed_pauses", {**values, "limit": which.limit})
    elif which.newest:
        found = reader.rows("list_newest_pauses", {**values, "status": which.status, "limit": which.limit})
    elif which.status is PauseStatus.OPEN:
        found = reader.rows("list_open_pauses", {**values, "limit": which.limit})
    else:
        found = reader.rows("list_pauses", {**values, "status": which.status, "limit": which.limit})
    return [rows.kept_pause(row) for row in found]


def find_dead(reader: Reader, me: WorkerId, limit: int) -> list[Dead]:
    """Tasks of incarnations that are fenced, released or unknown."""
    return [rows.dead(row) for row in reader.rows("find_dead", {"me": me, "limit": limit})]


def due(reader: Reader, worker: WorkerId, at: Instant, limit: int) -> Due:
    """This worker's tasks whose time has come."""
    found = reader.rows("due_tasks", {"worker": worker, "at": at, "limit": limit})
    ((next_at,),) = reader.rows("next_due", {"worker": worker, "at": at})
    return Due(tasks=tuple(TaskId(task) for task, _ in found), next_at=next_at)


def counts(reader: Reader) -> tuple[dict[str, int], int, int]:
    """Tasks by status, events, and the size of the file in bytes."""
    tasks: dict[str, int] = {status.value: 0 for status in TaskStatus}
    tasks.update({rows.status_of(status).value: count for status, count in reader.rows("count_tasks")})
    ((events,),) = reader.rows("last_event")
    ((size_bytes,),) = reader.rows("file_size")
    return tasks, events, size_bytes


def meta(reader: Reader, key: str) -> str | None:
    """A word the store keeps about itself."""
    found = reader.rows("get_meta", (key,))
    return found[0][0] if found else None


def facts(**named: str | int | None) -> JsonObject:
    """Details for health and doctor; what is unknown is left out."""
    return {name: value for name, value in named.items() if value is not None}
