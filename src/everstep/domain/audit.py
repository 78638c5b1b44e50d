"""Who changed what, when, why, from which state: the journal, read for people who must account for it. Pure."""

from collections.abc import Iterable

from everstep.domain import events as e
from everstep.domain.fold import fold
from everstep.domain.ids import Instant, Seq, StepPath
from everstep.domain.record import record
from everstep.domain.states import StepStatus
from everstep.domain.task import TaskState


@record
class Change:
    """One move of a task or of one of its steps."""

    seq: Seq
    at: Instant
    actor: e.Actor
    type: str
    step: StepPath | None
    before: str | None
    after: str
    why: str | None


def audit(journal: Iterable[e.Recorded], owner: str) -> tuple[Change, ...]:
    """Every event that moved a status, and every answer about a step, with what stood before."""
    state: TaskState | None = None
    changes: list[Change] = []
    for event in journal:
        before = _status(state, event.step)
        state = fold(state, owner, event)
        after = _status(state, event.step)
        if after is not None and (after != before or _is_act(event)):
            changes.append(_change(event, before, after))
    return tuple(changes)


def _is_act(event: e.Recorded) -> bool:
    """Answers about a step, and calls that somebody allowed: worth an account whatever they move."""
    match event.body:
        case e.PauseAnswered() | e.PauseExpired():
            return event.step is not None
        case e.AttemptStarted(approval=approval):
            return approval is not None
        case _:
            return False


def _status(state: TaskState | None, step: StepPath | None) -> str | None:
    if state is None:
        return None
    if step is None:
        return state.status.value
    found = state.steps.get(step)
    return StepStatus.PENDING.value if found is None else found.status.value


def _change(event: e.Recorded, before: str | None, after: str) -> Change:
    body = event.body
    return Change(
        seq=event.seq,
        at=event.at,
        actor=event.actor,
        type=body.type if isinstance(body, e.Unknown) else body.TYPE,
        step=event.step,
        before=before,
        after=after,
        why=_why(body),
    )


def _why(body: e.Body) -> str | None:
    """The reason an event gives, if it gives one."""
    match body:
        case e.StepSkipped(reason=reason, upstream=upstream):
            return f"{reason} {upstream}" if upstream else str(reason)
        case e.PauseAnswered(answer=answer, note=note, diff=diff):
            edited = ", ".join(str(change["argument"]) for change in diff)
            return "; ".join(filter(None, (answer, f"changed {edited}" if edited else "", note or "")))
        case e.PauseExpired(action=action):
            return f"nobody answered in time: {action}"
        case e.AttemptStarted(approval=approval) if approval is not None:
            return f"approved by {approval}"
        case e.PauseOpened(pause=pause):
            return f"{pause.type}: {pause.why}"
        case e.TaskFailed(error=error) | e.StepFailed(error=error):
            return f"{error.failure.code}: {error.failure.message}"
        case e.TaskRecovered(reason=reason) | e.TaskCancelled(reason=reason):
            return str(reason)
        case e.TaskCancelling(note=note) | e.TaskResumed(note=note):
            return note
        case _:
            return None
