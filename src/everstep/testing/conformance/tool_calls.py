"""What an adapter does, tried with its samples."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import psutil

from everstep.domain.failure import EffectState
from everstep.domain.plan import Effect
from everstep.domain.raised import failure_of
from everstep.domain.values import JsonObject, JsonValue, NotJson
from everstep.ports.tool import Call, Deferred, Listening, Subplan, Undoer
from everstep.testing.conformance.sample import Bench, Sample, below

QUICK_S: Final = 0.01
GRACE_S: Final = 5.0
SLOW_S: Final = 0.05
"""A call that takes longer is made fewer times."""


# --- answers that need no call ---


async def validate(bench: Bench) -> Sequence[str]:
    """The same answer twice, and nothing opened meanwhile."""
    problems = []
    for sample in bench.samples:
        call = bench.call(sample)
        with watched() as seen:
            first, again = bench.adapter.validate(call), bench.adapter.validate(call)
        if [*first] != [*again]:
            problems.append(f"{sample.tool}: validate says something else when asked again")
        problems += [f"{sample.tool}: validate did '{event}'" for event in seen]
    return problems


async def estimate(bench: Bench) -> Sequence[str]:
    """A guess that rises, or none; at once."""
    problems = []
    for sample in bench.fitting():
        call = bench.call(sample)
        bench.adapter.estimate(call)
        began = time.thread_time()
        prior = bench.adapter.estimate(call)
        if (took := time.thread_time() - began) > QUICK_S:
            problems.append(f"{sample.tool}: estimate took {took * 1000:.0f} ms")
        if prior is not None and not 0 <= prior.p10_s <= prior.p50_s <= prior.p90_s:
            problems.append(f"{sample.tool}: {prior} does not rise from zero")
    return problems


async def degrade(bench: Bench) -> Sequence[str]:
    """Two rungs at most, each a call that fits, none the same as before."""
    cause = failure_of("limit_memory", "")
    problems = []
    for sample in bench.fitting():
        call = bench.call(sample)
        for level in (1, 2):
            less = bench.adapter.degrade(call, level, cause)
            if less is None:
                break
            if less.arguments == call.arguments:
                problems.append(f"{sample.tool}: level {level} asks for the same")
            problems += [f"{sample.tool}: level {level}: {text}" for text in _misfits(bench, less)]
            call = less
    return problems


# --- calls ---


async def refusals(bench: Bench) -> Sequence[str]:
    """A call that does not fit is refused, and changed nothing."""
    problems = []
    for sample in bench.samples:
        call, before = bench.call(sample), bench.tree()
        if sample.fits:
            problems += [f"{sample.tool} refuses its own sample: {text}" for text in _misfits(bench, call)]
            continue
        if _misfits(bench, call):
            continue
        try:
            await bench.adapter.execute(call, bench.ctx(call))
        except Exception as error:  # noqa: BLE001 -- that is what is looked for
            if getattr(error, "effect_state", EffectState.NONE) is not EffectState.NONE:
                problems.append(f"{sample.tool} refused {sample.arguments!r:.60} after it may have acted")
        else:
            problems.append(f"{sample.tool} took {sample.arguments!r:.60}")
        if bench.tree() != before:
            problems.append(f"{sample.tool} changed files for {sample.arguments!r:.60}")
    return problems


async def outputs(bench: Bench) -> Sequence[str]:
    """Strict JSON that fits the tool's own schema."""
    problems = []
    for sample in bench.fitting():
        try:
            output = await _made(bench, sample)
        except Exception as error:  # noqa: BLE001 -- that is what is looked for
            problems.append(f"{sample.tool} failed on its own sample: {error!r:.200}")
            continue
        try:
            bench.codec.seal(output)
        except NotJson as error:
            problems.append(f"{sample.tool}: {error}")
            continue
        schema = bench.specs()[sample.tool].output_schema
        misfits = () if schema is None or output is None else bench.codec.validator(schema)(output)
        problems += [f"{sample.tool}: {pointer or '/'} {text}" for pointer, text in misfits]
    return problems


async def cancelled(bench: Bench) -> Sequence[str]:
    """A cancelled call ends in time and leaves no process."""
    problems = []
    before = below(bench.strangers)
    for sample in bench.fitting():
        for after in (0.0, 0.005):
            running = asyncio.ensure_future(_made(bench, sample))
            await asyncio.sleep(after)
            running.cancel()
            done, _ = await asyncio.wait([running], timeout=GRACE_S)
            if not done:
                problems.append(f"{sample.tool} goes on {GRACE_S:g} s after it was cancelled")
            elif not running.cancelled():
                running.exception()
    return [*problems, *await _left(bench, before)]


