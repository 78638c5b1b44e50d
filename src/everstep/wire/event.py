"""Events as JSON bytes (interfaces, 5.7), and back: the same bytes are journal row, digest input and frame body.

`attempt.started` and `step.completed` are written once per step, so they stand first. Records whose fields are spelled
as they are named need no spelling of their own: msgspec reads and writes them as they are.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias, TypeVar, assert_never

import msgspec
from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder, Encoder

from everstep.domain import events as e
from everstep.domain.errors import LimitExceeded, Validation
from everstep.domain.events import Recorded
from everstep.domain.ids import Digest, Instant, Seq, StepPath, TaskId
from everstep.domain.plan import PlanSpec
from everstep.domain.task import Lease, Proposal
from everstep.domain.values import Sealed
from everstep.wire import event_of_step as step
from everstep.wire import event_of_task as task
from everstep.wire import payload
from everstep.wire import plan as wire_plan
from everstep.wire.times import from_text, to_text
from everstep.wire.values import canonical

EVENT_BYTES_MAX: Final = 64 * 1024
PLAN_BYTES_MAX: Final = 24 * 1024
"""A longer plan is kept as an artifact, so that its event stays within bounds beside inputs of any size."""
_PLANS_KEPT: Final = 256
_ACTORS_KEPT: Final = 256
"""Nearly all events are this engine's own."""

Fetch: TypeAlias = Callable[[Digest], bytes]
"""Where a plan that is kept as an artifact comes from."""
Named = TypeVar(
    "Named",
    e.TaskPausing,
    e.TaskResumed,
    e.TaskCancelling,
    e.TaskLimitNear,
    e.TaskAheadOfSchedule,
    e.TaskLate,
    e.TaskEarlyCompletion,
    e.AttemptProbed,
    e.StepFallback,
    e.StepDenied,
    e.ArtifactAdded,
    e.StepSkipped,
    e.PauseExpired,
    e.PauseWithdrawn,
)
"""Records whose fields are spelled as they are named."""


class Unreadable(ValueError):
    """Bytes that no version of ours wrote, or that say what cannot be."""


class Actor(Struct):
    """Who did it."""

    kind: e.ActorKind
    id: str
    via: str


class Event(Struct):
    """The envelope; `data` is what its type says."""

    task: TaskId
    seq: Seq
    at: str
    type: str
    step: StepPath | None
    generation: int
    actor: Any  # an Actor that is spelled already
    data: Any  # one of many shapes; `_spell` says which


class Envelope(Event):
    """An event whose data has not been looked at."""

    actor: Actor
    data: Raw


class EventPage(Struct):
    """Some of a journal, and how far that goes; what is in the events has not been looked at."""

    events: list[Raw]
    next_after: int
    head_seq: int


class _Made(Struct):
    id: str
    last: Raw = Raw()


_encode: Final = Encoder().encode
_open: Final = Decoder(Envelope).decode
_anything: Final = Decoder(dict[str, Any]).decode
_made: Final = Decoder(_Made).decode
page_of: Final = Decoder(EventPage).decode
_reference: Final = Decoder(payload.Payload).decode
_UNSPEAKABLE: Final = (ValueError, TypeError, AttributeError, ArithmeticError, MsgspecError)
"""Half a surrogate pair, a number without end, something of another type."""


