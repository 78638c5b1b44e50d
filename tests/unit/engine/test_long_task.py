"""A task of a thousand steps, paused and restarted again and again: it completes, and nothing of it is kept."""

import gc
from collections import Counter
from typing import Any

import pytest

from everstep import Ctx, Plan, tool
from everstep.domain.ids import Instant
from everstep.engine.commit import HeldTask
from everstep.testing import TestEngine

STEPS, PARTS, RESTARTS, PAUSES = 1_000, 4, 10, 10
CALL_S = 2


@pytest.mark.req("TR.4")
async def test_a_thousand_steps_ten_restarts_and_as_many_pauses() -> None:
    """What is left is always where the estimate says, and no step is done twice but the one that was interrupted."""
    calls: Counter[str] = Counter()
    others = held()

    @tool("long.work", effect="pure")
    async def work(*, ctx: Ctx) -> int:
        calls[ctx.step_id] += 1
        await engine.clock.sleep_until(Instant(ctx.now() + CALL_S * 1000))
        return 1

    items = [*range(STEPS // PARTS)]
    steps: list[Any] = [{"id": f"s{n}", "tool": "long.work", "for_each": items, "parallel": 1} for n in range(PARTS)]
    engine = TestEngine([work])
    async with engine:
        task = await engine.start(Plan.from_dict({"name": "long", "steps": steps}))
        share = STEPS // RESTARTS
        for number in range(RESTARTS):
            await engine.clock.advance(f"{CALL_S * share // 2}s")
            task = await engine.get(task.id)
            await task.pause("immediate" if number % 2 else "graceful")
            await engine.clock.advance("30s")
            assert (await task.refresh()).status == "paused"
            await task.resume()
            await engine.clock.advance("1s")
            await engine.crash(down="10s")
            await engine.clock.advance(f"{CALL_S * share // 2}s")
            task = await engine.get(task.id)
            left = CALL_S * (STEPS - len(calls))
            if task.estimate is not None and left > 20 * CALL_S:
                assert task.estimate.p10 is not None
                assert task.estimate.p90 is not None
                assert 0.9 * task.estimate.p10 <= left <= 1.1 * task.estimate.p90
        await engine.clock.advance(f"{CALL_S * 4 * RESTARTS}s")
        assert (await task.refresh()).status == "completed"
        assert len(calls) == STEPS
        assert calls.total() - STEPS <= RESTARTS + PAUSES
        assert [one for one in held() if one not in others] == []


def held() -> list[HeldTask]:
    """Of whatever engine was ever in this process."""
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, HeldTask)]
