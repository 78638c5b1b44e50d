"""The `data` of every event of a step, an attempt or a pause (interfaces, 5.7): written by `of`, read by `body`.

The order of the fields is their order on the wire. What this version does not know is null.
"""

from typing import Any, TypeVar

from msgspec import Raw, Struct

from everstep.domain import events as e
from everstep.domain import usage
from everstep.domain.detour import Degraded
from everstep.domain.failure import EffectState
from everstep.domain.ids import Digest, Epoch, Instant, PauseId, StepPath, TaskId, WorkerId
from everstep.domain.plan import Effect
from everstep.wire.failure import Error, Retry, read_error, write_error
from everstep.wire.pause import PauseData, decode_pause, write_pause
from everstep.wire.payload import Payload, maybe_read, maybe_write, read, write
from everstep.wire.times import from_text, maybe_instant, maybe_text, to_text

Ended = TypeVar("Ended", e.AttemptFailed, e.AttemptTimedOut, e.AttemptKilled, e.AttemptAbandoned)


class StepStarted(Struct):
    title: str
    items: Payload | None

    @classmethod
    def of(cls, body: e.StepStarted) -> "StepStarted":
        return cls(body.title, maybe_write(body.items))

    def body(self) -> e.StepStarted:
        return e.StepStarted(title=self.title, items=maybe_read(self.items))


class WaitingOn(Struct):
    """What a step waits for."""

    kind: str
    detail: str
    until: str | None
    ref: str | None = None


class StepWaiting(Struct):
    waiting_on: WaitingOn
    output: Payload | None

    @classmethod
    def of(cls, body: e.StepWaiting) -> "StepWaiting":
        return cls(WaitingOn(body.kind, body.detail, maybe_text(body.until), body.ref), maybe_write(body.output))

    def body(self) -> e.StepWaiting:
        on = self.waiting_on
        return e.StepWaiting(
            kind=on.kind,
            detail=on.detail,
            until=maybe_instant(on.until),
            output=maybe_read(self.output),
            ref=on.ref,
        )


class Changes(Struct):
    """How arguments differ from those the plan gave."""

    set: dict[str, Any]  # any JSON: msgspec has no recursive type for it
    drop: tuple[str, ...]


class DegradedData(Struct):
    """How far down its tool's ladder a call is."""

    level: int
    changes: Changes


def write_degraded(degraded: Degraded | None) -> DegradedData | None:
    """The rung of a call, if it is on one."""
    return None if degraded is None else DegradedData(degraded.level, Changes(degraded.set, degraded.drop))


def read_degraded(data: DegradedData | None) -> Degraded | None:
    """The rung again."""
    return None if data is None else Degraded(level=data.level, set=data.changes.set, drop=data.changes.drop)


class AttemptStarted(Struct):
    attempt: int
    epoch: Epoch
    worker: WorkerId
    tool: str
    tool_version: str
    effect: Effect
    idempotency_key: str
    input: Payload
    coerced: tuple[str, ...] = ()
    approval: PauseId | None = None
    degraded: DegradedData | None = None

    @classmethod
    def of(cls, body: e.AttemptStarted) -> "AttemptStarted":
        return cls(
            body.attempt,
            body.epoch,
            body.worker,
            body.tool,
            body.tool_version,
            body.effect,
            body.idempotency_key,
            write(body.input),
            body.coerced,
            body.approval,
            write_degraded(body.degraded),
        )

    def body(self) -> e.AttemptStarted:
        return e.AttemptStarted(
            attempt=self.attempt,
            epoch=self.epoch,
            worker=self.worker,
            tool=self.tool,
            tool_version=self.tool_version,
            effect=self.effect,
            idempotency_key=self.idempotency_key,
            input=read(self.input),
            coerced=self.coerced,
            approval=self.approval,
            degraded=read_degraded(self.degraded),
        )


class Usage(Struct, omit_defaults=True):
    """What a call used; what nobody reported is not there."""

    wall_s: float
    cost: float = 0.0
    tokens_in: int | None = None
    tokens_out: int | None = None
    counts: dict[str, float] = {}
    cpu_s: float | None = None
    memory_peak_bytes: int | None = None
    bytes_in: int = 0
    bytes_out: int = 0
    files_open: int | None = None
    containment: dict[str, Any] | None = None

    @classmethod
    def of(cls, wall_s: float, said: usage.Usage | None) -> "Usage":
        if said is None:
            return cls(wall_s)
        seen = said.measured
        if seen is None:
            return cls(wall_s, said.cost, said.tokens_in, said.tokens_out, said.counts)
        return cls(
            wall_s,
            said.cost,
            said.tokens_in,
            said.tokens_out,
            said.counts,
            seen.cpu_s,
            seen.memory_peak_bytes,
            seen.bytes_in,
            seen.bytes_out,
            seen.files_open,
            seen.containment,
        )

    def said(self) -> usage.Usage | None:
        """What the tool reported."""
        seen = None
        if self.cpu_s is not None:
            seen = usage.Measured(
                cpu_s=self.cpu_s,
                memory_peak_bytes=self.memory_peak_bytes or 0,
                bytes_in=self.bytes_in,
                bytes_out=self.bytes_out,
                files_open=self.files_open,
                containment=self.containment,
            )
        read = usage.Usage(
            cost=self.cost,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            counts=self.counts,
            measured=seen,
        )
        return None if read == usage.Usage() else read


