"""Steps and attempts as their objects (interfaces, 5.3), and sealed values as plain JSON (5.1).

Every object carries every field; what this version cannot know is null. What the state does not keep comes in as
`History`; without one, what only a journal tells is null too.
"""

from collections.abc import Callable
from typing import Final

from msgspec.json import Decoder, Encoder

from everstep.domain.attempts import Attempt, History
from everstep.domain.consequence import spec_of
from everstep.domain.detour import Degraded
from everstep.domain.explain import WaitingOn, explain_step
from everstep.domain.ids import Instant, StepPath
from everstep.domain.progress import item_counts, step_fraction
from everstep.domain.task import StepState, TaskState
from everstep.domain.titles import bound_from, step_title
from everstep.domain.values import JsonObject, JsonValue, Sealed
from everstep.wire.failure import error_json
from everstep.wire.payload import write
from everstep.wire.remedies import error_of_step
from everstep.wire.times import maybe_text, to_text

_encode: Final = Encoder().encode
_decode: Final[Callable[[bytes], JsonValue]] = Decoder().decode
_NOT_MEASURED: Final[JsonObject] = {
    "cpu_s": None,
    "memory_peak_bytes": None,
    "bytes_in": None,
    "bytes_out": None,
    "files_open": None,
    "cost": 0,
    "tokens_in": None,
    "tokens_out": None,
    "counts": {},
}


def plain(spelled: object) -> JsonValue:
    """Whatever msgspec can spell, as plain JSON."""
    return _decode(_encode(spelled))


def plain_object(spelled: object) -> JsonObject:
    """The same, of something that is an object."""
    value = plain(spelled)
    assert isinstance(value, dict)
    return value


def payload_json(sealed: Sealed | None) -> JsonObject | None:
    """A sealed value: itself, or a reference to where it is kept."""
    if sealed is None:
        return None
    if sealed.by_reference:
        return plain_object(write(sealed))
    return {
        "value": sealed.value,
        "digest": sealed.digest,
        "bytes": sealed.size_bytes,
        "untrusted": sealed.untrusted,
    }


def waiting_json(on: WaitingOn | None) -> JsonObject | None:
    """What something waits for."""
    if on is None:
        return None
    return {"kind": on.kind, "detail": on.detail, "until": maybe_text(on.until), "ref": on.ref}


def attempt_json(attempt: Attempt) -> JsonObject:
    """One try of a step."""
    return {
        "step": attempt.step,
        "number": attempt.number,
        "status": attempt.status.value,
        "generation": attempt.generation,
        "epoch": attempt.epoch,
        "worker": attempt.worker,
        "tool": attempt.tool,
        "tool_version": attempt.tool_version,
        "idempotency_key": attempt.idempotency_key,
        "input": payload_json(attempt.input),
        "approval": attempt.approval,
        "degraded": degraded_json(attempt.degraded),
        "error": None if attempt.error is None else error_json(attempt.error, attempt.step),
        "effect_state": None if attempt.effect_state is None else attempt.effect_state.value,
        "usage": _usage(attempt),
        "containment": _containment(attempt),
        "started_at": to_text(attempt.started_at),
        "ended_at": maybe_text(attempt.ended_at),
        "duration_s": duration_s(attempt.started_at, attempt.ended_at),
    }


def _usage(attempt: Attempt) -> JsonObject | None:
    """What the engine measured and what the tool reported."""
    if attempt.wall_s is None:
        return None
    usage: JsonObject = {"wall_s": attempt.wall_s, **_NOT_MEASURED}
    said = attempt.usage
    if said is not None:
        usage |= {"cost": said.cost, "tokens_in": said.tokens_in, "tokens_out": said.tokens_out}
        usage["counts"] = {**said.counts}
        seen = said.measured
        if seen is not None:
            usage |= {"cpu_s": seen.cpu_s, "memory_peak_bytes": seen.memory_peak_bytes, "files_open": seen.files_open}
            usage |= {"bytes_in": seen.bytes_in, "bytes_out": seen.bytes_out}
    return usage


def _containment(attempt: Attempt) -> JsonObject | None:
    """What held a process of this attempt; None: it had none."""
    seen = None if attempt.usage is None else attempt.usage.measured
    return None if seen is None else seen.containment


def step_json(
    state: TaskState,
    path: StepPath,
    history: History | None = None,
    *,
    payloads: bool = True,
    estimate: JsonObject | None = None,
) -> JsonObject:
    """One step, or one item of it; `payloads`: with its values and attempts, as when somebody looks at it alone."""
    step, spec = state.steps[path], spec_of(state, path)
    last = history.last(path) if history is not None else None
    attempts = history.attempts.get(path, []) if history is not None and payloads else []
    source = last or step.attempt
    counts = item_counts(state, step)
    return {
        "id": path,
        "title": step_title(state, path),
        "tool": spec.tool,
        "tool_used": step.tool_used or (source.tool if source else None),
        "tool_version": source.tool_version if source else None,
        "effect": _word(step.last_effect or spec.effect),
        "status": step.status.value,
        "phase": _word(step.phase),
        "on_error": state.on_error(spec).value,
        "needs": None if spec.needs is None else list(spec.needs),
        "skip": _skip(step),
        "fraction": round(step_fraction(step), 4),
        "retry": {
            "count": step.retries if step.error is None else step.error.retries,
            "max": _retries_max(state, step),
            "next_at": maybe_text(step.retry_at),
        },
        "waiting_on": waiting_json(explain_step(state, step).waiting_on),
        "input": payload_json(source.input) if source and payloads else None,
        "bound_from": bound_from(spec),
        "output": payload_json(step.output) if payloads else None,
        "summary": history.summaries.get(path) if history is not None else None,
        "via": step.via,
        "degraded": degraded_json(step.detour.degraded if step.detour else None),
        "cached": _cached(history, path),
        "counts": None if counts is None else {**counts},
        "error": error_of_step(state, step, source.input if source else None),
        "estimate": estimate,
        "attempts": [attempt_json(attempt) for attempt in attempts],
        "pause": step.pause,
        "started_at": maybe_text(step.started_at),
        "ended_at": maybe_text(step.ended_at),
        "duration_s": duration_s(step.started_at, step.ended_at),
    }


def _cached(history: History | None, path: StepPath) -> JsonObject | None:
    age_s = None if history is None else history.cached.get(path)
    return None if age_s is None else {"age_s": age_s}


def duration_s(started_at: Instant | None, ended_at: Instant | None) -> float | None:
    """Seconds between two instants, if both are known."""
    return None if started_at is None or ended_at is None else (ended_at - started_at) / 1000


def _word(value: str | None) -> JsonValue:
    return None if value is None else str(value)


def _skip(step: StepState) -> JsonObject | None:
    if step.skip_reason is None:
        return None
    return {"reason": step.skip_reason.value, "upstream": step.upstream}


def _retries_max(state: TaskState, step: StepState) -> int | None:
    """As the plan says, or as the last failure was told; tool and settings are not known here."""
    if step.error is not None:
        return step.error.retries_max
    said = (spec_of(state, step.path).retry, state.plan.defaults.retry)
    return next((retry.times for retry in said if retry is not None and retry.times is not None), None)


def degraded_json(degraded: Degraded | None) -> JsonObject | None:
    """How far down its tool's ladder a call is."""
    if degraded is None:
        return None
    return {"level": degraded.level, "changes": {"set": degraded.set, "drop": list(degraded.drop)}}
