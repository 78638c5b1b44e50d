"""An adapter in an engine. Its tools run under other names, so that built-in families can be tried beside themselves.

What is the engine's own business (permissions, approvals, rates, pools) is left out.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from everstep.authoring.plan import Plan
from everstep.domain.values import JsonValue
from everstep.facade.views import Result
from everstep.ports.adapter import Completed
from everstep.ports.tool import Call, Ctx, Deferred, Listening, Subplan, ToolAdapter, ToolSpec
from everstep.testing.conformance.sample import Bench, Sample
from everstep.testing.crashing import Boundary
from everstep.testing.engine import TestEngine

PREFIX: Final = "tried."
_OF_A_CALL: Final = ("validate", "estimate", "probe", "effect_of", "target", "counts", "scruple", "degrade")


class Tried(Completed):
    """An adapter under other names; counts calls, and can be killed inside one after its effect."""

    def __init__(self, adapter: ToolAdapter, boundary: Boundary | None = None, calls: list[str] | None = None) -> None:
        super().__init__(adapter)
        self._boundary = boundary
        self._under_way = 0
        self.calls: list[str] = [] if calls is None else calls
        for name in _OF_A_CALL:
            setattr(self, name, _under_its_name(getattr(self, name)))

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._under_way > 0

    def at(self, boundary: Boundary) -> "Tried":
        """The same, where a call can be cut off."""
        return Tried(self._adapter, boundary, self.calls)

    def tools(self) -> Sequence[ToolSpec]:
        """As they are, but for what the engine would ask first."""
        return tuple(
            replace(spec, name=PREFIX + spec.name, approve=False, rate=None, pool=None, permissions=())
            for spec in super().tools()
        )

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue | Deferred | Listening | Subplan:
        """Made; then perhaps never heard of again."""
        self.calls.append(call.idempotency_key)
        self._under_way += 1
        try:
            output = await super().execute(_own(call), ctx)
        finally:
            self._under_way -= 1
        if self._boundary is not None:
            await self._boundary(f"inside the call of {call.tool}, after its effect")
        return output

    async def close(self) -> None:
        """It is needed again."""


def _own(call: Call) -> Call:
    return Call(call.tool.removeprefix(PREFIX), call.arguments, call.effect, call.idempotency_key)


def _under_its_name(method: Callable[..., Any]) -> Callable[..., Any]:
    def asked(call: Call, *more: object) -> object:
        less = method(_own(call), *more)
        return replace(less, tool=PREFIX + less.tool) if isinstance(less, Call) else less

    return asked


def plan_of(sample: Sample, limits: Mapping[str, str] | None = None) -> Plan:
    plan = Plan("trial")
    plan.step("call", PREFIX + sample.tool, sample.arguments, retry=0, timeout="1h", limits=limits)
    return plan


def engine_of(bench: Bench, tried: Tried) -> TestEngine:
    return TestEngine([tried], seed=bench.seed(), workspace=bench.folder, secrets=dict(bench.secrets))


async def ended(engine: TestEngine, tried: Tried, plan: Plan) -> Result:
    """Time passes only between calls."""
    task = await engine.start(plan)
    ending = asyncio.ensure_future(task.result(on_pause="return"))
    while not (await asyncio.wait((ending,), timeout=0.02))[0]:
        if not tried.busy:
            await engine.clock.skip()
    return await ending