class AttemptEnded(Struct, kw_only=True):
    """Common shape of the four ways an attempt ends without success."""

    attempt: int
    error: Error
    effect_state: EffectState
    called: bool
    usage: Usage | None = None
    duration_s: float

    @classmethod
    def of(cls, body: e.AttemptEnded, step: StepPath | None) -> "AttemptEnded":
        return cls(
            attempt=body.attempt,
            error=write_error(body.error, step),
            effect_state=body.effect_state,
            called=body.called,
            usage=None if body.usage is None else Usage.of(body.duration_s, body.usage),
            duration_s=body.duration_s,
        )

    def body(self, means: type[Ended]) -> Ended:
        return means(
            attempt=self.attempt,
            error=read_error(self.error),
            effect_state=self.effect_state,
            called=self.called,
            duration_s=self.duration_s,
            usage=None if self.usage is None else self.usage.said(),
        )


class StepRetryScheduled(Struct):
    attempt: int
    error: Error
    retry: Retry | None
    new_key: bool
    counted: bool
    degraded: DegradedData | None = None

    @classmethod
    def of(cls, body: e.StepRetryScheduled, step: StepPath | None) -> "StepRetryScheduled":
        error = write_error(body.error, step)
        degraded = write_degraded(body.degraded)
        return cls(body.attempt, error, error.retry, body.new_key, body.counted, degraded)

    def body(self) -> e.StepRetryScheduled:
        return e.StepRetryScheduled(
            attempt=self.attempt,
            error=read_error(self.error),
            new_key=self.new_key,
            counted=self.counted,
            degraded=read_degraded(self.degraded),
        )


class Cached(Struct):
    """A result that had been kept."""

    age_s: float


class StepCompleted(Struct, kw_only=True):
    attempt: int | None
    output: Payload
    summary: str | None
    via: str
    tool_used: str | None
    degraded: DegradedData | None = None
    cached: Cached | None = None
    usage: Usage
    duration_s: float

    @classmethod
    def of(cls, body: e.StepCompleted) -> "StepCompleted":
        return cls(
            attempt=body.attempt,
            output=write(body.output),
            summary=body.summary,
            via=body.via,
            tool_used=body.tool_used,
            usage=Usage.of(body.wall_s, body.usage),
            duration_s=body.duration_s,
            degraded=write_degraded(body.degraded),
            cached=None if body.cached_s is None else Cached(body.cached_s),
        )

    def body(self) -> e.StepCompleted:
        return e.StepCompleted(
            attempt=self.attempt,
            output=read(self.output),
            summary=self.summary,
            via=self.via,
            tool_used=self.tool_used,
            duration_s=self.duration_s,
            wall_s=self.usage.wall_s,
            degraded=read_degraded(self.degraded),
            usage=self.usage.said(),
            cached_s=None if self.cached is None else self.cached.age_s,
        )


class StepFailed(Struct):
    attempt: int | None
    error: Error
    duration_s: float

    @classmethod
    def of(cls, body: e.StepFailed, step: StepPath | None) -> "StepFailed":
        return cls(body.attempt, write_error(body.error, step, final=True), body.duration_s)

    def body(self) -> e.StepFailed:
        return e.StepFailed(attempt=self.attempt, error=read_error(self.error), duration_s=self.duration_s)


def pause_opened_of(body: e.PauseOpened, task: TaskId, at: Instant) -> PauseData:
    """The event carries the Pause itself."""
    return write_pause(body.pause, task, at)


def pause_opened(raw: Raw) -> e.PauseOpened:
    """The event again."""
    return e.PauseOpened(pause=decode_pause(raw))


class PauseAnswered(Struct):
    pause: PauseId
    answer: str
    arguments: dict[str, Any] | None  # any JSON: msgspec has no recursive type for it
    output: Payload | None
    value: Any
    note: str | None
    digest: Digest | None = None
    diff: tuple[dict[str, Any], ...] | None = None

    @classmethod
    def of(cls, body: e.PauseAnswered) -> "PauseAnswered":
        return cls(
            body.pause,
            body.answer,
            body.arguments,
            maybe_write(body.output),
            body.value,
            body.note,
            body.digest,
            body.diff,
        )

    def body(self) -> e.PauseAnswered:
        return e.PauseAnswered(
            pause=self.pause,
            answer=self.answer,
            note=self.note,
            arguments=self.arguments,
            output=maybe_read(self.output),
            value=self.value,
            digest=self.digest,
            diff=self.diff or (),
        )


class PauseExpiring(Struct):
    pause: PauseId
    expires_at: str
    on_timeout: str

    @classmethod
    def of(cls, body: e.PauseExpiring) -> "PauseExpiring":
        return cls(body.pause, to_text(body.expires_at), body.on_timeout)

    def body(self) -> e.PauseExpiring:
        return e.PauseExpiring(pause=self.pause, expires_at=from_text(self.expires_at), on_timeout=self.on_timeout)
