"""The one call. The only `except Exception`: whatever a tool raises becomes a value here."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, Millis, StepPath, TaskId
from everstep.domain.outcome import Asked, Failed, Outcome, Probe, Succeeded, Waits
from everstep.domain.plan import Effect, LimitsSpec
from everstep.domain.record import record
from everstep.domain.task import Intent
from everstep.domain.usage import Meter, Usage
from everstep.domain.values import JsonValue, NotJson
from everstep.engine.catalog import Entry
from everstep.engine.classify import classify
from everstep.engine.kit import Kit
from everstep.ports.sink import Sink
from everstep.ports.tool import Call, Deferred, Log, NeedsInput, ResourceExceeded

T = TypeVar("T")
PROBE_TIMEOUT_S = 10.0


@record
class Surroundings:
    """What a call may know of its task."""

    owner: str
    workspace: str
    answer: JsonValue
    timeout_ms: Millis
    limits: LimitsSpec | None = None
    """Bounds of this attempt."""


class CallLog:
    """Lines of one attempt, on their way to the operator's log."""

    __slots__ = ("_attempt", "_sink", "_step", "_task")

    def __init__(self, sink: Sink, intent: Intent) -> None:
        self._sink = sink
        self._task, self._step, self._attempt = intent.task, intent.step, intent.attempt

    def info(self, text: str, **fields: JsonValue) -> None:
        """Worth knowing."""
        self._sink.note(text, task=self._task, step=self._step, attempt=self._attempt, **fields)

    def warning(self, text: str, **fields: JsonValue) -> None:
        """Worth a look."""
        self._sink.note(text, level="warning", task=self._task, step=self._step, attempt=self._attempt, **fields)


class CallContext:
    """The `ctx` of a running call. Made for every call, so it computes nothing before it is asked."""

    __slots__ = ("_around", "_ending", "_intent", "_kit", "_meter")

    def __init__(self, intent: Intent, around: Surroundings, kit: Kit) -> None:
        self._intent = intent
        self._around = around
        self._kit = kit
        self._ending: asyncio.Event | None = None
        self._meter: Meter | None = None

    @property
    def task_id(self) -> TaskId:
        return self._intent.task

    @property
    def step_id(self) -> StepPath:
        return self._intent.step

    @property
    def attempt(self) -> int:
        return self._intent.attempt

    @property
    def owner(self) -> str:
        return self._around.owner

    @property
    def workdir(self) -> Path:
        return Path(self._around.workspace)

    @property
    def idempotency_key(self) -> str:
        return self._intent.idempotency_key

    @property
    def answer(self) -> JsonValue:
        return self._around.answer

    @property
    def deadline(self) -> datetime:
        return datetime.fromtimestamp((self._intent.started_at + self._around.timeout_ms) / 1000, UTC)

    @property
    def cancelled(self) -> bool:
        return self._ending is not None and self._ending.is_set()

    @property
    def log(self) -> Log:
        return CallLog(self._kit.sink, self._intent)

    def now(self) -> Instant:
        return self._kit.clock.now()

    def remaining(self) -> float:
        return (self._intent.started_at + self._around.timeout_ms - self._kit.clock.now()) / 1000

    async def wait_cancelled(self) -> None:
        self._ending = self._ending or asyncio.Event()
        await self._ending.wait()

    def progress(self, fraction: float, text: str | None = None) -> None:
        self._kit.sink.progress(self._intent.task, self._intent.step, fraction, text)

    def usage(
        self,
        cost: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        **counts: float | None,
    ) -> None:
        self._meter = self._meter or Meter()
        self._meter.add(cost, tokens_in, tokens_out, counts)
        limits = self._around.limits
        if limits is not None and limits.cost is not None and self._meter.cost > limits.cost:
            what = f"the call has cost {self._meter.cost:g}, and may cost {limits.cost:g}"
            raise ResourceExceeded(what, limit="cost", used=self._meter.cost, max=limits.cost)

    def used(self) -> Usage | None:
        """What was reported; None if nothing was."""
        return None if self._meter is None else self._meter.read()

    def outlives(self) -> Callable[[], None]:
        return self._kit.pools.outlives((self._intent.task, self._intent.step))

    def end(self) -> None:
        """The call should end: timed out, cancelled, or the engine stops."""
        self._ending = self._ending or asyncio.Event()
        self._ending.set()


