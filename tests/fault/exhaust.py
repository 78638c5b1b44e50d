"""Small-scope search: every order of the store's writes in a few races, with every crash between them.

    python -m tests.fault.exhaust                     14 decisions, 2 crashes, into the results
    python -m tests.fault.exhaust takeover 0,2,1      one order again, told line by line

Two engines, a task of two steps, somebody who pauses or approves. Whoever wants to write waits at a gate; when nothing
else can move, one of those that wait is let through, or its engine dies, before the write or after it. All choices are
tried in turn, as in counting: the first so many branch, later ones are the first in line. Each order ends in peace:
everything is let through, questions are answered from what was done, and the checker judges.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from everstep import Ctx, Plan, Task, tool
from everstep.adapters.stores.memory import MemoryStore
from everstep.errors import EverstepError
from everstep.facade.views import Pause
from everstep.testing import TestEngine
from everstep.testing.timeline import journal_of
from everstep.torture.checker import Bounds, judge
from everstep.torture.history import Effect, Logs
from everstep.torture.results import Line, Results, verdict
from tests.fault.calm import CalmClock, calm, nowhere

GATED = ("open", "claim_tasks", "find_dead", "sweep", "commit_steps", "commit_commands")
DEPTH, CRASHES = 14, 2
LEVELS = ((6, 1), (10, 1), (DEPTH, CRASHES))
"""Decisions that branch, and crashes: each is searched as a whole if it has not more orders than that."""
ORDERS_MAX = 1_000
ENDED = ("completed", "failed", "cancelled")
HEAL_ROUNDS, STEPS_MAX = 60, 300
who: ContextVar[str] = ContextVar("who", default="client")


@dataclass(eq=False)
class Wish:
    """Somebody who wants to write."""

    who: str
    verb: str
    go: asyncio.Future[bool]
    """True: do it; false: do it and never hear of it."""

    @property
    def mortal(self) -> bool:
        return self.who != "client"


class Gated(MemoryStore):
    """A store before whose writes one waits."""

    def __init__(self) -> None:
        super().__init__()
        self.wishes: list[Wish] = []
        self.held = True
        for name in GATED:
            setattr(self, name, self._gated(name, getattr(self, name)))

    def _gated(self, name: str, verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def asked(*args: Any, **kwargs: Any) -> Any:
            if not self.held:
                return await verb(*args, **kwargs)
            wish = Wish(who.get(), name, asyncio.get_running_loop().create_future())
            self.wishes.append(wish)
            heard = await wish.go
            told = await verb(*args, **kwargs)
            if not heard:
                await asyncio.get_running_loop().create_future()
            return told

        return asked


@dataclass
class Tape:
    """What was chosen, and of how many."""

    given: Sequence[int]
    depth: int
    chosen: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)

    def choose(self, width: int) -> int:
        place = len(self.chosen)
        choice = self.given[place] if place < len(self.given) else 0
        self.chosen.append(choice)
        self.widths.append(width if place < self.depth else 1)
        return choice

    def following(self) -> list[int] | None:
        """The next one, as in counting; None: that was the last."""
        for place in reversed(range(len(self.chosen))):
            if self.chosen[place] + 1 < self.widths[place]:
                return [*self.chosen[:place], self.chosen[place] + 1]
        return None


class Race:
    """One order of one race."""

    def __init__(self, name: str, tape: Tape, crashes: int) -> None:
        self._race = RACES[name]
        self._tape = tape
        self._crashes = crashes
        self._clock = CalmClock()
        self._store = Gated()
        self._effects: list[Effect] = []
        self._engines: dict[str, TestEngine] = {}
        self._born = 0
        self._task: Task | None = None
        self._doing: set[asyncio.Task[None]] = set()
        self.told: list[str] = []

    async def run(self) -> list[str]:
        """What is wrong with it."""
        self._begin(self._bear())
        while self._task is None:
            await self._step()
        for act in self._race.acts:
            self._begin(act(self))
        for _ in range(STEPS_MAX):
            await calm()
            if not self._store.wishes and all(one.done() for one in self._doing):
                break
            await self._step()
        stuck = await self._peace()
        logs = Logs(effects=tuple(self._effects))
        found = judge(await journal_of(self._store), logs, Bounds(max_recoveries=1000, healed=not stuck))
        return [*stuck, *(f"{one.check} {one.seq}: {one.what}" for one in found)]

    async def _step(self) -> None:
        """Let everything move that can, then one of those that wait."""
        await calm()
        self._store.wishes = [wish for wish in self._store.wishes if not wish.go.done()]
        ways: list[tuple[str, Wish]] = [("goes", wish) for wish in self._store.wishes]
        if self._crashes and self._task is not None:
            mortal = [wish for wish in self._store.wishes if wish.mortal]
            ways += [(f"dies {when}", wish) for wish in mortal for when in ("before", "after")]
        if not ways:
            await self._clock.skip()
            return
        way, wish = ways[self._tape.choose(len(ways))]
        self.told.append(f"{wish.who} {wish.verb} {way}")
        if way == "dies before":
            await self._die(wish.who)
        else:
            wish.go.set_result(way == "goes")
            await calm()
            if way == "dies after":
                await self._die(wish.who)

    def _begin(self, work: Any) -> None:
        self._doing.add(asyncio.create_task(quietly(work)))

    async def _bear(self) -> None:
        """A new engine; whoever was there before does not know yet."""
        self._born += 1
        name = f"w{self._born}"
        who.set(name)
        config: dict[str, Any] = {"engine": {"max_recoveries": 1000}}
        engine = TestEngine(self._tools(name), seed=self._born, store=self._store, clock=self._clock, config=config)
        self._engines[name] = engine
        await engine.open()
        if self._task is None:
            who.set("client")
            self._task = await engine.start(Plan.from_dict(self._race.plan), key="one")

    async def _die(self, name: str) -> None:
        self._crashes -= 1
        engine = self._engines.pop(name, None)
        if engine is not None and engine._parts is not None:
            await engine._parts.runtime.die()
        for wish in self._store.wishes:
            if wish.who == name:
                wish.go.cancel()
        self._begin(self._bear())

    @property
    def _newest(self) -> TestEngine:
        return self._engines[max(self._engines, key=lambda name: int(name[1:]))]

    async def take_over(self) -> None:
        await self._bear()

    async def pause(self) -> None:
        assert self._task is not None
        await self._task.pause("graceful")
        await self._task.resume()

    async def halt(self) -> None:
        assert self._task is not None
        await self._task.pause("immediate")

    async def approve(self) -> None:
        while not (asked := self._newest.inbox.all):
            await self._clock.sleep_until(self._clock.now() + 1000)  # type: ignore[arg-type]
        await asked[0].approve()

    async def _peace(self) -> list[str]:
        """Everything is let through; whoever asks is answered from what was done."""
        self._store.held = False
        for wish in self._store.wishes:
            if not wish.go.done():
                wish.go.set_result(True)
        await calm()
        for name in [*self._engines]:
            engine = self._engines.pop(name)
            if engine._parts is not None:
                await engine._parts.runtime.die()
        await self._bear()
        status = ""
        for _ in range(HEAL_ROUNDS):
            await self._clock.advance("5s")
            assert self._task is not None
            status = (await self._newest.get(self._task.id)).status
            if status in ENDED:
                return []
            for pause in self._newest.inbox.all:
                await quietly(self._settle(pause))
        return [f"C14 never ends: {status}"]

    async def _settle(self, pause: Pause) -> None:
        if pause.type == "uncertainOutcome":
            made = any(effect.step == pause.step for effect in self._effects)
            await (pause.happened({"n": 1}) if made else pause.not_happened())
        elif "approve" in pause.answers:
            await pause.approve()
        elif "resume" in pause.answers:
            await pause.resume()

    def _tools(self, incarnation: str) -> list[object]:
        def made(name: str, effect: str) -> object:
            @tool(name, effect=effect)
            async def called(*, ctx: Ctx) -> dict[str, int]:
                for what in ("start", "end"):
                    said = (
                        ctx.task_id,
                        ctx.step_id,
                        ctx.attempt,
                        ctx.idempotency_key,
                        int(incarnation[1:]),
                        incarnation,
                    )
                    self._effects.append(Effect(*said, what, self._clock.now(), output={"n": 1}))
                    await asyncio.sleep(0)
                return {"n": 1}

            return called

        return [made("race.once", "once"), made("race.safe", "idempotent")]


@dataclass(frozen=True)
class Kind:
    """A plan, and what is done to it at once."""

    plan: dict[str, Any]
    acts: tuple[Callable[[Race], Awaitable[None]], ...]


def two(**first: str) -> dict[str, Any]:
    return {"name": "race", "steps": [{"id": "a", "tool": "race.safe", **first}, {"id": "b", "tool": "race.once"}]}


RACES = {
    "claim": Kind(two(), ()),
    "takeover": Kind(two(), (Race.take_over,)),
    "pause": Kind(two(), (Race.pause,)),
    "halted takeover": Kind(two(), (Race.halt, Race.take_over)),
    "approval": Kind(two(approve="Go?"), (Race.approve,)),
    "approval, pause": Kind(two(approve="Go?"), (Race.approve, Race.pause)),
}


async def quietly(work: Awaitable[None]) -> None:
    """What is refused is refused."""
    try:
        await work
    except EverstepError:
        return


def order(name: str, given: Sequence[int], depth: int, crashes: int) -> tuple[list[str], Tape, list[str]]:
    """One order: what is wrong, what was chosen, and what happened."""
    tape = Tape(given, depth)
    race = Race(name, tape, crashes)

    async def whole() -> list[str]:
        try:
            return await race.run()
        finally:
            for engine in race._engines.values():
                if engine._parts is not None:
                    await engine._parts.runtime.die()

    return asyncio.run(whole()), tape, race.told


def orders(name: str, depth: int, crashes: int) -> Iterator[tuple[list[int], list[str]]]:
    """All of them, each with what is wrong."""
    given: list[int] | None = []
    while given is not None:
        wrong, tape, _ = order(name, given, depth, crashes)
        yield tape.chosen, wrong
        given = tape.following()


def play(name: str, depth: int = DEPTH, crashes: int = CRASHES, most: int = ORDERS_MAX) -> Line:
    """A whole race, or as much of it as there is patience for."""
    wrong: list[str] = []
    number = 0
    with nowhere():
        for number, (chosen, found) in enumerate(orders(name, depth, crashes), 1):
            wrong += [f"{name} {','.join(map(str, chosen))}: {what}" for what in found[:1]]
            if number == most:
                break
    return {"verdict": verdict(wrong), "states": number, "whole": number < most, "violations": wrong[:20]}


def main(words: Sequence[str]) -> int:
    """One order, or all."""
    if words:
        wrong, _, told = order(words[0], [*map(int, words[1].split(","))], DEPTH, CRASHES)
        print(*told, *wrong, sep="\n")
        return int(bool(wrong))
    results, bad, tried = Results.of_this_commit(), 0, 0
    for (depth, crashes), name in product(LEVELS, RACES):
        line = results.once(f"exhaustive {name}, {depth}/{crashes}", 0, partial(play, name, depth, crashes))
        bad += line["verdict"] != "passed"
        tried += line["states"]
        whole = "all" if line["whole"] else "the first"
        said = f"{depth} decisions, {crashes} crashes: {line['verdict']}, {whole} {line['states']} orders"
        print(f"{name}, {said} {line['violations'][:2]}", flush=True)
    print(f"{len(RACES)} races, {tried} orders, {bad} searches with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
