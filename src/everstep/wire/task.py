"""Tasks and pauses as their objects (interfaces, 5.2 and 5.5), the same at every door. Steps: `wire/step`.

Every object carries every field; what this version cannot know is null. Nothing here reads a store: what the state
does not keep comes in as `History`.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Final, Protocol

from everstep.domain.attempts import History
from everstep.domain.events import Actor, PauseAnswered
from everstep.domain.explain import Explanation, explain, explain_row, legal_commands
from everstep.domain.ids import Digest, Epoch, Instant, Seq, StepPath, TaskId, WorkerId
from everstep.domain.pauses import Pause, PauseStatus
from everstep.domain.task import TaskRow, TaskState
from everstep.domain.values import JsonObject, JsonValue, Sealed
from everstep.wire.estimate import Outlook, progress_json, row_progress_json, step_estimate, task_estimate
from everstep.wire.failure import write_issues
from everstep.wire.pause import write_pause
from everstep.wire.remedies import error_of_task
from everstep.wire.step import payload_json, plain, plain_object, step_json, waiting_json
from everstep.wire.times import maybe_text, to_text

STEPS_MAX: Final = 500
_NOT_IN_LISTS: Final[JsonObject] = dict.fromkeys(
    ["labels", "issues", "error", "estimate", "pauses", "actions", "limits", "heartbeat_at", "queue", "parent"]
)
"""What a list leaves out besides inputs, outputs and steps; `error_code` stands in for the error."""


class Summary(Protocol):
    """One row of a list, whatever store it comes from."""

    @property
    def id(self) -> TaskId: ...
    @property
    def owner(self) -> str: ...
    @property
    def key(self) -> str | None: ...
    @property
    def title(self) -> str: ...
    @property
    def plan_name(self) -> str: ...
    @property
    def plan_digest(self) -> Digest: ...
    @property
    def priority(self) -> int: ...
    @property
    def created_at(self) -> Instant: ...
    @property
    def updated_at(self) -> Instant: ...
    @property
    def epoch(self) -> Epoch: ...
    @property
    def worker(self) -> WorkerId | None: ...
    @property
    def seq(self) -> Seq: ...
    @property
    def steps(self) -> int: ...
    @property
    def row(self) -> TaskRow: ...


def task_json(state: TaskState, history: History | None = None, outlook: Outlook | None = None) -> JsonObject:
    """A whole task. What only the journal tells, or what is to be expected, is null or rough where it is not given."""
    known = history or History()
    pauses = [pause_json(pause, state.id, state.opened[pause.id]) for pause in state.pauses.values()]
    return {
        "id": state.id,
        "key": state.key,
        "title": state.title,
        "owner": state.owner,
        "status": state.status.value,
        "outcome": state.outcome,
        "plan": {"name": state.plan.name, "digest": state.plan_digest, "revision": state.revision},
        "generation": state.generation,
        "epoch": state.epoch,
        "recoveries": state.recoveries,
        "seq": state.seq,
        "priority": state.priority,
        "labels": {**state.labels},
        "inputs": _value(state.inputs),
        "outputs": _value(state.outputs),
        "issues": plain(write_issues(state.issues)),
        "error": error_of_task(state),
        "progress": progress_json(state, outlook),
        "estimate": task_estimate(state, outlook),
        "explain": explain_json(explain(state)),
        "pause": pauses[0] if pauses else None,
        "pauses": [pause["id"] for pause in pauses],
        "actions": list(legal_commands(state)),
        "limits": {one.limit: {"used": one.used, "max": one.max} for one in state.budget.levels(state.updated_at)},
        "worker": state.worker,
        "heartbeat_at": None,
        "queue": None,
        "parent": None if state.parent is None else plain(state.parent),
        "created_by": actor_json(state.created_by),
        "created_at": to_text(state.created_at),
        "started_at": maybe_text(state.started_at),
        "ended_at": maybe_text(state.ended_at),
        "updated_at": to_text(state.updated_at),
        "steps": [
            step_json(state, path, known, payloads=False, estimate=step_estimate(path, outlook))
            for path in shown_steps(state)
        ],
    }


def shown_steps(state: TaskState) -> tuple[StepPath, ...]:
    """Which steps are shown with their task; the others, and all items, are paged."""
    return tuple(map(StepPath, islice(state.specs, STEPS_MAX)))


def task_summary_json(
    summary: Summary,
    pauses: Mapping[TaskId, tuple[Pause, Instant]] | None = None,
    told: Explanation | None = None,
) -> JsonObject:
    """A row of a list: a Task without inputs, outputs and steps.

    `pauses`: the oldest open one of each task; `told`: why it is where it is, if more is known than the row.
    """
    row = summary.row
    pause = (pauses or {}).get(summary.id)
    told = told or explain_row(row, summary.updated_at, summary.steps, pause)
    return {
        **_NOT_IN_LISTS,
        "id": summary.id,
        "key": summary.key,
        "title": summary.title,
        "owner": summary.owner,
        "status": row.status.value,
        "outcome": row.outcome,
        "plan": {"name": summary.plan_name, "digest": summary.plan_digest, "revision": None},
        "generation": row.generation,
        "epoch": summary.epoch,
        "recoveries": row.recoveries,
        "seq": summary.seq,
        "priority": summary.priority,
        "progress": row_progress_json(row, summary.steps),
        "explain": explain_json(told),
        "error_code": row.error_code,
        "pause": None if pause is None else pause_json(pause[0], summary.id, pause[1]),
        "worker": summary.worker,
        "created_by": None,
        "created_at": to_text(summary.created_at),
        "started_at": maybe_text(row.started_at),
        "ended_at": maybe_text(row.ended_at),
        "updated_at": to_text(summary.updated_at),
    }


def pause_json(
    pause: Pause,
    task: TaskId,
    opened_at: Instant,
    *,
    status: PauseStatus = PauseStatus.OPEN,
    history: History | None = None,
) -> JsonObject:
    """A question, open or not; `history` tells who closed it, and what became of a grant."""
    answered = history.answers.get(pause.id) if history is not None else None
    written = plain_object(write_pause(pause, task, opened_at, status))
    if status is not PauseStatus.OPEN:
        written["answers"] = []
    if answered is not None and isinstance(answered.body, PauseAnswered):
        written["answered"] = {
            "answer": answered.body.answer,
            "actor": actor_json(answered.actor),
            "at": to_text(answered.at),
            "note": answered.body.note,
            "diff": [*answered.body.diff] or None,
        }
    if history is not None:
        written["grant"] = history.grants.get(pause.id)
    return written


def explain_json(said: Explanation) -> JsonObject:
    """What, since when, waiting for what, what next."""
    return {
        "doing": said.doing,
        "since": to_text(said.since),
        "waiting_on": waiting_json(said.waiting_on),
        "next": said.next,
        "text": said.text,
    }


def actor_json(actor: Actor) -> JsonObject:
    """Who, and through which door."""
    return {"kind": actor.kind.value, "id": actor.id, "via": actor.via}


def _value(sealed: Sealed | None) -> JsonValue:
    """A value as it is, or where it is kept."""
    return sealed.value if sealed is not None and sealed.present else payload_json(sealed)