async def invoke(intent: Intent, around: Surroundings, kit: Kit) -> Outcome:
    """Call the tool of a durable intent and say what came of it. Raises nothing but CancelledError."""
    entry = kit.catalog.get(intent.tool)
    arguments = kit.codec.fresh(intent.input)
    assert isinstance(arguments, dict)
    call = Call(tool=intent.tool, arguments=arguments, effect=intent.effect, idempotency_key=intent.idempotency_key)
    ctx = CallContext(intent, around, kit)
    began = kit.clock.monotonic()
    kit.fault("call.execute.before")
    try:
        result = await _outcome_of(around.timeout_ms / 1000, entry.adapter.execute(call, ctx), kit)
    except asyncio.CancelledError:
        ctx.end()
        raise
    kit.fault("call.execute.after")
    if not isinstance(result, Raised):
        outcome = _result(entry, result, kit, kit.clock.monotonic() - began)
        if around.limits is not None:
            outcome = _bounded(outcome, around.limits)
        used = ctx.used()
        return outcome if used is None or isinstance(outcome, Waits) else replace(outcome, usage=used)
    ctx.end()
    error = result.error
    if isinstance(error, NeedsInput):
        return Asked(question=str(error), schema=error.schema, usage=ctx.used())
    timed_out = isinstance(error, TimeIsUp)
    if timed_out:
        failure = _timeout(intent, around)
    else:
        failure = classify(error, tool=intent.tool, adapter_says=entry.adapter.classify(error))
    if failure.category is Category.INTERNAL:
        kit.sink.trouble("tool failed", error, task=intent.task, step=intent.step, tool=intent.tool)
    return Failed(
        failure=failure,
        ended="timed_out" if timed_out else "failed",
        probe=await look(call, failure.effect_state, kit),
        wall_s=kit.clock.monotonic() - began,
        usage=ctx.used(),
    )


async def look(call: Call, effect_state: EffectState, kit: Kit) -> Probe | None:
    """Ask the tool whether an unclear call happened; None where looking is not its way."""
    if effect_state is not EffectState.UNKNOWN or call.effect is not Effect.VERIFIABLE:
        return None
    entry = kit.catalog.get(call.tool)
    seen = await _outcome_of(PROBE_TIMEOUT_S, entry.adapter.probe(call), kit)
    if isinstance(seen, Raised):  # a look that fails has seen nothing
        kit.sink.trouble("probe failed", seen.error, tool=call.tool)
        return Probe(result="unknown")
    output = kit.codec.seal(seen.output, untrusted=not entry.spec.trusted_output)
    return Probe(result=seen.result, output=output if seen.result == "done" else None)


class TimeIsUp(Exception):
    """The engine's own limit; a tool's TimeoutError is the tool's."""


@record
class Raised:
    """What a tool's code raised."""

    error: Exception


async def _outcome_of(seconds: float, work: Coroutine[object, object, T], kit: Kit) -> T | Raised:
    """Let a tool's code run for so long. `asyncio.timeout` on the engine's clock, at a third of its price."""
    task = asyncio.current_task(kit.loop)
    assert task is not None
    fired = False

    def fire() -> None:
        nonlocal fired
        fired = True
        task.cancel()

    timer = kit.clock.call_later(seconds, fire)
    try:
        return await work
    except asyncio.CancelledError:
        if fired and task.uncancel() == 0:
            return Raised(error=TimeIsUp())
        raise
    except Exception as error:  # noqa: BLE001 -- the wall between tools and engine
        return Raised(error=error)
    finally:
        timer.cancel()


def _bounded(outcome: Succeeded | Failed | Waits, limits: LimitsSpec) -> Succeeded | Failed | Waits:
    """An output over the attempt's limit is not kept; the call was made all the same."""
    if isinstance(outcome, Failed) or limits.output_bytes is None or outcome.output.size_bytes <= limits.output_bytes:
        return outcome
    used, most = outcome.output.size_bytes, limits.output_bytes
    failure = Failure(
        code="limit_output",
        category=Category.RESOURCE,
        message=f"the output has {used} bytes, {used - most} more than the {most} that are allowed",
        what_to_do="ask for less, or raise `limits.output` of the step",
        effect_state=EffectState.MADE,
        details={"limit": "output", "used": used, "max": most},
    )
    return Failed(failure=failure)


def _result(entry: Entry, result: JsonValue | Deferred, kit: Kit, wall_s: float) -> Succeeded | Failed | Waits:
    """Strict JSON that fits the tool's own schema, or the tool has a bug."""
    untrusted = not entry.spec.trusted_output
    value = result.output if isinstance(result, Deferred) else result
    try:
        sealed = kit.codec.seal(value, untrusted=untrusted)
        sealed.value = kit.codec.fresh(sealed)
    except NotJson as exc:
        return Failed(failure=_invalid(entry, str(exc)), wall_s=wall_s)
    violations = entry.check_output(value) if entry.check_output is not None else ()
    if violations:
        text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in violations)
        return Failed(failure=_invalid(entry, text), wall_s=wall_s)
    if isinstance(result, Deferred):
        return Waits(until=result.until, output=sealed)
    return Succeeded(output=sealed, wall_s=wall_s)


def _invalid(entry: Entry, why: str) -> Failure:
    return Failure(
        code="invalid_result",
        category=Category.INTERNAL,
        message=f"the result of '{entry.spec.name}' is not what it promises: {why}",
        what_to_do="correct the tool, then retry the step",
        effect_state=EffectState.MADE,
    )


def _timeout(intent: Intent, around: Surroundings) -> Failure:
    return Failure(
        code="timeout",
        category=Category.TRANSIENT,
        message=f"'{intent.tool}' did not answer within {around.timeout_ms / 1000:g} s",
        what_to_do="give the step a longer `timeout`, or retry it",
        effect_state=EffectState.UNKNOWN,
    )