class Pen:
    """Writes the events of one commit: what they have in common is spelled once."""

    __slots__ = ("_actor", "_at", "_generation", "_instant", "_task")

    def __init__(self, task: TaskId, at: Instant, generation: int, actor: e.Actor) -> None:
        self._task = task
        self._at = to_text(at)
        self._instant = at
        self._generation = generation
        self._actor = _spell_actor(actor.kind, actor.id, actor.via)

    def write(self, seq: Seq, draft: e.Draft) -> bytes:
        """The one spelling of an event; raises LimitExceeded, or Validation for what no JSON can say."""
        body, step_path = draft.body, draft.step
        kind = body.type if isinstance(body, e.Unknown) else body.TYPE
        try:
            return self._seal(seq, kind, step_path, self._spell(body, step_path))
        except _UNSPEAKABLE as error:  # refused alone: it must not cost those who are written with it
            raise Validation(f"{kind} cannot be written down: {error}") from error

    def write_intent(self, seq: Seq, lease: Lease, proposal: Proposal) -> bytes:
        """`attempt.started`, straight from what it grants."""
        data = step.AttemptStarted(
            proposal.attempt,
            lease.epoch,
            lease.worker,
            proposal.tool,
            proposal.tool_version,
            proposal.effect,
            proposal.idempotency_key,
            payload.write(proposal.input),
            proposal.coerced,
            proposal.approval,
            None if proposal.degraded is None else step.write_degraded(proposal.degraded),
        )
        return self._seal(seq, e.AttemptStarted.TYPE, proposal.step, data)

    def _seal(self, seq: Seq, kind: str, step_path: StepPath | None, data: object) -> bytes:
        encoded = _encode(Event(self._task, seq, self._at, kind, step_path, self._generation, self._actor, data))
        if len(encoded) > EVENT_BYTES_MAX:
            raise LimitExceeded(
                f"an event of {len(encoded)} bytes is over the limit of {EVENT_BYTES_MAX}",
                what_to_do="hand large values over as files or outputs; they are kept by reference",
            )
        return encoded

    def _spell(self, body: e.Body, path: StepPath | None) -> object:
        match body:
            case e.AttemptStarted():
                return step.AttemptStarted.of(body)
            case e.StepCompleted():
                return step.StepCompleted.of(body)
            case e.TaskCreated():
                return task.TaskCreated.of(body, _write_plan(body))
            case e.TaskStarted():
                return task.TaskStarted.of(body)
            case e.TaskPaused():
                return task.TaskPaused.of(body)
            case e.TaskRecovered():
                return task.TaskRecovered.of(body)
            case e.TaskCancelled():
                return task.TaskCancelled.of(body)
            case e.TaskCompleted():
                return task.TaskCompleted.of(body)
            case e.TaskFailed():
                return task.TaskFailed.of(body)
            case e.TaskContinued():
                return task.TaskContinued.of(body, path)
            case e.TaskReopened():
                return task.TaskReopened.of(body)
            case e.TaskUpdated():
                return task.TaskUpdated.of(body)
            case e.PlanRevised():
                return task.PlanRevised.of(body)
            case e.StepStarted():
                return step.StepStarted.of(body)
            case e.StepWaiting():
                return step.StepWaiting.of(body)
            case e.AttemptFailed() | e.AttemptTimedOut() | e.AttemptKilled() | e.AttemptAbandoned():
                return step.AttemptEnded.of(body, path)
            case e.StepRetryScheduled():
                return step.StepRetryScheduled.of(body, path)
            case e.StepFailed():
                return step.StepFailed.of(body, path)
            case e.PauseOpened():
                return step.pause_opened_of(body, self._task, self._instant)
            case e.PauseAnswered():
                return step.PauseAnswered.of(body)
            case e.PauseExpiring():
                return step.PauseExpiring.of(body)
            case (
                e.TaskPausing()
                | e.TaskResumed()
                | e.TaskCancelling()
                | e.TaskLimitNear()
                | e.OffSchedule()
                | e.Noted()
                | e.OffCourse()
                | e.StepSkipped()
                | e.PauseExpired()
                | e.PauseWithdrawn()
            ):
                return body
            case e.Unknown():
                return body.data
            case _:
                assert_never(body)


@lru_cache(maxsize=_ACTORS_KEPT)
def _spell_actor(kind: e.ActorKind, id: str, via: str) -> Raw:
    return Raw(_encode(Actor(kind, id, via)))


def encode(event: Recorded) -> bytes:
    """One event alone."""
    pen = Pen(event.task, event.at, event.generation, event.actor)
    return pen.write(event.seq, e.Draft(body=event.body, step=event.step))


def decode(encoded: bytes | str, fetch: Fetch | None = None) -> Recorded:
    """The event again, whoever's it is; a type of a newer version becomes `Unknown`. Raises Unreadable."""
    try:
        event = _open(encoded)
        actor = event.actor
        return Recorded(
            task=event.task,
            seq=event.seq,
            at=from_text(event.at),
            generation=event.generation,
            actor=e.Actor(kind=actor.kind, id=actor.id, via=actor.via),
            step=event.step,
            body=_understand(event, fetch),
        )
    except (msgspec.MsgspecError, ValueError) as error:
        raise Unreadable(f"not an event: {error}") from error


def loads(encoded: bytes) -> dict[str, Any]:  # any JSON: msgspec has no recursive type for it
    """An event of the journal as plain JSON."""
    return _anything(encoded)


def made_in(reply: bytes) -> tuple[str, Recorded | None]:
    """A new task, and its last event if the reply waited for that."""
    made = _made(reply)
    return made.id, decode(bytes(made.last)) if made.last else None


def long_plan(created: e.TaskCreated) -> tuple[Digest, bytes] | None:
    """The payload that must be kept before this event, if its plan is too long to stand in it."""
    raw = _spell_plan(_Named(created))
    return (created.plan_digest, raw) if len(raw) > PLAN_BYTES_MAX else None


class _Named:
    """A plan known by its digest, which names its normal form: so equal plans are spelled once.

    The digest of a function is its name and version: two of them may differ, and have to be compared.
    """

    __slots__ = ("digest", "plan")

    def __init__(self, created: e.TaskCreated) -> None:
        self.plan = created.plan
        self.digest = created.plan_digest

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Named) or self.digest != other.digest:
            return False
        return self.plan.durable is None or self.plan == other.plan

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(maxsize=_PLANS_KEPT)
def _spell_plan(named: _Named) -> bytes:
    return canonical(wire_plan.to_json(named.plan))


@lru_cache(maxsize=_PLANS_KEPT)
def _understand_plan(raw: bytes) -> PlanSpec:
    read = wire_plan.from_stored(_anything(raw))
    if read.plan is None:
        raise ValueError("; ".join(problem.message for problem in read.problems))
    return read.plan


