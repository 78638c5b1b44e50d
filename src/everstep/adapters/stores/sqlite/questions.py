"""What is asked of a reader, and how its rows become answers."""

import json
import zlib
from collections.abc import Sequence

from everstep.adapters.stores.sqlite import rows
from everstep.adapters.stores.sqlite.readers import Reader
from everstep.domain.errors import StoreRefused, Validation
from everstep.domain.fold import fold
from everstep.domain.ids import Instant, Seq, TaskId, WorkerId
from everstep.domain.moves import BrokenJournal
from everstep.domain.pauses import PauseStatus
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.ports.store import Dead, Due, Journaled, KeptPause, Page, PauseFilter, TaskFilter
from everstep.wire.event import Fetch, Unreadable, decode

_NEWEST = (2**62, 2**62)


def load_tasks(reader: Reader, ids: Sequence[TaskId], fetch: Fetch) -> list[TaskState | None]:
    """States as the fold of their journals."""
    states: dict[str, TaskState] = {}
    for task, owner, body in reader.rows("load_tasks", {"ids": json.dumps(list(dict.fromkeys(ids)))}):
        try:
            states[task] = fold(states.get(task), owner, decode(body, fetch))
        except (Unreadable, BrokenJournal) as error:
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
    created_at, num = _NEWEST if which.cursor is None else _position(which.cursor)
    statuses = None if which.statuses is None else json.dumps(sorted(which.statuses))
    values = {
        "created_at": created_at,
        "num": num,
        "owner": which.owner,
        "statuses": statuses,
        "plan_name": which.plan_name,
        "plan_digest": which.plan_digest,
        "inputs_digest": which.inputs_digest,
        "since": which.since,
        "tool": which.tool,
        "label": None if which.label is None else which.label[0],
        "labelled": None if which.label is None else which.label[1],
        "reason": which.reason,
        "text": None if which.text is None else which.text.lower(),
        "limit": which.limit + 1,
    }
    found = reader.rows("list_tasks", values)
    shown = found[: which.limit]
    more = len(found) > which.limit
    last = shown[-1] if shown else None
    cursor = _cursor(last[7], last[22]) if more and last is not None else None
    return Page(items=tuple(rows.summary(row) for row in shown), next_cursor=cursor)


def _cursor(created_at: int, num: int) -> str:
    """Opaque, and recognisably altered if somebody alters it."""
    text = f"{created_at}-{num}"
    return f"{text}-{zlib.crc32(text.encode()):08x}"


def _position(cursor: str) -> tuple[int, int]:
    text, _, mark = cursor.rpartition("-")
    if f"{zlib.crc32(text.encode()):08x}" != mark:
        raise Validation("the cursor was altered", what_to_do="begin without a cursor")
    created_at, _, num = text.partition("-")
    return int(created_at), int(num)


def find_task(reader: Reader, owner: str, name: str) -> list[TaskId]:
    """By id or key, else by the beginning of an id."""
    values = {"owner": owner, "name": name}
    found = reader.rows("find_task_by_name", values) or reader.rows("find_task_by_prefix", values)
    return [TaskId(task) for (task,) in found]


def list_pauses(reader: Reader, which: PauseFilter) -> list[KeptPause]:
    """Oldest first, timed ones by when they are due."""
    values: dict[str, str | int | None] = {"owner": which.owner, "task": which.task}
    if which.id is not None:
        found = reader.rows("find_pause", {**values, "id": which.id, "status": which.status})
    elif which.timed:
        found = reader.rows("list_timed_pauses", {**values, "limit": which.limit})
    elif which.status is PauseStatus.OPEN:
        found = reader.rows("list_open_pauses", {**values, "limit": which.limit})
    else:
        found = reader.rows("list_pauses", {**values, "status": which.status, "limit": which.limit})
    return [rows.kept_pause(row) for row in found]


def workers_silent(reader: Reader, me: WorkerId, before: Instant) -> bool:
    """Whether somebody has to be fenced."""
    return bool(reader.rows("are_workers_silent", {"me": me, "before": before}))


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
