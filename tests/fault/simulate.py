"""Deterministic simulation: the real engine in virtual time, on a loop whose order comes from a seed.

    python -m tests.fault.simulate                        20,000 seeds, into the results; --all: another number;
                                                          --minutes: as many of them as that allows
    python -m tests.fault.simulate --seed 4711            one seed again; if it fails, its smallest script
    python -m tests.fault.simulate --seeds 500            so many, told as one line

A seed draws a script (what somebody does, which faults come, how long things take) and the order in which the loop runs
what is ready. Faults: the engine dies and another takes over; another takes over while the first still believes it is
alive, or is frozen in the middle of something for up to three leases, so that its late writes have to be refused;
commits are refused by a failing store. In half of the seeds every
verb of the store and every call takes its time, as on a machine with too much to do. Then all faults stop, every
question is answered, and every task has to end, slow as the store may be. The checker judges journal and effects. The
store is the one of a disk, its SQL and its ledger, on a database in memory; or, as drawn, the one of dictionaries.
"""

import argparse
import asyncio
import gc
import hashlib
import json
import random
import selectors
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from everstep import Plan, Task
from everstep.errors import EverstepError
from everstep.facade.views import Pause
from everstep.testing import TestEngine
from everstep.testing.clock import VirtualClock
from everstep.testing.timeline import journal_of
from everstep.torture.checker import Bounds, judge
from everstep.torture.history import Frozen, Logs
from everstep.torture.results import Line, Results, verdict
from tests.fault.calm import INCARNATION, CalmClock, nowhere
from tests.fault.must_see import listen, told
from tests.fault.sim_world import SHAPES, World
from tests.fault.slow_store import SimStore
from tests.fault.sql_in_memory import SqlInMemory

T = TypeVar("T")

ACTS = (
    "advance",
    "advance",
    "start",
    "answer",
    "answer",
    "pause",
    "resume",
    "cancel",
    "retry",
    "crash",
    "twin",
    "refuse",
)
MOVES_TIME = ("advance", "freeze")
LENGTH_MAX = 40
DRAWN = ("plain", "busy")
"""The shapes that a seed chooses from."""
HEAL_ROUNDS = 400
SEEDS, CHUNK = 20_000, 100
ENDED = ("completed", "failed", "cancelled")
LATENCIES_MS = (0, 20, 400, 3_000)
LEASES_MS = 3 * 30_000
"""So long an engine is frozen at most."""
TASKS_MAX, PLACES = 6, 3
CALLS_MAX = TASKS_MAX * PLACES
PATIENCE = 20_000
"""Timers that may fire before somebody who asked has an answer."""
STORES: dict[str, Callable[[VirtualClock, random.Random, int], SimStore | SqlInMemory]] = {
    "dictionaries": SimStore,
    "sql": SqlInMemory,
}


class Act(NamedTuple):
    """One line of a script: after so many turns of the loop, this, with this draw."""

    turns: int
    what: str
    draw: float


@dataclass(frozen=True)
class Options:
    """What a seed draws first: how long a verb of the store takes at most, which plan the tasks have, which store,
    whether tools change from engine to engine, and whether the first of two who carry the same is frozen meanwhile.
    """

    latency_ms: int = 0
    shape: str = "plain"
    store: str = "dictionaries"
    changing: bool = False
    freezing: bool = False


QUICK = Options()


class NoWorld(selectors.SelectSelector):
    """Nothing comes from outside, so nobody asks unless there is a while to wait."""

    def select(self, timeout: float | None = None) -> list[Any]:
        return [] if timeout == 0 else super().select(timeout)


