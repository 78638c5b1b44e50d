"""The one call. The only `except Exception`: whatever a tool raises becomes a value here."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias, TypeVar

from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.outcome import Failed, Listens, Lost, Outcome, Probe, Spawns, Succeeded, Waits
from everstep.domain.plan import Effect, LimitsSpec
from everstep.domain.record import record
from everstep.domain.task import Intent, TaskState
from everstep.domain.values import JsonObject, JsonValue, NotJson
from everstep.engine.catalog import Entry
from everstep.engine.context import CallContext, StandStill, limits_of
from everstep.engine.kit import Kit
from everstep.engine.remedy import ask_for_less, leave_alone, renewed
from everstep.engine.secrecy import asked, judged, revealed
from everstep.ports.tool import CACHE, Call, Deferred, Listening, NeedsInput, Subplan

T = TypeVar("T")
Returned: TypeAlias = JsonValue | Deferred | Listening | Subplan
PROBE_TIMEOUT_S = 10.0
REMEDY_TIMEOUT_S = 30.0
LAPSED = Failed(
    failure=Failure(
        code="not_called",
        category=Category.TRANSIENT,
        message="the lease of this worker ran out before the call was made",
        what_to_do="nothing: whoever holds the task makes it",
        effect_state=EffectState.NONE,
    ),
    ended="abandoned",
    called=False,
)
AT_A_SAFE_POINT: Final = Lost(
    why=Failure(
        code="paused",
        category=Category.TRANSIENT,
        message="the call ended at a checkpoint because the task is to stand still",
        what_to_do="nothing: it goes on from there when the task goes on",
        effect_state=EffectState.NONE,
    ),
    safe=True,
)


def invoke(intent: Intent, state: TaskState, kit: Kit) -> Coroutine[object, object, Outcome]:
    """What comes of a durable intent: its call, or a result that was kept. Raises nothing but CancelledError."""
    entry = kit.catalog.get(intent.attempt.tool)
    arguments = kit.codec.fresh(intent.attempt.input)
    assert isinstance(arguments, dict)
    ttl_ms = entry.spec.cache_ttl_ms
    if ttl_ms is None:
        return _called(intent, entry, arguments, state, kit=kit)
    results = kit.passage.results
    key = results.key(intent, state, entry.spec, arguments)
    if entry.asks_for_new:
        arguments.pop(CACHE, None)
    make = partial(_called, intent, entry, arguments, state, kit=kit)
    if key is None:
        return make()
    return _within_limits(results.made(key, ttl_ms, kit.clock, make), intent, state)


async def _within_limits(outcome: Coroutine[object, object, Outcome], intent: Intent, state: TaskState) -> Outcome:
    """A result that another step has made may be too long for this one."""
    limits = limits_of(state, intent.step)
    return await outcome if limits is None else _bounded(await outcome, limits)


async def _called(intent: Intent, entry: Entry, arguments: JsonObject, state: TaskState, *, kit: Kit) -> Outcome:
    """Call the tool and say what came of it."""
    attempt = intent.attempt
    tool = attempt.tool
    call = Call(tool, arguments, attempt.effect, attempt.idempotency_key)
    ctx = CallContext(intent, entry, state, kit)
    if attempt.number > 1:  # a first one has nowhere to go on from
        await ctx.recall(state.steps[intent.step].settled)
    began, renewals = kit.clock.monotonic(), kit.breakers.renewals.count
    if kit.lapsed:  # the last look: somebody else may have this task by now
        return LAPSED
    kit.fault("call.execute.before")
    try:
        result = await _outcome_of(ctx.timeout_ms / 1000, _executed(entry, call, ctx, kit), kit)
    except asyncio.CancelledError:
        ctx.end()
        raise
    kit.fault("call.execute.after")
    if kit.catalog.redactor:
        ctx.flush()
    if not isinstance(result, Raised):
        outcome = _result(entry, result, kit, kit.clock.monotonic() - began)
        if ctx.limits is not None:
            outcome = _bounded(outcome, ctx.limits)
        used = ctx.used()
        if (used is not None or ctx.left_behind) and isinstance(outcome, Succeeded | Failed):
            return replace(outcome, usage=used, left=ctx.left_behind)
        return outcome
    ctx.end()
    error = result.error
    if isinstance(error, StandStill):
        return AT_A_SAFE_POINT
    if isinstance(error, NeedsInput):
        return asked(error, ctx.used(), kit.catalog.redactor)
    timed_out = isinstance(error, TimeIsUp)
    failure = _timeout(tool, ctx.timeout_ms) if timed_out else judged(error, entry, kit.catalog.redactor)
    if failure.retry_after_ms:
        await leave_alone(call, state.owner, failure.retry_after_ms, kit)
    if failure.category is Category.INTERNAL:
        kit.sink.trouble("tool failed", error, task=intent.task, step=intent.step, tool=tool)
    return Failed(
        failure=failure,
        ended="timed_out" if timed_out else "failed",
        probe=await look(call, failure.effect_state, kit),
        wall_s=kit.clock.monotonic() - began,
        renewed=await renewed(intent, state, error, partial(_safely, kit=kit), since=renewals, kit=kit),
        less=await ask_for_less(call, state, intent.step, failure, safely=partial(_safely, kit=kit), kit=kit),
        usage=ctx.used(),
        left=ctx.left_behind,
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
    output = kit.codec.seal(kit.catalog.redactor.value(seen.output), untrusted=not entry.spec.trusted_output)
    return Probe(result=seen.result, output=output if seen.result == "done" else None)


class TimeIsUp(Exception):
    """The engine's own limit; a tool's TimeoutError is the tool's."""


