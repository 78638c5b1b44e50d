"""Passage: what stands between a step and its call, for all tasks of this engine together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from everstep.domain.ids import Instant, StepPath, TaskId, WorkerId
from everstep.domain.pressure import Load
from everstep.domain.rate import Rate, parse_rate
from everstep.domain.record import record
from everstep.engine.paces import Paces
from everstep.engine.pools import Pools
from everstep.engine.results import Results
from everstep.engine.shared import SharedPools
from everstep.engine.wellness import Wellness
from everstep.ports.news import Slots
from everstep.ports.tool import ToolSpec
from everstep.ports.traffic import Halt, Reservation, Traffic

FEWER = 4
"""While little is left, a quarter of the places is used."""
USUAL_RATE = Rate(limit=5, period_ms=1000)
"""Of a provider that nobody gave a rate: never unlimited."""


Place: TypeAlias = tuple[TaskId, StepPath, int, str]
"""Of an attempt among the calls of a provider."""


@record
class Allowance:
    """How often a provider may be called: so many in so long, and in a day."""

    provider: str
    rate: Rate | None
    quota: int | None = None
    also: "tuple[Allowance, ...]" = ()
    """Further rates that the same call counts for."""


@record
class RateWish:
    """A step that needs a place among the calls of a provider before it may call."""

    step: StepPath
    attempt: int
    owner: str
    allowance: Allowance


@dataclass(slots=True, kw_only=True)
class Passage:
    """Pools, rates, and whether everything is halted."""

    traffic: Traffic
    pools: Pools = field(default_factory=lambda: Pools({}))
    rates: Mapping[str, Rate] = field(default_factory=dict)
    """By provider, as the settings say."""
    paces: Paces = field(default_factory=Paces)
    """How much of them is in use."""
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Calls a day by provider, as the settings say."""
    reserved: dict[Place, Instant | None] = field(default_factory=dict)
    """Places that were reserved and not used yet; None: there was none left today."""
    wellness: Wellness = field(default_factory=Wellness)
    """How those are who would be called."""
    results: Results = field(default_factory=Results)
    """What pure tools have given before: where that will do, nobody is called."""
    shared: SharedPools | None = None
    """Pools of a whole fleet, where there are others."""
    halted: Halt | None = None
    """Everything stands still: nothing is claimed, no call begins."""
    load: Load = Load.EASE
    """What can be asked of the machine."""
    pressed: str | None = None
    """What too little is left of: nothing is claimed."""
    lifted_at: Instant | None = None
    """When that was over, if it was since the start."""

    async def learn_halt(self) -> None:
        """Whether everything is halted, by whomever: the store knows."""
        self.halted = await self.traffic.get_halt()

    @property
    def closed(self) -> bool:
        """Whether no task is taken up now."""
        return self.halted is not None or self.pressed is not None

    def places(self, most: int) -> int:
        """How many tasks are carried at the same time: fewer while little is left."""
        return most if self.load is Load.EASE else max(1, most // FEWER)

    def allowance(self, tool: ToolSpec, target: str, further: Sequence[tuple[str, str]] = ()) -> Allowance | None:
        """A tool names its provider, or a rate of its own; of one that names neither the settings may speak by name.

        `family.*`: every target of its calls is a provider of its own, `family.target`. What follows a space is its
        usual rate.
        """
        found = self._allowance(tool, target)
        if found is None or not further:
            return found
        return replace(found, also=tuple(self._of_family(family, one) for family, one in further))

    def _of_family(self, family: str, one: str, usual: Rate | None = None) -> Allowance:
        provider = f"{family}.{one}"
        rate = self.rates.get(provider) or self.rates.get(family) or usual or USUAL_RATE
        return Allowance(provider=provider, rate=rate, quota=self.quotas.get(provider))

    def _allowance(self, tool: ToolSpec, target: str) -> Allowance | None:
        family, star, usual = (tool.rate or "").partition(".*")
        if star:
            return self._of_family(family, target, parse_rate(usual.strip()))
        if tool.rate is None and tool.name not in self.rates and tool.name not in self.quotas:
            return None
        own = None if tool.rate is None else parse_rate(tool.rate)
        provider = tool.rate if tool.rate is not None and own is None else tool.name
        rate = self.rates.get(provider) or own or (None if tool.rate is None else USUAL_RATE)
        return Allowance(provider=provider, rate=rate, quota=self.quotas.get(provider))

    async def heed(self, owner: str, allowance: Allowance | None, until: Instant) -> None:
        """A provider has said how long it wants to be left alone: that holds for all its callers."""
        if allowance is not None and allowance.rate is not None:
            await self.traffic.push(name_of(owner, allowance), until)

    async def reserve(self, task: TaskId, wishes: Sequence[RateWish], at: Instant) -> None:
        """Reserve places; the next lap finds them. A call that counts for several rates waits for the last of them."""
        asked = [
            Reservation(name=name_of(wish.owner, one), rate=one.rate, at=at, quota=one.quota)
            for wish in wishes
            for one in (wish.allowance, *wish.allowance.also)
        ]
        granted = iter(await self.traffic.reserve(asked))
        for wish in wishes:
            allowed = (wish.allowance, *wish.allowance.also)
            places = [next(granted) for _ in allowed]
            for one, turn in zip(allowed, places, strict=True):
                self.paces.note(one.provider, one.rate, turn, at)
            turns = [place for place in places if place is not None]
            self.reserved[task, wish.step, wish.attempt, wish.allowance.provider] = (
                max(turns) if len(turns) == len(places) else None
            )

    def forget(self, task: TaskId) -> None:
        """The task is not carried here any more."""
        self.pools.leave(task)
        if self.shared is not None:
            self.shared.leave(task)
        for key in [key for key in self.reserved if key[0] == task]:
            del self.reserved[key]

    def used(self, places: Sequence[Place]) -> None:
        """What a lap did with these is durable."""
        for place in places:
            self.reserved.pop(place, None)


def name_of(owner: str, allowance: Allowance) -> str:
    """Whose calls of which provider are counted together."""
    return f"{owner}/{allowance.provider}"


def share_pools(
    passage: Passage, slots: Slots, worker: Callable[[], WorkerId], wake: Callable[[TaskId], object]
) -> None:
    """Where there are other engines, some pools are theirs too."""
    pools = passage.pools
    if pools.shared:
        passage.shared = SharedPools(slots, pools.size, worker, wake)
        pools.released = passage.shared.release