class SimLoop(asyncio.SelectorEventLoop):
    """One handle at a time, and which one is drawn."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(NoWorld())
        self._chance = chance
        self.held_back: list[Any] = []
        """Those that could run as well."""
        self.frozen: int | None = None
        """Whose work is not done."""
        self._stopped: list[Any] = []

    def thaw(self) -> None:
        """It goes on where it was, and knows nothing of the time that has passed."""
        self.frozen = None
        self._ready.extend(self._stopped)  # type: ignore[attr-defined]
        self._stopped.clear()

    def _stop(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        stopped = [one for one in ready if one._context.get(INCARNATION, 0) == self.frozen]
        for one in stopped:
            ready.remove(one)
        self._stopped += stopped

    def _run_once(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        if self.frozen is not None:
            self._stop()
        if len(ready) > 1:
            ready.rotate(-self._chance.randrange(len(ready)))
            first, *self.held_back = ready
            ready.clear()
            ready.append(first)
            super()._run_once()  # type: ignore[misc]
            ready.extendleft(reversed(self.held_back))
            self.held_back = []
        else:
            super()._run_once()  # type: ignore[misc]


class Simulation:
    """One seed."""

    def __init__(self, seed: int, script: Sequence[Act], options: Options) -> None:
        self._script = script
        self._options = options
        self._chance = random.Random(seed)
        self._clock = CalmClock()
        self._store = STORES[options.store](self._clock, self._chance, options.latency_ms)
        self._world = World(self._clock, self._chance, options.latency_ms, changing=options.changing)
        self.seen: Counter[str] = Counter()
        listen(self._store, self.seen)
        self._engines: list[TestEngine] = []
        self._tasks: list[str] = []
        self._births = 0
        self._slept: list[Frozen] = []

    async def run(self) -> list[str]:
        """The script, then healing; what the checker says."""
        await self._through(self._born())
        await self._through(self._start(0.5))
        for act in self._script:
            for _ in range(act.turns):
                await asyncio.sleep(0)
            what = "freeze" if act.what == "twin" and self._options.freezing else act.what
            work = getattr(self, f"_{what}")(act.draw)
            try:
                await (work if what in MOVES_TIME else self._through(work))  # who moves time need not be waited for
            except EverstepError:
                continue  # what is refused is refused
        stuck = await self._heal()
        self._store.hurry()
        logs = Logs(effects=tuple(self._world.effects), frozen=tuple(self._slept))
        journal = await journal_of(self._store)
        self.seen += told(journal)
        found = judge(journal, logs, Bounds(max_recoveries=1000, healed=not stuck))
        return [*stuck, *(f"{one.check} {one.task} {one.seq}: {one.what}" for one in found)]

    async def trace(self) -> str:
        """One word for everything that happened."""
        journals = (await journal_of(self._store)).events.values()
        text = "\n".join(f"{e.task} {e.seq} {e.type} {e.at}" for events in journals for e in events)
        return hashlib.sha256(text.encode()).hexdigest()

    async def _through(self, work: Coroutine[Any, Any, T]) -> T:
        """Let time pass until it is done: who asks waits for a slow store."""
        if not self._options.latency_ms:
            return await work
        doing = asyncio.ensure_future(work)
        for _ in range(PATIENCE):
            await self._clock.settle()
            if doing.done():
                return doing.result()
            await self._clock.skip()
        doing.cancel()
        raise AssertionError(f"C14 never returns: {work}")

    @property
    def _now(self) -> TestEngine:
        return self._engines[-1]

    async def _born(self) -> None:
        self._births += 1
        number = self._births
        INCARNATION.set(number)
        config: dict[str, Any] = {"engine": {"max_recoveries": 1000}, "pools": {"narrow": 2}}
        store = cast("SimStore", self._store)  # as far as a TestEngine looks, each is one
        engine = TestEngine(self._world.tools(str(number)), seed=number, store=store, clock=self._clock, config=config)
        self._engines.append(engine)
        await engine.open()

    async def _die(self, engine: TestEngine) -> None:
        assert engine._parts is not None
        await engine._parts.runtime.die()

    async def _task(self, draw: float) -> Task:
        engine, task = self._now, self._tasks[int(draw * len(self._tasks))]
        return Task(engine.desk, engine.who, await engine.desk.get(task, engine.who))

    async def _advance(self, draw: float) -> None:
        await self._clock.advance(f"{int(draw * 3000) + 1}ms")

    async def _start(self, draw: float) -> None:
        if len(self._tasks) < TASKS_MAX:
            task = await self._now.start(Plan.from_dict(SHAPES[self._options.shape]), key=f"k{len(self._tasks)}-{draw}")
            self._tasks.append(task.id)

    async def _answer(self, draw: float) -> None:
        for pause in self._now.inbox.all:
            await self._settle(pause, draw)

    async def _settle(self, pause: Pause, draw: float) -> None:
        if pause.type == "uncertainOutcome":
            key = getattr(pause.reason, "idempotency_key", "")
            made = any(effect.key == key for effect in self._world.effects)
            await (pause.happened({"n": 1}) if made else pause.not_happened())
        elif "approve" in pause.answers:
            await (pause.reject("no") if draw < 0.1 else pause.approve())
        elif "retry" in pause.answers:
            await pause.retry()
        elif "resume" in pause.answers:
            await pause.resume()

    async def _pause(self, draw: float) -> None:
        await (await self._task(draw)).pause("immediate" if draw < 0.5 else "graceful")

    async def _resume(self, draw: float) -> None:
        await (await self._task(draw)).resume()

    async def _cancel(self, draw: float) -> None:
        if draw < 0.3:
            await (await self._task(draw)).cancel()

    async def _retry(self, draw: float) -> None:
        await (await self._task(draw)).retry("d", confirm_effects=True)

    async def _crash(self, _draw: float) -> None:
        await self._die(self._engines.pop())
        for engine in self._engines:
            await self._die(engine)
        self._engines.clear()
        await self._born()

    async def _twin(self, draw: float) -> None:
        """Another takes over; the first goes on until it dies a little later."""
        if len(self._engines) < 3:
            first = self._now
            await self._born()
            for _ in range(int(draw * 60)):
                await asyncio.sleep(0)
            self._engines.remove(first)
            await self._die(first)

    async def _freeze(self, draw: float) -> None:
        """It stops wherever it is; another takes over, for a while; then it wakes, and dies a little later.

        No beat tells it here that it has slept, so it makes each call that it was about to make.
        """
        first, number, loop = self._now, self._births, asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        loop.frozen = number
        INCARNATION.set(self._births + 1)
        self.seen["frozen"] += 1
        await self._through(self._born())
        await self._clock.advance(f"{int(draw * LEASES_MS) + 1}ms")
        loop.thaw()
        self._slept += [Frozen(number, self._clock.now())] * CALLS_MAX
        for _ in range(int(draw * 60)):
            await asyncio.sleep(0)
        self._engines.remove(first)
        await self._through(self._die(first))

    async def _refuse(self, draw: float) -> None:
        self._store.fail(draw)

    async def _heal(self) -> list[str]:
        """No more faults: every question is answered, and every task comes to its end."""
        self._store.heal()
        self._world.failures = 0.0
        left: dict[str, str] = {}
        await self._through(self._crash(0.0))
        for _ in range(HEAL_ROUNDS):
            await self._clock.advance("5s")
            left = {task: status for task, status in self._store.standing().items() if status not in ENDED}
            if not left:
                return []
            for pause in self._now.inbox.all:
                try:
                    await self._through(self._settle(pause, 0.9))
                except EverstepError:
                    continue
        return [f"C14 never ends: {left}"]


def script_of(seed: int) -> list[Act]:
    """What the seed says."""
    chance = random.Random(seed)
    length = chance.randint(4, LENGTH_MAX)
    allowed = chance.sample(ACTS, chance.randint(5, len(ACTS)))
    return [Act(chance.randrange(40), chance.choice(allowed), chance.random()) for _ in range(length)]


def options_of(seed: int) -> Options:
    """What the seed says first."""
    chance = random.Random(f"options {seed}")
    slow = chance.random() < 0.5
    latency_ms, shape = chance.choice(LATENCIES_MS[1:]) if slow else 0, chance.choice(DRAWN)
    return Options(latency_ms, shape, chance.choice([*STORES]), chance.random() < 0.25, chance.random() < 0.5)


class Story(NamedTuple):
    """What is wrong, one word for everything that happened, and how often what must be seen was."""

    wrong: list[str]
    trace: str
    seen: Counter[str]


def simulate(seed: int, script: Sequence[Act], options: Options = QUICK) -> Story:
    """One story from its beginning to its end."""

    async def whole() -> Story:
        unheard: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: unheard.append(repr(said.get("exception"))))
        simulation = Simulation(seed, script, options)
        wrong = await simulation.run()
        trace = await simulation.trace()
        for engine in simulation._engines:
            await simulation._die(engine)
        gc.collect()
        return Story([*wrong, *(f"nobody heard of it: {one}" for one in unheard)], trace, simulation.seen)

    with asyncio.Runner(loop_factory=lambda: SimLoop(random.Random(seed))) as runner:
        return runner.run(whole())


def shrunk(script: list[Act], fails: Callable[[list[Act]], bool]) -> list[Act]:
    """The shortest script that still fails, by leaving lines out."""
    size = len(script) // 2
    while size:
        places = range(0, len(script), size)
        shorter = next((cut for at in places if fails(cut := script[:at] + script[at + size :])), None)
        if shorter is None:
            size //= 2
        else:
            script = shorter
    return script


def play(first: int, seeds: int) -> Line:
    """So many seeds; one in a hundred twice, to be sure that a seed is a story."""
    wrong, seen = list[str](), Counter[str]()
    with nowhere():
        for seed in range(first, first + seeds):
            story = simulate(seed, script_of(seed), options_of(seed))
            wrong += [f"seed {seed}: {what}" for what in story.wrong[:3]]
            seen += story.seen
            if seed % 100 == 0 and simulate(seed, script_of(seed), options_of(seed)).trace != story.trace:
                wrong.append(f"seed {seed}: the same seed gave another story")
    return {"verdict": verdict(wrong), "states": seeds, "violations": wrong[:20], "seen": seen}


def main() -> int:
    """One seed with its script, so many, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--all", type=int, default=SEEDS)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    if given.seed is not None:
        script, options = script_of(given.seed), options_of(given.seed)
        wrong = simulate(given.seed, script, options).wrong
        if wrong:
            script = shrunk(script, lambda shorter: bool(simulate(given.seed, shorter, options).wrong))
            wrong = simulate(given.seed, script, options).wrong
        print(options)
        print("\n".join([*(f"{act.turns:>3} {act.what} {act.draw:.3f}" for act in script), *wrong]))
        return 1 if wrong else 0
    if given.seeds is not None:
        line = play(1, given.seeds)
        print(json.dumps(line))
        return int(line["verdict"] != "passed")
    results, played, bad = Results.of_this_commit(), 0, 0
    until = time.monotonic() + 60 * given.minutes
    for first in range(1, given.all, CHUNK):
        if time.monotonic() > until:
            break
        played += CHUNK
        line = results.once("simulation", first, partial(play, first, CHUNK))
        bad += line["verdict"] != "passed"
        print(f"seeds {first} to {first + CHUNK - 1}: {line['verdict']} {line['violations'][:2]}", flush=True)
    print(f"{played} of {given.all} seeds, {bad} of {played // CHUNK} hundreds with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
