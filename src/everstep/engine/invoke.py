"""The one call. The only `except Exception`: whatever a tool raises becomes a value here."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, Millis, StepPath, TaskId, split_path
from everstep.domain.outcome import Asked, Failed, Outcome, Probe, Spawns, Succeeded, Waits
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.task import Intent, TaskState
from everstep.domain.values import JsonValue, NotJson
from everstep.engine.catalog import Entry
from everstep.engine.classify import classify
from everstep.engine.kit import Kit
from everstep.ports.sink import Sink
from everstep.ports.tool import Call, Deferred, Log, NeedsInput, Subplan

T = TypeVar("T")
PROBE_TIMEOUT_S = 10.0


class CallLog:
    """Lines of one attempt, on their way to the operator's log."""

    __slots__ = ("_attempt", "_sink", "_step", "_task")

    def __init__(self, sink: Sink, intent: Intent) -> None:
        self._sink = sink
        self._task, self._step, self._attempt = intent.task, intent.step, intent.attempt.number

    def info(self, text: str, **fields: JsonValue) -> None:
        """Worth knowing."""
        self._sink.note(text, task=self._task, step=self._step, attempt=self._attempt, **fields)

    def warning(self, text: str, **fields: JsonValue) -> None:
        """Worth a look."""
        self._sink.note(text, level="warning", task=self._task, step=self._step, attempt=self._attempt, **fields)


class CallContext:
    """The `ctx` of a running call. Made for every call, so it computes nothing before it is asked."""

    __slots__ = ("_ending", "_intent", "_kit", "answer", "owner", "timeout_ms", "workspace")

    def __init__(self, intent: Intent, entry: Entry, state: TaskState, kit: Kit) -> None:
        spec = state.specs[split_path(intent.step)[0]]
        said = spec.timeout_ms or state.plan.defaults.timeout_ms or entry.spec.timeout_ms
        self._intent = intent
        self._kit = kit
        self._ending: asyncio.Event | None = None
        self.timeout_ms = said or kit.limits.step_timeout_ms
        self.owner = state.owner
        self.workspace = state.workspace
        self.answer = state.steps[intent.step].answer

    @property
    def task_id(self) -> TaskId:
        return self._intent.task

    @property
    def step_id(self) -> StepPath:
        return self._intent.step

    @property
    def attempt(self) -> int:
        return self._intent.attempt.number

    @property
    def workdir(self) -> Path:
        return Path(self.workspace)

    @property
    def idempotency_key(self) -> str:
        return self._intent.attempt.idempotency_key

    @property
    def deadline(self) -> datetime:
        return datetime.fromtimestamp((self._intent.attempt.started_at + self.timeout_ms) / 1000, UTC)

    @property
    def cancelled(self) -> bool:
        return self._ending is not None and self._ending.is_set()

    @property
    def log(self) -> Log:
        return CallLog(self._kit.sink, self._intent)

    def now(self) -> Instant:
        return self._kit.clock.now()

    def remaining(self) -> float:
        return (self._intent.attempt.started_at + self.timeout_ms - self._kit.clock.now()) / 1000

    async def wait_cancelled(self) -> None:
        self._ending = self._ending or asyncio.Event()
        await self._ending.wait()

    def progress(self, fraction: float, text: str | None = None) -> None:
        self._kit.sink.progress(self._intent.task, self._intent.step, fraction, text)

    def end(self) -> None:
        """The call should end: timed out, cancelled, or the engine stops."""
        self._ending = self._ending or asyncio.Event()
        self._ending.set()


async def invoke(intent: Intent, state: TaskState, kit: Kit) -> Outcome:
    """Call the tool of a durable intent and say what came of it. Raises nothing but CancelledError."""
    attempt = intent.attempt
    tool = attempt.tool
    entry = kit.catalog.get(tool)
    arguments = kit.codec.fresh(attempt.input)
    assert isinstance(arguments, dict)
    call = Call(tool, arguments, attempt.effect, attempt.idempotency_key)
    ctx = CallContext(intent, entry, state, kit)
    began = kit.clock.monotonic()
    kit.fault("call.execute.before")
    try:
        result = await _outcome_of(ctx.timeout_ms / 1000, entry.adapter.execute(call, ctx), kit)
    except asyncio.CancelledError:
        ctx.end()
        raise
    kit.fault("call.execute.after")
    if not isinstance(result, Raised):
        return _result(entry, result, kit, kit.clock.monotonic() - began)
    ctx.end()
    error = result.error
    if isinstance(error, NeedsInput):
        return Asked(question=str(error), schema=error.schema, by=error.by)
    timed_out = isinstance(error, TimeIsUp)
    if timed_out:
        failure = _timeout(tool, ctx.timeout_ms)
    else:
        failure = classify(error, tool=tool, adapter_says=entry.adapter.classify(error))
    if failure.category is Category.INTERNAL:
        kit.sink.trouble("tool failed", error, task=intent.task, step=intent.step, tool=tool)
    return Failed(
        failure=failure,
        ended="timed_out" if timed_out else "failed",
        probe=await look(call, failure.effect_state, kit),
        wall_s=kit.clock.monotonic() - began,
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


def _result(entry: Entry, result: JsonValue | Deferred | Subplan, kit: Kit, wall_s: float) -> Outcome:
    """Strict JSON that fits the tool's own schema, or the tool has a bug."""
    if isinstance(result, Subplan):
        return Spawns(plan=result.plan, digest=result.digest, inputs=result.inputs, published=result.published)
    untrusted = not entry.spec.trusted_output
    value = result.output if isinstance(result, Deferred) else result
    try:
        sealed = kit.codec.seal_copy(value, untrusted=untrusted)
    except NotJson as exc:
        return Failed(failure=_invalid(entry, str(exc)), wall_s=wall_s)
    violations = entry.check_output(value) if entry.check_output is not None else ()
    if violations:
        text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in violations)
        return Failed(failure=_invalid(entry, text), wall_s=wall_s)
    if isinstance(result, Deferred):
        return Waits(until=result.until, output=sealed)
    return Succeeded(sealed, None, wall_s)


def _invalid(entry: Entry, why: str) -> Failure:
    return Failure(
        code="invalid_result",
        category=Category.INTERNAL,
        message=f"the result of '{entry.spec.name}' is not what it promises: {why}",
        what_to_do="correct the tool, then retry the step",
        effect_state=EffectState.MADE,
    )


def _timeout(tool: str, timeout_ms: Millis) -> Failure:
    return Failure(
        code="timeout",
        category=Category.TRANSIENT,
        message=f"'{tool}' did not answer within {timeout_ms / 1000:g} s",
        what_to_do="give the step a longer `timeout`, or retry it",
        effect_state=EffectState.UNKNOWN,
    )
