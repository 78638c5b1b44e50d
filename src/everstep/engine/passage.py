"""Passage: what stands between a step and its call, for all tasks of this engine together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from everstep.domain.ids import Instant, StepPath, TaskId
from everstep.domain.rate import Rate, parse_rate
from everstep.domain.record import record
from everstep.engine.pools import Pools
from everstep.ports.tool import ToolSpec
from everstep.ports.traffic import Halt, Reservation, Traffic

USUAL_RATE = Rate(limit=5, period_ms=1000)
"""Of a provider that nobody gave a rate: never unlimited."""


@record
class RateWish:
    """A step that needs a place in a rate before it may call."""

    step: StepPath
    attempt: int
    name: str
    rate: Rate


@dataclass(slots=True, kw_only=True)
class Passage:
    """Pools, rates, and whether everything is halted."""

    traffic: Traffic
    pools: Pools = field(default_factory=lambda: Pools({}))
    rates: Mapping[str, Rate] = field(default_factory=dict)
    """By provider, as the settings say."""
    reserved: dict[tuple[TaskId, StepPath, int], Instant] = field(default_factory=dict)
    """Places in rates that were reserved and not used yet, by attempt."""
    halted: Halt | None = None
    """Everything stands still: nothing is claimed, no call begins."""

    def rate_of(self, tool: ToolSpec) -> tuple[str, Rate] | None:
        """A tool names its provider, whose rate the settings give, or a rate of its own."""
        if tool.rate is None:
            return None
        own = parse_rate(tool.rate)
        provider = tool.name if own is not None else tool.rate
        return provider, self.rates.get(provider) or own or USUAL_RATE

    async def reserve(self, task: TaskId, wishes: Sequence[RateWish], at: Instant) -> None:
        """Reserve places; the next lap finds them."""
        asked = [Reservation(name=wish.name, rate=wish.rate, at=at) for wish in wishes]
        for wish, granted in zip(wishes, await self.traffic.reserve(asked), strict=True):
            self.reserved[task, wish.step, wish.attempt] = granted
