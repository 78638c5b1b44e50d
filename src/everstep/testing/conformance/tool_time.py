"""Calls whose time is up, and calls that go on from a checkpoint."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from everstep.domain.values import JsonValue
from everstep.testing.conformance.sample import Bench, Sample
from everstep.testing.context import Context


async def timed_out(bench: Bench) -> Sequence[str]:
    """A call whose time is up ends, and the next one works."""
    problems = []
    for sample in bench.fitting():
        call = bench.call(sample)
        for seconds in (0.001, 0.02):
            began = time.monotonic()
            try:
                async with asyncio.timeout(seconds):
                    await bench.adapter.execute(call, bench.ctx(call))
            except Exception as error:  # noqa: BLE001 -- however it ends, it has to end
                del error
            if time.monotonic() - began > bench.grace_s:
                problems.append(f"{sample.tool} goes on {bench.grace_s:g} s after its time is up")
        try:
            again = bench.call(sample)
            await bench.adapter.execute(again, bench.ctx(again))
        except Exception as error:  # noqa: BLE001 -- that is what is looked for
            problems.append(f"{sample.tool} does not work after one whose time was up: {error!r:.120}")
    return problems


class _StopHere(Exception):
    """As if the engine died after a checkpoint."""


class _Marking(Context):
    """Remembers checkpoints, and can stand still after one."""

    marks: list[JsonValue]
    stop_after: int | None

    async def checkpoint(self, cursor: JsonValue) -> None:
        """Kept; then perhaps the end."""
        await super().checkpoint(cursor)
        self.marks.append(cursor)
        if len(self.marks) == self.stop_after:
            raise _StopHere


async def checkpoints(bench: Bench) -> Sequence[str]:
    """Killed after a checkpoint, it goes on from there: what it had done is not done again."""
    problems = []
    for sample in bench.fitting():
        whole = await _marks(bench, sample, None, None)
        for number, mark in enumerate(whole[:3], start=1):
            first = await _marks(bench, sample, None, number)
            rest = await _marks(bench, sample, mark, None)
            if first != whole[:number] or rest != whole[number:]:
                problems.append(f"{sample.tool}: after {mark!r:.40} it did {rest!r:.80}, not {whole[number:]!r:.80}")
    return problems


async def _marks(bench: Bench, sample: Sample, cursor: JsonValue, stop_after: int | None) -> list[JsonValue]:
    call = bench.call(sample)
    ctx = _Marking(workdir=bench.folder, idempotency_key=call.idempotency_key, cursor=cursor)
    ctx.marks, ctx.stop_after = [], stop_after
    with suppress(_StopHere):
        await bench.adapter.execute(call, ctx)
    return ctx.marks