@record
class Raised:
    """What a tool's code raised."""

    error: Exception


def _executed(entry: Entry, call: Call, ctx: CallContext, kit: Kit) -> Coroutine[object, object, Returned]:
    """The call itself; where it names secrets, with their values."""
    return _with_secrets(entry, call, ctx, kit) if entry.secrets else entry.adapter.execute(call, ctx)


async def _with_secrets(entry: Entry, call: Call, ctx: CallContext, kit: Kit) -> Returned:
    return await entry.adapter.execute(revealed(entry, call, ctx.owner, kit.catalog.secrets), ctx)


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


async def _safely(work: Coroutine[object, object, T], what: str, *, kit: Kit) -> T | None:
    """A tool's code that is no call; None if it fails."""
    done = await _outcome_of(REMEDY_TIMEOUT_S, work, kit)
    if isinstance(done, Raised):
        kit.sink.trouble(what, done.error)
        return None
    return done


def _bounded(outcome: Outcome, limits: LimitsSpec) -> Outcome:
    """An output over the attempt's limit is not kept; the call was made all the same."""
    most = limits.output_bytes
    if most is None or not isinstance(outcome, Succeeded | Waits) or outcome.output.size_bytes <= most:
        return outcome
    used = outcome.output.size_bytes
    failure = Failure(
        code="limit_output",
        category=Category.RESOURCE,
        message=f"the output has {used} bytes, {used - most} more than the {most} that are allowed",
        what_to_do="ask for less, or raise `limits.output` of the step",
        effect_state=EffectState.MADE,
        details={"limit": "output", "used": used, "max": most},
    )
    return Failed(failure=failure)


def _result(entry: Entry, result: JsonValue | Deferred | Listening | Subplan, kit: Kit, wall_s: float) -> Outcome:
    """Strict JSON that fits the tool's own schema, or the tool has a bug."""
    if isinstance(result, Subplan):
        return Spawns(
            plan=result.plan,
            digest=result.digest,
            inputs=result.inputs,
            published=result.published,
            written=result.written,
        )
    if isinstance(result, Listening):
        return Listens(event=result.event, key=result.key, until=result.until)
    untrusted = not entry.spec.trusted_output
    value = result.output if isinstance(result, Deferred) else result
    if kit.catalog.redactor:
        value = kit.catalog.redactor.value(value)
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


def _timeout(tool: str, timeout_ms: int) -> Failure:
    return Failure(
        code="timeout",
        category=Category.TRANSIENT,
        message=f"'{tool}' did not answer within {timeout_ms / 1000:g} s",
        what_to_do="give the step a longer `timeout`, or retry it",
        effect_state=EffectState.UNKNOWN,
    )
