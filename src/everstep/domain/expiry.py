"""When a pause runs out: the warning a tenth of its time before, then what was said would follow. Pure.

Times are absolute and stand in the journal. If nobody was there to warn in time, what follows waits that tenth after
the warning.
"""

from dataclasses import replace

from everstep.domain import events as e
from everstep.domain.approval import Names, rejected
from everstep.domain.commands import cancel_task, lift
from everstep.domain.continuation import is_handoff
from everstep.domain.ids import Instant, Millis, StepPath
from everstep.domain.pauses import Pause, PauseType
from everstep.domain.record import record
from everstep.domain.states import StepStatus, TaskStatus
from everstep.domain.task import TaskState

WARNING_SHARE = 10
HANDOFF_NOTICE_MS = 3_600_000
WAIT = "wait"
"""Nothing follows; the warning is all there is."""


@record
class Patience:
    """How long a pause may stay open, and what then."""

    length_ms: Millis
    then: str
    handoff_ms: Millis = Millis(86_400_000)
    """With a client that has taken over."""

    def ends_at(self, opened_at: Instant) -> Instant:
        """When it runs out."""
        return Instant(opened_at + self.length_ms)

    def warns_at(self, opened_at: Instant) -> Instant:
        """When somebody has to be warned."""
        ends_at = self.ends_at(opened_at)
        return Instant(ends_at - _notice_ms(ends_at, opened_at))


def patience_with(pause: Pause, state: TaskState, usual: Patience) -> Patience | None:
    """What the task says, else what is usual with pauses that people ask for.

    A question waits for ever unless its task says otherwise, and never goes on by itself: that would be an answer.
    """
    if is_handoff(pause):
        return Patience(length_ms=usual.handoff_ms, then="cancel")
    if pause.type is PauseType.USER_REQUESTED:
        return Patience(length_ms=state.pause_timeout_ms or usual.length_ms, then=usual.then)
    if state.pause_timeout_ms is None or usual.then != "cancel":
        return None
    return Patience(length_ms=state.pause_timeout_ms, then=usual.then)


def timed(draft: e.Draft, patience: Patience | None, at: Instant) -> e.Draft:
    """The same draft; a pause that it opens runs out."""
    body = draft.body
    if patience is None or not isinstance(body, e.PauseOpened) or body.pause.expires_at is not None:
        return draft
    pause = replace(body.pause, expires_at=patience.ends_at(at), on_timeout=patience.then)
    return e.Draft(body=e.PauseOpened(pause=pause), step=draft.step)


def first_due(pause: Pause, opened_at: Instant) -> Instant | None:
    """When somebody has to look at it for the first time: to warn."""
    if pause.expires_at is None:
        return None
    return Instant(pause.expires_at - _notice_of(pause, pause.expires_at, opened_at))


def due_after_warning(warning: e.PauseExpiring) -> Instant | None:
    """When somebody has to look again."""
    return None if warning.on_timeout == WAIT else warning.expires_at


def run_out(state: TaskState, pause: Pause, at: Instant, new: Names) -> tuple[e.Draft, ...]:
    """What has to be said about this pause now; nothing if its time has not come."""
    if pause.expires_at is None or pause.on_timeout is None:
        return ()
    if pause.id not in state.warned:
        notice_ms = _notice_of(pause, pause.expires_at, state.opened[pause.id])
        if at < pause.expires_at - notice_ms:
            return ()
        acts_at = Instant(max(pause.expires_at, at + notice_ms))
        warning = e.PauseExpiring(pause=pause.id, expires_at=acts_at, on_timeout=pause.on_timeout)
        return (e.Draft(body=warning, step=pause.step),)
    if at < pause.expires_at or pause.on_timeout == WAIT:
        return ()
    return _acted(state, pause, new)


def _acted(state: TaskState, pause: Pause, new: Names) -> tuple[e.Draft, ...]:
    action = pause.on_timeout
    assert action is not None
    all_done = all(state.steps[StepPath(spec.id)].status is StepStatus.COMPLETED for spec in state.plan.steps)
    if is_handoff(pause) and all_done:  # nobody gave a result: then it ends as the engine ends it
        action = "resume"
    expired = e.Draft(body=e.PauseExpired(pause=pause.id, action=action), step=pause.step)
    if action == "cancel":
        reason = "handoff_expired" if is_handoff(pause) else "pause_timeout"
        rest = cancel_task(state, "paused too long", reason=reason)
        return (expired, *[draft for draft in rest if not _withdraws(draft, pause)])
    if pause.of_the_task:
        return lift(state, pause, expired, None)
    drafts = (expired, *rejected(state, pause, "nobody answered in time", new)) if action == "reject" else (expired,)
    asks_on = any(isinstance(draft.body, e.PauseOpened) for draft in drafts)
    if state.status is TaskStatus.PAUSED and not state.held_back and not asks_on:
        drafts += (e.Draft(body=e.TaskResumed(pause=pause.id, to=TaskStatus.QUEUED)),)
    return drafts


def _withdraws(draft: e.Draft, pause: Pause) -> bool:
    return isinstance(draft.body, e.PauseWithdrawn) and draft.body.pause == pause.id


def _notice_of(pause: Pause, expires_at: Instant, opened_at: Instant) -> int:
    notice_ms = _notice_ms(expires_at, opened_at)
    return min(notice_ms, HANDOFF_NOTICE_MS) if is_handoff(pause) else notice_ms


def _notice_ms(expires_at: Instant, opened_at: Instant) -> int:
    return max(1, (expires_at - opened_at) // WARNING_SHARE)
