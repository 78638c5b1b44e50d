"""Words about a task that may change while it runs: its title, labels, place in the queue, patience. Pure."""

from collections.abc import Iterable

from everstep.domain import events as e
from everstep.domain.errors import Conflict, Validation
from everstep.domain.ids import Millis
from everstep.domain.limits import PAUSE_TIMEOUT_MAX_MS
from everstep.domain.queue import PRIORITY_MAX
from everstep.domain.record import record
from everstep.domain.states import TERMINAL
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject


@record
class Words:
    """What somebody wants changed; None: as before."""

    title: str | None = None
    labels: dict[str, str] | None = None
    priority: int | None = None
    pause_timeout_ms: Millis | None = None
    """For pauses that are opened from now on."""


def update_task(state: TaskState, wanted: Words) -> tuple[e.Draft, ...]:
    """Change title, labels or priority; what already holds is no change."""
    if wanted.priority is not None and not 0 <= wanted.priority <= PRIORITY_MAX:
        raise Validation(f"priority {wanted.priority} is not within 0 and {PRIORITY_MAX}")
    if wanted.title is not None and not wanted.title.strip():
        raise Validation("a title must not be empty")
    if wanted.pause_timeout_ms is not None and not 0 < wanted.pause_timeout_ms <= PAUSE_TIMEOUT_MAX_MS:
        raise Validation("'pause_timeout' must be more than 0 and at most 365 days")
    changes: JsonObject = {}
    if wanted.title not in (None, state.title):
        changes["title"] = wanted.title
    if wanted.labels not in (None, state.labels):
        changes["labels"] = {**(wanted.labels or {})}
    if wanted.priority not in (None, state.priority):
        changes["priority"] = wanted.priority
    if wanted.pause_timeout_ms not in (None, state.pause_timeout_ms):
        changes["pause_timeout"] = (wanted.pause_timeout_ms or 0) / 1000
    if not changes.keys().isdisjoint(("priority", "pause_timeout")) and state.status in TERMINAL:
        raise Conflict(f"the task is {state.status}: it waits for nothing any more", code="task_terminal")
    return (e.Draft(body=e.TaskUpdated(changes=changes)),) if changes else ()


def words_in(changes: JsonObject) -> Words:
    """The words that a `task.updated` changes."""
    title, labels, priority = changes.get("title"), changes.get("labels"), changes.get("priority")
    timeout = changes.get("pause_timeout")
    return Words(
        title=title if isinstance(title, str) else None,
        labels={name: str(text) for name, text in labels.items()} if isinstance(labels, dict) else None,
        priority=priority if isinstance(priority, int) else None,
        pause_timeout_ms=Millis(round(timeout * 1000)) if isinstance(timeout, int | float) else None,
    )


def words_changed(drafts: Iterable[e.Draft]) -> Words | None:
    """The words, as far as a write changes them."""
    return next((words_in(one.body.changes) for one in drafts if isinstance(one.body, e.TaskUpdated)), None)