async def repeats(bench: Bench) -> Sequence[str]:
    """`pure` leaves no trace; `idempotent` twice with one key is as once."""
    problems = []
    for sample in bench.fitting():
        call = bench.call(sample)
        before = bench.tree()
        try:
            await bench.adapter.execute(call, bench.ctx(call))
            once = bench.tree()
            if call.effect is Effect.PURE and once != before:
                problems.append(f"{sample.tool} is 'pure' and changed files")
            if call.effect is Effect.IDEMPOTENT:
                await bench.adapter.execute(call, bench.ctx(call))
                if bench.tree() != once:
                    problems.append(f"{sample.tool} is 'idempotent', and the same call again changed files")
        except Exception as error:  # noqa: BLE001 -- that is what is looked for
            problems.append(f"{sample.tool}: {error!r:.200}")
    return problems


async def undo(bench: Bench) -> Sequence[str]:
    """What is undoable is as before."""
    problems = []
    for sample in bench.fitting():
        if not bench.specs()[sample.tool].undoable:
            continue
        assert isinstance(bench.adapter, Undoer)
        call, before = bench.call(sample), bench.tree()
        output = await bench.adapter.execute(call, bench.ctx(call))
        assert not isinstance(output, Deferred | Listening | Subplan)
        try:
            await bench.adapter.undo(call, output, bench.ctx(call))
        except Exception as error:  # noqa: BLE001 -- that is what is looked for
            problems.append(f"{sample.tool} could not take its sample back: {error!r:.200}")
            continue
        if bench.tree() != before:
            problems.append(f"{sample.tool} took its sample back, and the folder is not as before")
    return problems


async def at_once(bench: Bench) -> Sequence[str]:
    """Twenty calls at the same time do not disturb each other."""
    problems = []
    for sample in bench.fitting():
        if bench.specs()[sample.tool].effect is not Effect.PURE:
            continue
        calls = [_made(bench, sample) for _ in range(2 if bench.brief else 20)]
        ends = await asyncio.gather(*calls, return_exceptions=True)
        problems += [f"{sample.tool}: {end!r:.120}" for end in ends if isinstance(end, BaseException)][:3]
    return problems


async def flat(bench: Bench) -> Sequence[str]:
    """After many calls as many handles, threads and children as after a few."""
    here, problems = psutil.Process(), []
    for sample in bench.fitting():
        began = time.perf_counter()
        await asyncio.gather(*(_quietly(bench, sample) for _ in range(3)))
        rounds = 100 if (time.perf_counter() - began) / 3 < SLOW_S else 10
        rounds = 2 if bench.brief else rounds
        before = (here.num_fds(), threading.active_count(), len(here.children()))
        for _ in range(rounds):
            await _quietly(bench, sample)
        after = (here.num_fds(), threading.active_count(), len(here.children()))
        if any(now > then + 2 for now, then in zip(after, before, strict=True)):
            problems.append(f"{sample.tool}: handles, threads, children {before} -> {after} after {rounds} calls")
    return problems


async def nonsense(bench: Bench) -> Sequence[str]:
    """What is no JSON never reaches a call."""
    problems = []
    for bad in (float("nan"), float("inf"), "\ud800", 2**60, _deep(1_000)):
        for sample in bench.fitting():
            arguments: JsonObject = dict.fromkeys(sample.arguments or {"x": None}, bad)
            try:
                bench.codec.seal(arguments)
            except NotJson:
                continue
            problems.append(f"{sample.tool}: {bad!r:.40} passed")
    return problems


# --- parts ---


async def _made(bench: Bench, sample: Sample) -> JsonValue:
    call = bench.call(sample)
    result = await bench.adapter.execute(call, bench.ctx(call))
    if isinstance(result, Listening | Subplan):
        return None
    return result.output if isinstance(result, Deferred) else result


async def _quietly(bench: Bench, sample: Sample) -> None:
    with suppress(Exception):  # only what is left open counts here
        await _made(bench, sample)


def _misfits(bench: Bench, call: Call) -> list[str]:
    schema = bench.specs()[call.tool].input_schema
    problems = bench.codec.validator(schema)(call.arguments) or bench.adapter.validate(call)
    return [f"{pointer or '/'} {text}" for pointer, text in problems]


def _deep(levels: int) -> JsonValue:
    value: JsonValue = 0
    for _ in range(levels):
        value = [value]
    return value


async def _left(bench: Bench, before: set[int]) -> list[str]:
    until = time.monotonic() + 2.0
    while (left := below(bench.strangers) - before) and time.monotonic() < until:  # noqa: ASYNC110 -- a process says nothing when it ends
        await asyncio.sleep(0.02)
    return [f"a process is left: {pid}" for pid in sorted(left)]


# --- an audit hook cannot be taken away again: one, and whoever watches ---

_WORLDLY: Final = ("open", "socket.", "subprocess.", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename")
_watchers: list[list[str]] = []


def _hook(event: str, _args: object) -> None:
    if _watchers and threading.current_thread() is threading.main_thread() and event.startswith(_WORLDLY):
        for seen in _watchers:
            seen.append(event)


_hooked: list[bool] = []


@contextmanager
def watched() -> Iterator[list[str]]:
    """What the code inside asks of the world."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_hook)
    seen: list[str] = []
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)