def _write_plan(created: e.TaskCreated) -> Raw:
    raw = _spell_plan(_Named(created))
    if len(raw) <= PLAN_BYTES_MAX:
        return Raw(raw)
    kept = Sealed(None, created.plan_digest, len(raw), raw=raw, by_reference=True)
    return Raw(_encode(payload.write(kept)))


def _read_plan(raw: bytes, fetch: Fetch | None) -> PlanSpec:
    if not raw.startswith(_REFERENCE):
        return _understand_plan(raw)
    kept = payload.read(_reference(raw))
    if fetch is None:
        raise ValueError(f"the plan is kept as {kept.digest}, and cannot be fetched here")
    return _understand_plan(fetch(kept.digest))


_REFERENCE: Final = b'{"artifact":'
"""How a Payload that refers to a plan begins; no plan does."""


class _Spelling(Protocol):
    def body(self) -> e.Body: ...


def _spelled(shape: type[_Spelling]) -> Callable[[Raw], e.Body]:
    decode_shape = Decoder(shape).decode
    return lambda raw: decode_shape(raw).body()


def _as_named(shape: type[Named]) -> Callable[[Raw], Named]:
    return Decoder(shape).decode


def _ended(means: type[step.Ended]) -> Callable[[Raw], step.Ended]:
    decode_shape = Decoder(step.AttemptEnded).decode
    return lambda raw: decode_shape(raw).body(means)


_created: Final = Decoder(task.TaskCreated).decode

_READERS: Final[dict[str, Callable[[Raw], e.Body]]] = {
    e.AttemptStarted.TYPE: _spelled(step.AttemptStarted),
    e.StepCompleted.TYPE: _spelled(step.StepCompleted),
    e.TaskStarted.TYPE: _spelled(task.TaskStarted),
    e.TaskPausing.TYPE: _as_named(e.TaskPausing),
    e.TaskPaused.TYPE: _spelled(task.TaskPaused),
    e.TaskResumed.TYPE: _as_named(e.TaskResumed),
    e.TaskRecovered.TYPE: _spelled(task.TaskRecovered),
    e.TaskCancelling.TYPE: _as_named(e.TaskCancelling),
    e.TaskCancelled.TYPE: _spelled(task.TaskCancelled),
    e.TaskCompleted.TYPE: _spelled(task.TaskCompleted),
    e.TaskFailed.TYPE: _spelled(task.TaskFailed),
    e.TaskReopened.TYPE: _spelled(task.TaskReopened),
    e.TaskLimitNear.TYPE: _as_named(e.TaskLimitNear),
    e.TaskAheadOfSchedule.TYPE: _as_named(e.TaskAheadOfSchedule),
    e.TaskLate.TYPE: _as_named(e.TaskLate),
    e.TaskEarlyCompletion.TYPE: _as_named(e.TaskEarlyCompletion),
    e.TaskContinued.TYPE: _spelled(task.TaskContinued),
    e.TaskUpdated.TYPE: _spelled(task.TaskUpdated),
    e.PlanRevised.TYPE: _spelled(task.PlanRevised),
    e.StepStarted.TYPE: _spelled(step.StepStarted),
    e.StepWaiting.TYPE: _spelled(step.StepWaiting),
    e.AttemptFailed.TYPE: _ended(e.AttemptFailed),
    e.AttemptTimedOut.TYPE: _ended(e.AttemptTimedOut),
    e.AttemptKilled.TYPE: _ended(e.AttemptKilled),
    e.AttemptAbandoned.TYPE: _ended(e.AttemptAbandoned),
    e.AttemptProbed.TYPE: _as_named(e.AttemptProbed),
    e.StepRetryScheduled.TYPE: _spelled(step.StepRetryScheduled),
    e.StepFallback.TYPE: _as_named(e.StepFallback),
    e.StepDenied.TYPE: _as_named(e.StepDenied),
    e.StepFailed.TYPE: _spelled(step.StepFailed),
    e.StepSkipped.TYPE: _as_named(e.StepSkipped),
    e.ArtifactAdded.TYPE: _as_named(e.ArtifactAdded),
    e.PauseOpened.TYPE: step.pause_opened,
    e.PauseAnswered.TYPE: _spelled(step.PauseAnswered),
    e.PauseExpiring.TYPE: _spelled(step.PauseExpiring),
    e.PauseExpired.TYPE: _as_named(e.PauseExpired),
    e.PauseWithdrawn.TYPE: _as_named(e.PauseWithdrawn),
}
"""How each type is read; `task.created` needs the plan as well."""


def _understand(event: Envelope, fetch: Fetch | None) -> e.Body:
    reader = _READERS.get(event.type)
    if reader is not None:
        return reader(event.data)
    if event.type == e.TaskCreated.TYPE:
        created = _created(event.data)
        return created.body(_read_plan(bytes(created.plan), fetch))
    return e.Unknown(type=event.type, data=_anything(event.data))
