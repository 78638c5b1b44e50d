"""Kit: the ports one engine holds. Made by bootstrap, handed down, never global."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from everstep.domain.decide import Chance
from everstep.domain.events import Actor
from everstep.domain.graph import Graph, wire_plan
from everstep.domain.ids import Digest, Instant, Millis, PauseId, StepPath, TaskId, WorkerId
from everstep.domain.limits import TaskLimits
from everstep.domain.plan import Effect
from everstep.domain.policy import USUAL_RETRY, RetryPolicy
from everstep.domain.rate import Rate, parse_rate
from everstep.domain.record import record
from everstep.domain.task import TaskState
from everstep.domain.values import Sealed
from everstep.engine.catalog import Catalog, Entry
from everstep.engine.feed import Feed
from everstep.engine.pools import Pools
from everstep.ports.clock import Clock, Pulse
from everstep.ports.codec import Codec
from everstep.ports.entropy import Entropy
from everstep.ports.fault import Fault
from everstep.ports.sink import Sink
from everstep.ports.store import Store
from everstep.ports.traffic import Halt, Traffic

GRAPHS_MAX = 512
USUAL_RATE = Rate(limit=5, period_ms=1000)
"""Of a provider that nobody gave a rate: never unlimited."""


@record
class Limits:
    """The engine's own settings, as plain values."""

    tasks: int = 64
    heartbeat_s: float = 5.0
    stale_after_ms: Millis = Millis(30_000)
    max_recoveries: int = 5
    shutdown_grace_s: float = 10.0
    cancel_grace_s: float = 5.0
    step_timeout_ms: Millis = Millis(60_000)
    items_max: int = 10_000
    live_tasks: int | None = None
    """Of one owner, if the settings say; else by who it is."""
    retry: RetryPolicy = USUAL_RETRY
    of_task: TaskLimits = TaskLimits(calls=20_000, cost=10, wall_time_ms=86_400_000, output_bytes=64 * 1024 * 1024)
    """What a task may use, unless its plan or whoever starts it says less."""


@record
class Checked:
    """A call's arguments, validated and sealed, with the effect in force."""

    input: Sealed
    effect: Effect
    entry: Entry
    gated: bool = False
    """Whether something stands before the call: a pool, a rate."""
    rate: tuple[str, Rate] | None = None
    """Its provider, and how often it may be called."""


@dataclass(slots=True, kw_only=True)
class Kit:
    """One engine's hold on the world."""

    store: Store
    traffic: Traffic
    codec: Codec
    clock: Clock
    pulse: Pulse
    entropy: Entropy
    fault: Fault
    sink: Sink
    catalog: Catalog
    feed: Feed
    worker: WorkerId
    actor: Actor
    limits: Limits
    loop: asyncio.AbstractEventLoop = field(init=False)
    """Where it lives, known once it is open. Asking Python for it costs a system call each time."""
    halted: Halt | None = None
    """Everything stands still: nothing is claimed, no call begins."""
    closing: bool = False
    """A planned stop: outcomes are still recorded, nothing new starts."""
    constants: dict[tuple[Digest, str], Checked] = field(default_factory=dict)
    """Calls whose arguments hold no binding: checked and sealed once per plan."""
    commanding: WeakValueDictionary[TaskId, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """Tasks that somebody is commanding just now."""
    pools: Pools = field(default_factory=lambda: Pools({}))
    rates: Mapping[str, Rate] = field(default_factory=dict)
    """By provider, as the settings say."""
    reserved: dict[tuple[TaskId, StepPath, int], Instant] = field(default_factory=dict)
    """Places in rates that were reserved and not used yet, by attempt."""
    _graphs: dict[Digest, Graph] = field(default_factory=dict)

    def graph(self, state: TaskState) -> Graph:
        """The wired plan of a task; equal plans are wired once."""
        found = self._graphs.get(state.plan_digest)
        if found is None:
            if len(self._graphs) >= GRAPHS_MAX:
                self._graphs.pop(next(iter(self._graphs)))
                self.constants.clear()
            found = self._graphs[state.plan_digest] = wire_plan(state.plan)
        return found

    def rate_of(self, entry: Entry) -> tuple[str, Rate] | None:
        """A tool names its provider, whose rate the settings give, or a rate of its own."""
        said = entry.spec.rate
        if said is None:
            return None
        own = parse_rate(said)
        provider = entry.spec.name if own is not None else said
        return provider, self.rates.get(provider) or own or USUAL_RATE

    def chance(self) -> Chance:
        """Draws for one decision."""
        return Chance(
            jitter=self.entropy.draw(),
            pause_id=PauseId(self.entropy.new_id("p")),
            error_id=self.entropy.new_id("e"),
        )
