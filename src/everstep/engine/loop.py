"""Claim fairly, start walks, wait for a nudge.

A walk that only waits for a time leaves the loop: its task keeps the lease and takes no place among `limits.tasks`.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from everstep.domain.errors import LeaseLost, StoreError
from everstep.domain.ids import TaskId, WorkerId
from everstep.domain.task import Intent, Lease, TaskState
from everstep.engine.commit import CANNOT_BE_WRITTEN, HeldTask, break_off, is_held
from everstep.engine.errands import Errands, give_up
from everstep.engine.fresh import Fresh
from everstep.engine.kit import Kit
from everstep.engine.stall import SUSPECT, hand_back, missing_tools
from everstep.engine.suspect import Suspect
from everstep.engine.wake import Wake
from everstep.engine.walk import Walk
from everstep.ports.store import Claim, Claimed


class Loop:
    """Who carries tasks in time, in one process."""

    def __init__(self, kit: Kit, only: Iterable[TaskId] | None = None) -> None:
        self._kit = kit
        kit.carry = self.carry_too
        self._only = None if only is None else set(only)
        self._walks: dict[TaskId, Walk] = {}
        self._carriers: dict[TaskId, asyncio.Task[None]] = {}
        self._outgoing: set[asyncio.Task[None]] = set()
        """Carriers of walks that have yet to hear that their lease is no more; the task is walked again already."""
        self._dormant: dict[TaskId, Lease] = {}
        self.fresh = Fresh()
        self._passed_over: set[TaskId] = set()
        self._suspect = Suspect(kit.limits.stale_after_ms)
        self._more = True
        self._wake = Wake(kit.clock)
        self._nudged: set[TaskId] = set()
        self._adopting: dict[TaskId, bool] = {}
        """Tasks that are being created with a place here; true once somebody has sent a command."""
        self._reserved = 0
        """Places for tasks that are being claimed."""
        self.claiming = False
        """Whether there may be tasks that are ours already and not walked yet."""
        self._open = False
        self._errands = Errands(kit.sink)
        kit.passage.pools.wake = self._has_slot

    def place_for(self, task: TaskId) -> bool:
        """Whether a new task may begin at once: there is room, and nobody waits before it. Keeps the place."""
        if not self._open or self._more or self._free <= 0 or self._kit.closing or self._kit.passage.closed:
            return False
        self._adopting[task] = False
        return True

    @property
    def _free(self) -> int:
        taken = len(self._walks) + len(self._adopting) + self._reserved
        return self._kit.passage.places(self._kit.limits.tasks) - taken

    def give_back(self, task: TaskId) -> None:
        """The place is not needed after all; giving back twice is harmless."""
        if self._adopting.pop(task, None) is not None:
            self._kit.passage.forget(task)
            self._wake.call()  # somebody may have found no room because of it

    def has(self, task: TaskId) -> bool:
        """Whether it is walked here, waits here, or is being created with a place here."""
        return task in self._walks or task in self._dormant or task in self._adopting

    def _has_slot(self, task: TaskId) -> None:
        """A slot was handed over to a task that waited for it."""
        if self.has(task):
            self.nudge(task)
        else:
            self._kit.loop.call_soon(self._kit.passage.forget, task)

    def adopt(self, held: HeldTask, intents: Sequence[Intent]) -> None:
        """Walk on with a task that began in the transaction that created it."""
        told = self._adopting.pop(held.lease.task)
        self._walk(held, intents)
        if told:
            self._walks[held.lease.task].tell()

    async def left(self, task: TaskId) -> None:
        """Until the walk that let go of this task has ended."""
        carrier = self._carriers.get(task)
        while carrier is not None and self._walks[task].over:
            await asyncio.wait((carrier,))
            carrier = self._carriers.get(task)

    def go_on(self, held: HeldTask, intents: Sequence[Intent]) -> None:
        """Walk on with a task that was taken up in one transaction."""
        if held.over:
            return
        if self._only is not None:
            self._only.add(held.lease.task)
        self._walk(held, intents)

    def take(self, state: TaskState) -> None:
        """A task that was created here a moment ago: its state need not be read again."""
        if self._only is not None:
            self._only.add(state.id)
        self.fresh.keep(state)
        self._kit.pass_on(state.id)
        self.nudge()

    def carries(self, task: TaskId) -> bool:
        """Whether its end or pause is still to come: a walk that only tidies up behind itself has told of it."""
        walk = self._walks.get(task)
        return walk is not None and not walk.over

    def carry_too(self, task: TaskId, *, told: bool = False) -> None:
        """A foreground engine carries only its own tasks; this one is now one of them. `told`: who walks it knows."""
        if self._only is not None:
            self._only.add(task)
            self._kit.expect(self._kit.clock.now())
        if not (told and self.carries(task)):
            self.nudge(task)

    def nudge(self, task: TaskId | None = None) -> None:
        """Something changed: about this task, or about what can be claimed."""
        walk = None if task is None else self._walks.get(task)
        if walk is not None:
            walk.tell()
            return
        if task is not None and task in self._dormant:
            self._errands.send(self._reopen(task))
            return
        if task is not None and task in self._adopting:
            self._adopting[task] = True
            return
        if task is not None:
            self._nudged.add(task)
            self._kit.pass_on(task)
        self._more = True
        self._wake.call()

    def hear(self, task: TaskId) -> None:
        """Another engine has spoken of this task: it is looked at if it is here, else it may be claimed."""
        self.nudge(task if self.has(task) else None)

    def rouse(self, task: TaskId) -> bool:
        """What a task waited for may have come; whether it was here and waited for nothing but such things."""
        waits = task in self._dormant
        if self.has(task):
            self.nudge(task)
        return waits

    def tell_parent(self, state: TaskState) -> None:
        """A task has ended that another one waits for."""
        if state.parent is not None and state.terminal and state.parent.link == "child_of":
            self.nudge(state.parent.task)

    def look_again(self) -> None:
        """Everything was halted, or goes on: every task that is held is looked at, and what can be claimed."""
        for task in [*self._walks, *self._dormant]:
            self.nudge(task)
        self.nudge()

    def can_more(self) -> None:
        """This engine has learned something: what it had to pass over it may carry now."""
        self._passed_over.clear()
        self.nudge()

    async def carry(self) -> None:
        """Until stopped."""
        self._open = True
        while not self._kit.closing:
            self._wake.listen()
            try:
                await self._claim()
                await self._wake_dormant()
            except StoreError as error:
                self._kit.sink.trouble("cannot claim", error)
                self._kit.doubt(error.code)
                await self._kit.rest(1000)
                self._wake.call()
            await self._wake.wait()

    async def stop(self, grace_s: float) -> None:
        """Planned stop: nothing new starts, calls get their grace, the rest is let go."""
        self._kit.close()
        self._wake.call()
        for walk in self._walks.values():
            walk.tell()
        if self._carriers:
            await asyncio.wait(self._carriers.values(), timeout=grace_s)
        for walk in self._walks.values():
            walk.let_go()
        await self._errands.end(self._carriers.values())

    async def die(self) -> None:
        """Drop everything unheard; for tests of what a crash leaves."""
        for walk in self._walks.values():
            walk.let_go()
        await self._errands.end(self._carriers.values(), self._outgoing)

    async def abandon(self) -> None:
        """The lease is lost: everything is dropped unheard, because somebody else may have it by now."""
        held = [*self._walks, *self._dormant]
        await self.die()
        self._dormant.clear()
        self.fresh.forget()
        self._suspect.forget()
        self._wake.next_due = None
        for task in held:
            self._kit.passage.forget(task)
        self.nudge()

    @property
    def holder(self) -> WorkerId | None:
        """Who holds what is carried here; None: whoever carries it elsewhere."""
        return self._kit.worker

    @property
    def own(self) -> frozenset[TaskId] | None:
        """The only tasks this loop carries; None: all."""
        return None if self._only is None else frozenset(self._only)

    def walking(self) -> Mapping[TaskId, str]:
        """What is being walked, and whose it is."""
        return {task: walk.state.owner for task, walk in self._walks.items()}

    @property
    def carried(self) -> Sequence[TaskState]:
        """The tasks that are being walked, as they stand."""
        return [walk.state for walk in self._walks.values()]

    @property
    def busy(self) -> int:
        """How many tasks are being walked."""
        return len(self._walks)

    async def _claim(self) -> None:
        room = self._free
        if room <= 0 or not self._more or self._kit.closing or self._kit.passage.closed:
            return
        self._more = False
        self._nudged.clear()
        if self._kit.store.news is None:  # in a fleet claims never cease: nobody would begin where it is created
            self._reserved = room
        self.claiming, known = True, False
        try:
            await self._fill(room)
            known = True
        finally:
            self._more = self._more or not known
            self._reserved = 0
            self.claiming = False
        if not self._more:
            self.fresh.forget()
        elif self._free > 0:  # whom it claimed had to be handed back: nobody ends who would say so
            self._wake.call()

    async def _fill(self, room: int) -> None:
        now = self._kit.clock.now()
        claim = Claim(
            worker=self._kit.worker,
            at=now,
            limit=room,
            only=None if self._only is None else frozenset(self._only),
            passing_over=frozenset(self._passed_over),
            tools=None if self._kit.store.news is None else self._kit.catalog.names,
            suspect_from=SUSPECT,
            suspects=int(self._suspect.settled(self._walks, now)),
        )
        claimed = await self._kit.store.claim_tasks(claim)
        self._more = self._more or len(claimed) == room
        waiting = deque(claimed)
        try:
            await self._begin(waiting)
        finally:
            for one in waiting:
                self._errands.send(self._hand_back(one.lease))

    async def _begin(self, waiting: deque[Claimed]) -> None:
        """Each leaves the line when it is carried, or handed back."""
        states = await self.fresh.states(waiting, self._kit.store)
        while waiting:
            one = waiting[0]
            self._kit.feed.publish(one.events)
            state = states[one.lease.task]
            missing = missing_tools(state, self._kit)
            if missing:
                self._passed_over.add(state.id)
                self._kit.sink.note("task handed back: tools are missing", task=state.id, tools=[*missing])
                await hand_back(state, self._kit)
            else:
                self._wake.due_by(self._suspect.watch(state, self._kit.clock.now()))
                self._kit.figures.claimed(state)
                self._walk(HeldTask(one.lease, state))
            waiting.popleft()

    def _walk(self, held: HeldTask, intents: Sequence[Intent] | None = None) -> None:
        task = held.lease.task
        walk = Walk(held, self._kit, intents)
        before = self._carriers.get(task)
        if before is not None:
            self._walks[task].let_go()
            self._outgoing.add(before)
            before.add_done_callback(self._outgoing.discard)
        self._walks[task] = walk
        self._carriers[task] = carrier = self._kit.loop.create_task(self._carry(held, walk))
        carrier.add_done_callback(partial(self._died, held.lease))
        self._kit.stir()
        if task in self._nudged:
            walk.tell()

    async def _carry(self, held: HeldTask, walk: Walk) -> None:
        task = held.lease.task
        try:
            await walk.walk()
        except LeaseLost:
            self._forget(task, walk)
            self._kit.sink.note("lease lost", task=task)
        except StoreError as error:
            self._forget(task, walk)
            self._kit.sink.trouble("a walk stopped", error, task=task)
            self._errands.send(self._hand_back(held.lease))
        except CANNOT_BE_WRITTEN as error:
            self._forget(task, walk)
            self._kit.sink.trouble("a task is broken off", error, task=task)
            await break_off(held, str(error), self._kit)
        else:
            if held.over:
                self._forget(task, walk)
            elif not self._kit.closing and self._walks.get(task) is walk:
                self._dormant[task] = held.lease
                self._wake.due_by(walk.due_at)
        finally:
            if self._walks.get(task) is walk:
                del self._walks[task], self._carriers[task]
            self.tell_parent(held.state)
            self._kit.stir()
            let_go = walk.told or held.claimable  # a command came as it left: somebody may claim it
            if self._more or let_go or self._suspect.known:
                self._more = True
                self._wake.call()

    def _died(self, lease: Lease, carrier: asyncio.Task[None]) -> None:
        """Of a defect of ours, if of anything: somebody has to hear of it, and the task is not to stand still."""
        defect = None if carrier.cancelled() else carrier.exception()
        if defect is not None:
            self._kit.sink.trouble("a walk died", defect, task=lease.task)
            if lease.task not in self._walks:
                self._kit.passage.forget(lease.task)
            self._errands.send(self._hand_back(lease, died=True))

    def _forget(self, task: TaskId, walk: Walk) -> None:
        """It needs no place any more, unless a later walk has it."""
        if self._walks.get(task) is walk:
            self._kit.passage.forget(task)

    async def _wake_dormant(self) -> None:
        now = self._kit.clock.now()
        if self._wake.next_due is None or now < self._wake.next_due:
            return
        before, self._wake.next_due = self._wake.next_due, None  # whoever goes to rest while we ask is not forgotten
        if self._kit.passage.halted is not None:  # when that is over, everything is looked at
            return
        try:
            due = await self._kit.store.due(self._kit.worker, now, self._kit.limits.tasks)
        except StoreError:
            self._wake.due_by(before)
            raise
        self._wake.due_by(due.next_at)
        self._more = self._more or self._suspect.known
        for task in due.tasks:
            if task in self._dormant:
                await self._reopen(task)

    async def _reopen(self, task: TaskId) -> None:
        """Walk on with a task that waited; we still hold it. Told at once: a command may have come meanwhile."""
        lease = self._dormant.pop(task, None)
        if lease is None:  # somebody was faster
            return
        try:
            (state,) = await self._kit.store.load_tasks((task,))
        except StoreError as error:
            self._kit.sink.trouble("a task cannot be read", error, task=task)
            self._errands.send(self._hand_back(lease))
            return
        if is_held(state, lease):
            self._walk(HeldTask(lease, state))
            self._walks[task].tell()
        else:
            self._kit.passage.forget(task)

    async def _hand_back(self, lease: Lease, *, died: bool = False) -> None:
        """Its walk could not go on, and it is still ours: as soon as the store lets us, it can be claimed again."""
        await give_up(lease, self._kit, self.has, died=died)
        self.nudge()
