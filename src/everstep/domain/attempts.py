"""History: what a journal tells beyond the state. Every attempt, what a step said of its result, who answered what.

A state keeps only the attempt that is open; whoever wants the others reads the journal once more, through here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from everstep.domain import events as e
from everstep.domain.detour import Degraded
from everstep.domain.failure import EffectState
from everstep.domain.handles import Artifact
from everstep.domain.ids import Epoch, Instant, PauseId, StepPath, WorkerId
from everstep.domain.pauses import Pause
from everstep.domain.plan import Effect
from everstep.domain.states import AttemptStatus
from everstep.domain.usage import Usage
from everstep.domain.values import Sealed


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One try of a step."""

    step: StepPath
    number: int
    generation: int
    epoch: Epoch
    worker: WorkerId
    tool: str
    tool_version: str
    effect: Effect
    idempotency_key: str
    input: Sealed
    started_at: Instant
    approval: PauseId | None = None
    degraded: Degraded | None = None
    status: AttemptStatus = AttemptStatus.STARTED
    error: e.ErrorRecord | None = None
    effect_state: EffectState | None = None
    wall_s: float | None = None
    usage: Usage | None = None
    ended_at: Instant | None = None


@dataclass(slots=True, kw_only=True)
class History:
    """What one journal tells, up to its last event that was read."""

    attempts: dict[StepPath, list[Attempt]] = field(default_factory=dict)
    summaries: dict[StepPath, str | None] = field(default_factory=dict)
    answers: dict[PauseId, e.Recorded] = field(default_factory=dict)
    """The event that closed a pause: an answer, or its expiry."""
    grants: dict[PauseId, str] = field(default_factory=dict)
    """What became of each approval that was given: `granted`, `consumed`, `expired` or `void`."""
    asked: dict[StepPath, Pause] = field(default_factory=dict)
    """The latest question for approval of each step."""
    cached: dict[StepPath, float | None] = field(default_factory=dict)
    """How old the result was that a step got, if it had been kept."""
    artifacts: list[tuple[StepPath, Artifact]] = field(default_factory=list)
    """What calls left beside their output."""

    def last(self, step: StepPath) -> Attempt | None:
        """The newest attempt of a step."""
        of_step = self.attempts.get(step)
        return of_step[-1] if of_step else None


def history_of(events: Iterable[e.Recorded]) -> History:
    """Fold a journal, or its beginning."""
    history = History()
    for event in events:
        note = _NOTES.get(type(event.body))
        if note is not None:
            note(history, event, event.body)
    return history


def _started(history: History, event: e.Recorded, body: e.AttemptStarted) -> None:
    assert event.step is not None
    attempt = Attempt(
        step=event.step,
        number=body.attempt,
        generation=event.generation,
        epoch=body.epoch,
        worker=body.worker,
        tool=body.tool,
        tool_version=body.tool_version,
        effect=body.effect,
        idempotency_key=body.idempotency_key,
        input=body.input,
        started_at=event.at,
        approval=body.approval,
        degraded=body.degraded,
    )
    if body.approval is not None:
        history.grants[body.approval] = "consumed"
    history.attempts.setdefault(event.step, []).append(attempt)


def _ended(history: History, event: e.Recorded, body: e.AttemptEnded) -> None:
    assert event.step is not None
    attempt = history.last(event.step)
    if attempt is not None and attempt.number == body.attempt:
        attempt.status = _ENDS[type(body)]
        attempt.error = body.error
        attempt.effect_state = body.effect_state
        attempt.wall_s = body.duration_s
        attempt.usage = body.usage
        attempt.ended_at = event.at


def _added(history: History, event: e.Recorded, body: e.ArtifactAdded) -> None:
    assert event.step is not None
    kept = Artifact(name=body.name, digest=body.digest, media_type=body.media_type, bytes=body.bytes)
    history.artifacts.append((event.step, kept))


def _completed(history: History, event: e.Recorded, body: e.StepCompleted) -> None:
    assert event.step is not None
    history.summaries[event.step] = body.summary
    history.cached[event.step] = body.cached_s
    attempt = history.last(event.step)
    if attempt is not None and attempt.number == body.attempt and attempt.status is AttemptStatus.STARTED:
        attempt.status = AttemptStatus.SUCCEEDED
        attempt.wall_s = body.wall_s
        attempt.usage = body.usage
        attempt.ended_at = event.at


def _opened(history: History, event: e.Recorded, body: e.PauseOpened) -> None:
    pause = body.pause
    if pause.call is None or event.step is None:
        return
    before = history.asked.get(event.step)
    if before is not None and history.grants.get(before.id) == "granted":
        late = before.expires_at is not None and event.at >= before.expires_at
        history.grants[before.id] = "expired" if late else "void"
    history.asked[event.step] = pause


def _answered(history: History, event: e.Recorded, body: e.PauseAnswered) -> None:
    history.answers[body.pause] = event
    if body.answer in ("approve", "edit"):
        history.grants[body.pause] = "granted"


def _expired(history: History, event: e.Recorded, body: e.PauseExpired) -> None:
    history.answers[body.pause] = event
    if body.action == "approve":
        history.grants[body.pause] = "granted"


_ENDS: Final[Mapping[type, AttemptStatus]] = {
    e.AttemptFailed: AttemptStatus.FAILED,
    e.AttemptTimedOut: AttemptStatus.TIMED_OUT,
    e.AttemptKilled: AttemptStatus.KILLED,
    e.AttemptAbandoned: AttemptStatus.ABANDONED,
}
_NOTES: Final[Mapping[type, Callable[[History, e.Recorded, Any], None]]] = {
    e.AttemptStarted: _started,
    **dict.fromkeys(_ENDS, _ended),
    e.ArtifactAdded: _added,
    e.StepCompleted: _completed,
    e.PauseOpened: _opened,
    e.PauseAnswered: _answered,
    e.PauseExpired: _expired,
}
"""Which events tell more than the state keeps; the others are in it."""
