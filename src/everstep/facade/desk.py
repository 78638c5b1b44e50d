"""Desk: every operation once, with who asks. Doors translate into these calls and back; there is no second way in."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from everstep.domain.commands import Reply
from everstep.domain.errors import Validation
from everstep.domain.events import Who
from everstep.domain.ids import TASK_ID, Digest, PauseId, Seq, TaskId
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem
from everstep.domain.states import CLAIMABLE, TERMINAL, TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, JsonValue, Sealed
from everstep.engine import control
from everstep.engine.accept import Facts, check_plan, with_defaults
from everstep.engine.catalog import Entry
from everstep.engine.runtime import Gate, Runtime, whole
from everstep.engine.submit import submit
from everstep.facade.accept import Acceptance, Wish
from everstep.facade.monitoring import Monitoring
from everstep.facade.signalling import Signalling
from everstep.facade.watching import Watching
from everstep.ports.store import Info, Journaled, KeptPause, Page, PauseFilter, TaskFilter

__all__ = ["Desk", "Wish"]

EVENTS_PAGE = 500
LIVE = frozenset(TaskStatus) - TERMINAL
STANDS: Final = frozenset({"task.completed", "task.failed", "task.cancelled", "task.paused"})
"""With one of these a walk ends: while there is one, they are still to come."""


class Desk(Signalling):
    """The operations of one engine."""

    def __init__(self, runtime: Runtime, workspace: str) -> None:
        super().__init__(runtime)
        self.troubles = runtime.troubles
        """What went wrong over all tasks, and how to reset a breaker."""
        self.monitoring = Monitoring(runtime)
        """Figures of this engine and its store."""
        self.watching = Watching(runtime.kit)
        """All tasks at once, as they change."""
        self._workspace = workspace
        self._plans = Acceptance(runtime.kit)

    # Plans and tools

    @property
    def gate(self) -> Gate:
        """Whether the engine takes work."""
        return self._runtime.gate

    @property
    def tools(self) -> Sequence[Entry]:
        """What this engine can call."""
        return self._kit.catalog.entries()

    @property
    def facts(self) -> Facts:
        """What the plan check knows of the tools."""
        return self._kit.catalog.facts

    def check(self, plan: PlanSpec, *, trusted: bool = True) -> tuple[Problem, ...]:
        """Every problem of a plan with this engine's tools."""
        return check_plan(plan, self._kit, trusted=trusted)

    # Tasks

    @whole
    async def submit(self, wish: Wish, who: Who) -> TaskState:
        """A durable task, or every reason why not."""
        self._runtime.require_ready()
        request = self._plans.accept(wish, who, self._workspace)
        done = await submit(request, self._kit, self._runtime.loop)
        if done.asked is not None:
            await self._require_same(done.task, done.asked, titled=wish.title is not None)
        if done.begun is not None:
            self._runtime.loop.adopt(done.begun.held, done.begun.intents)
        elif done.queued is not None:
            self._runtime.loop.take(done.queued)
        return done.snapshot or await control.load(done.task, who, self._kit)

    async def newest(self, plan: PlanSpec, digest: Digest, inputs: JsonObject, who: Who) -> TaskState | None:
        """The newest unfinished task of the same plan and inputs."""
        sealed = self._kit.codec.seal(with_defaults(plan, inputs))
        page = await self.list(
            TaskFilter(owner=who.owner, statuses=LIVE, plan_digest=digest, inputs_digest=sealed.digest, limit=1)
        )
        return await self.get(page.items[0].id, who) if page.items else None

    async def get(self, name: str, who: Who) -> TaskState:
        """A task by id, key, unique beginning of its id, or handle."""
        found = await self._named(name, who)
        if not found:
            raise control.no_task()
        if len(found) > 1:
            raise Validation(
                f"'{name}' begins {len(found)} task ids", what_to_do="give more characters", details={"tasks": [*found]}
            )
        return await control.load(found[0], who, self._kit)

    async def _named(self, name: str, who: Who) -> Sequence[TaskId]:
        """By id, key or beginning; by the handle of a client of the same owner."""
        if TASK_ID.fullmatch(name):  # whoever loads it sees whose it is
            return (TaskId(name),)
        if not name.startswith("mt_"):
            return await self._kit.store.find_task(who.owner, name)
        handle = await self._kit.store.handles.find(name)
        return () if handle is None or handle.owner != who.owner else (handle.task,)

    async def list(self, which: TaskFilter) -> Page:
        """Summaries, newest first."""
        return await self._kit.store.list_tasks(which)

    async def events(self, task: TaskId, after: Seq, *, follow: bool) -> AsyncIterator[Journaled]:
        """The journal from `after + 1`, then live: dense, in order, each once. Join first, then read."""
        subscription = self._kit.feed.join(task)
        last = after
        try:
            while True:
                subscription.caught_up()
                more = True
                self._kit.fault("stream.join.after")
                while more:
                    page = await self._kit.store.read_events(task, last, EVENTS_PAGE)
                    more = len(page) == EVENTS_PAGE
                    for event in page:
                        last = event.seq
                        yield event
                if not follow or (last == after and await self._gone(task)):
                    return
                while not subscription.overflowed:
                    live = await subscription.wait()
                    fresh = [event for event in live if event.seq > last]
                    if fresh and fresh[0].seq != last + 1:
                        break
                    for event in fresh:
                        last = event.seq
                        yield event
                    if subscription.closed:
                        return
        finally:
            subscription.close()

    async def value(self, sealed: Sealed) -> JsonValue:
        """A sealed value, fetched if it lives in an artifact."""
        if sealed.present:
            return sealed.value
        (value,) = await self._kit.store.get_payloads((sealed.digest,))
        return value

    async def content(self, digest: Digest) -> bytes:
        """The bytes of an artifact."""
        return await self._kit.store.read_payload(digest)

    async def first(self, task: TaskId, types: frozenset[str], after: Seq) -> Journaled | None:
        """The first event of one of these types; None if the engine stops before it comes.

        Join first, then read; of a task that this very loop carries on, no end can be read yet.
        """
        subscription = self._kit.feed.join(task, types)
        try:
            read = types <= STANDS and self._runtime.loop.carries(task)
            while not subscription.closed:
                if not read or subscription.overflowed:
                    read = True
                    subscription.caught_up()
                    async for event in self.events(task, after, follow=False):
                        if event.type in types:
                            return event
                    if await self._gone(task):
                        raise control.no_task()
                live = await subscription.wait()
                if live:
                    return live[0]
            return None
        finally:
            subscription.close()

    async def _gone(self, task: TaskId) -> bool:
        """Whether it was deleted before anybody could tell us so."""
        return not await self._kit.store.read_events(task, Seq(0), 1)

    # Commands

    @whole
    async def cancel(self, task: TaskId, who: Who, note: str | None) -> TaskState:
        """End on request."""
        self._runtime.require_ready()
        return self._told(await control.cancel(task, who, note, self._kit))

    @whole
    async def answer(self, pause: PauseId, who: Who, reply: Reply) -> TaskState:
        """Answer a pause."""
        self._runtime.require_ready()
        return self._told(await control.answer(pause, who, reply, self._kit))

    async def inbox(self, which: PauseFilter) -> Sequence[KeptPause]:
        """What waits for someone, oldest first."""
        return await self._kit.store.list_pauses(which)

    def carry(self, task: TaskId) -> None:
        """Let a foreground engine carry this task too; every operation here has told of itself."""
        self._runtime.loop.carry_too(task, told=True)

    async def idle(self) -> bool:
        """Whether nothing is walked here, and nothing can be claimed."""
        loop = self._runtime.loop
        if loop.busy:
            return False
        claimable = TaskFilter(statuses=CLAIMABLE, limit=1)
        return not (await self._kit.store.list_tasks(claimable)).items and not loop.busy

    async def info(self) -> Info:
        """The store's figures."""
        return await self._kit.store.info()
