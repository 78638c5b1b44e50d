"""Two hundred ordinary plans in a world where one call in twenty fails for a while: how many need somebody?"""

import math
import random
from typing import Any, Final

import pytest

from everstep import Ctx, Plan, Transient, Uncertain, tool
from everstep.testing.engine import TestEngine

PLANS: Final = 200
FAULTS: Final = 0.05
CUT_OFF: Final = 0.25
"""Of the failed calls so many leave open whether they acted: the line went dead instead of refusing."""
FLOOR: Final = 0.95

BRIEF: Final[dict[str, Any]] = {
    "name": "brief",
    "steps": [
        {"id": "hits", "tool": "std.look", "with": {"size": 6}},
        {"id": "pages", "for_each": "${hits.items}", "parallel": 3, "tool": "std.look", "with": {"size": 1}},
        {"id": "draft", "tool": "std.look", "with": {"size": "${len(pages)}"}},
        {"id": "save", "tool": "std.save", "with": {"size": 1}},
        {"id": "send", "tool": "std.send", "with": {"size": 1}},
    ],
    "outputs": {"pages": "${len(pages)}", "sent": "${send.items}"},
}
RELEASE: Final[dict[str, Any]] = {
    "name": "release",
    "parallel": 2,
    "steps": [
        {"id": "build", "tool": "std.save", "with": {"size": 2}},
        {"id": "unit", "tool": "std.look", "with": {"size": 1}, "needs": ["build"]},
        {"id": "e2e", "tool": "std.look", "with": {"size": 1}, "needs": ["build"]},
        {"id": "tag", "tool": "std.send", "with": {"size": 1}, "needs": ["unit", "e2e"]},
        {"id": "publish", "tool": "std.push", "with": {"size": 1}},
        {"id": "announce", "tool": "std.look", "with": {"size": 1}, "on_error": "continue"},
    ],
    "finally": [{"id": "tidy", "tool": "std.save", "with": {"size": 1}}],
}
INCIDENT: Final[dict[str, Any]] = {
    "name": "incident",
    "steps": [
        {"id": "alerts", "tool": "std.look", "with": {"size": 3}},
        {"id": "logs", "for_each": "${alerts.items}", "tool": "std.look", "with": {"size": 1}, "on_error": "continue"},
        {"id": "restart", "when": "${len(alerts.items) > 2}", "tool": "std.save", "with": {"size": 1}},
        {"id": "report", "tool": "std.send", "with": {"size": 1}, "needs": ["logs"]},
    ],
}


class FlakyWorld:
    """Tools of the three usual kinds; chance comes from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._sent: set[str] = set()

    def tools(self) -> list[Any]:
        @tool.pure("std.look")
        async def look(size: int) -> dict[str, Any]:
            return self._answer(size)

        @tool.idempotent("std.save")
        async def save(size: int) -> dict[str, Any]:
            return self._answer(size)

        @tool("std.send", effect="verifiable", probe=lambda call: self._seen(call.idempotency_key))
        async def send(size: int, *, ctx: Ctx) -> dict[str, Any]:
            answer = self._answer(size)
            self._sent.add(ctx.idempotency_key)
            return answer

        @tool("std.push")
        async def push(size: int) -> dict[str, Any]:
            return self._answer(size)

        return [look, save, send, push]

    def _answer(self, size: int) -> dict[str, Any]:
        if self._random.random() < FAULTS:
            raise (Uncertain if self._random.random() < CUT_OFF else Transient)("not now")
        return {"items": list(range(size))}

    def _seen(self, key: str) -> Any:
        return ("done", {"items": [0]}) if key in self._sent else "not_done"


def wilson(successes: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    z, share = 1.96, successes / of
    middle = share + z * z / (2 * of)
    spread = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    return (middle - spread) / scale, (middle + spread) / scale


@pytest.mark.req("DoD.2")
async def test_ordinary_plans_get_through_a_world_with_faults(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = [Plan.from_dict(plan) for plan in (BRIEF, RELEASE, INCIDENT)]
    async with TestEngine(FlakyWorld(seed=7).tools()) as engine:
        tasks = [await engine.start(kinds[number % len(kinds)]) for number in range(PLANS)]
        await engine.clock.advance("5m")
        ends = [(await task.refresh()).status for task in tasks]
    alone = ends.count("completed")
    low, high = wilson(alone, PLANS)
    with capsys.disabled():
        print(f"\n{alone} of {PLANS} plans completed without help: {alone / PLANS:.1%} ({low:.1%} to {high:.1%})")
    assert set(ends) <= {"completed", "paused"}, "a fault that passes is no reason to fail"
    assert alone / PLANS > FLOOR
