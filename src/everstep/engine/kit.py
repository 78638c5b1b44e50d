"""Kit: the ports one engine holds. Made by bootstrap, handed down, never global."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from everstep.domain.events import Actor, Draft, PauseOpened, Promise
from everstep.domain.expiry import patience_with, timed
from everstep.domain.graph import Graph, grown, wire_plan
from everstep.domain.ids import Digest, Instant, TaskId, WorkerId
from everstep.domain.task import FINALLY_MS, TaskState, finally_until
from everstep.engine.bounds import Limits
from everstep.engine.breakers import Breakers
from everstep.engine.catalog import Catalog, Checked
from everstep.engine.feed import Feed
from everstep.engine.figures import Figures
from everstep.engine.passage import Passage
from everstep.ports.clock import Clock, Pulse
from everstep.ports.codec import Codec
from everstep.ports.entropy import Entropy
from everstep.ports.fault import Fault
from everstep.ports.script import Script
from everstep.ports.sink import Sink
from everstep.ports.store import Store

GRAPHS_MAX = 512
AGAIN_MS = 1000


@dataclass(slots=True, kw_only=True)
class Kit:
    """One engine's hold on the world."""

    store: Store
    passage: Passage
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
    breakers: Breakers
    home: str = ""
    """The folder of the store: what a task says of its workspace counts from here, so both can be moved together."""
    figures: Figures = field(default_factory=Figures)
    loop: asyncio.AbstractEventLoop = field(init=False)
    """Where it lives, known once it is open. Asking Python for it costs a system call each time."""
    carry: Callable[[TaskId], None] = field(init=False)
    """Tell whoever carries tasks here of one that is to be carried, or looked at again. Known with the loop."""
    stir: Callable[[], None] = field(init=False)
    """Tell whoever keeps history that something may have ended. Known with the runtime."""
    doubt: Callable[[str], None] = lambda _code: None
    """Say that nobody knows whether a write was made, by the code of its error. Known with the runtime."""
    kept: int = 0
    """How often history has grown: who remembers it looks again."""
    unwell: dict[str, str] = field(default_factory=dict)
    """What this engine cannot look after at present, and why: its health says so."""
    broken: set[TaskId] = field(default_factory=set)
    """Interrupted tasks that the last scan could not take up."""
    promised: dict[TaskId, Promise] = field(default_factory=dict)
    """What was said that tasks carried here would take."""
    see: Callable[[TaskState], None] = lambda _state: None
    """Keep a task as it stands for whoever claims it next. Known with the loop, if it claims."""
    closing: bool = False
    """A planned stop: outcomes are still recorded, nothing new starts."""
    constants: dict[tuple[Digest, str], Checked] = field(default_factory=dict)
    """Calls whose arguments hold no binding: checked and sealed once per plan."""
    alarm: Callable[[Instant], None] | None = None
    """Who must know when a pause runs out."""
    lease_until: float | None = None
    """Until when this worker may begin calls, by the boot clock; None: its lease does not run out."""
    commanding: WeakValueDictionary[TaskId, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """Tasks that somebody is commanding just now."""
    scripts: dict[str, Script] = field(default_factory=dict)
    """Durable functions that can be performed here, by name."""
    _rests: set[asyncio.Future[None]] = field(default_factory=set)
    _graphs: dict[Digest, Graph] = field(default_factory=dict)
    _grown: dict[TaskId, Graph] = field(default_factory=dict)

    def close(self) -> None:
        """A planned stop begins, and nobody is waited for who only rests before trying again."""
        self.closing = True
        for rest in self._rests:
            _end(rest)

    async def rest(self, ms: int) -> None:
        """A while before something is tried again; a stop ends it."""
        if self.closing:
            return
        rest: asyncio.Future[None] = self.loop.create_future()
        self._rests.add(rest)
        timer = self.clock.call_later(ms / 1000, partial(_end, rest))
        try:
            await rest
        finally:
            timer.cancel()
            self._rests.discard(rest)

    async def keep(self, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
        """Do this as long as the engine lives: if it dies of a defect, somebody hears of it, and it begins again."""
        while not self.closing:
            # Whoever cancels this hears of it; what the work ends with, be it a cancellation, is its own.
            defect: object = (await asyncio.gather(work(), return_exceptions=True))[0]
            if not isinstance(defect, BaseException):
                break
            self.sink.trouble(f"{what} died of a defect and begins again", defect)
            await self.rest(AGAIN_MS)

    def graph(self, state: TaskState) -> Graph:
        """The wired plan of a task; equal plans are wired once, and those that grow as they grow."""
        if state.plan.durable is not None:
            if len(self._grown) >= GRAPHS_MAX:
                self._grown.clear()
            graph = self._grown[state.id] = grown(self._grown.get(state.id), state.plan)
            return graph
        found = self._graphs.get(state.plan_digest)
        if found is None:
            if len(self._graphs) >= GRAPHS_MAX:
                self._graphs.pop(next(iter(self._graphs)))
                self.constants.clear()
            found = self._graphs[state.plan_digest] = wire_plan(state.plan)
        return found

    def timed(self, draft: Draft, state: TaskState, at: Instant) -> Draft:
        """The same draft; a pause that it opens runs out if the task says so, or a person asked for it."""
        if not isinstance(draft.body, PauseOpened):
            return draft
        patience = patience_with(draft.body.pause, state, self.limits.patience)
        if patience is not None:
            self.expect(patience.warns_at(at))
        return timed(draft, patience, at)

    def expect(self, due: Instant | None) -> None:
        """There will be something to do about a pause then."""
        if due is not None and self.alarm is not None:
            self.alarm(due)

    def pass_on(self, task: TaskId) -> None:
        """This task is not here: other engines, if there are any, may have it or want it."""
        news = self.store.news
        if news is not None:
            news.tell(task)

    @property
    def lapsed(self) -> bool:
        """Whether somebody else may hold by now what this worker holds."""
        return self.lease_until is not None and self.clock.monotonic() > self.lease_until

    def finals_until(self, state: TaskState) -> Instant | None:
        """When a task that is being cancelled gives its `finally` steps up; a halt does not use up their time."""
        until, lifted = finally_until(state), self.passage.lifted_at
        if until is None or state.hurried:
            return until
        if self.passage.halted is not None:
            return Instant(self.clock.now() + FINALLY_MS)
        return until if lifted is None else max(until, Instant(lifted + FINALLY_MS))


def _end(rest: asyncio.Future[None]) -> None:
    if not rest.done():
        rest.set_result(None)
