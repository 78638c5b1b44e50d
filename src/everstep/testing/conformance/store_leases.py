"""Claims, beats and the dead: who may write a task."""

from dataclasses import replace

from everstep.domain import events as e
from everstep.domain.errors import LeaseLost, StoreRefused
from everstep.domain.events import Draft
from everstep.domain.ids import Instant, Seq
from everstep.domain.states import TaskStatus
from everstep.ports.store import Claim
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import Rig, Scene, done, raises, scene
from everstep.wire.event import decode


async def claims_go_by_priority_then_age(rig: Rig) -> None:
    async with scene(rig) as on:
        late = await on.created(at=f.later(2))
        early = await on.created(at=f.later(1))
        twin = await on.created(at=f.later(1))
        urgent = await on.created(at=f.later(9), priority=0)
        idle = await on.created(at=f.later(0), priority=3)
        assert [one.lease.task for one in await on.claim()] == [urgent, early, twin, late, idle]


async def a_claim_is_a_lease(rig: Rig) -> None:
    async with scene(rig) as on:
        task = await on.created()
        (one,) = await on.store.claim_tasks(f.claim(on.me, at=f.later(3)))
        assert (one.lease.task, one.lease.epoch, one.lease.worker, one.last_seq) == (task, 1, on.me.id, 2)
        (event,) = one.recorded
        assert (decode(one.events[0].encoded), event.actor.id, event.actor.kind) == (event, on.me.id, "system")
        assert event.body == e.TaskStarted(from_status=TaskStatus.QUEUED, worker=on.me.id, epoch=one.lease.epoch)
        state = await on.load(task)
        assert (state.status, state.worker, state.started_at) == (TaskStatus.RUNNING, on.me.id, f.later(3))


async def nobody_claims_what_is_held(rig: Rig) -> None:
    async with scene(rig) as on:
        tasks = [await on.created() for _ in range(5)]
        first = await on.store.claim_tasks(f.claim(on.me, 2))
        other = f.worker()
        second = await on.claim(by=other)
        assert [one.lease.task for one in (*first, *second)] == tasks
        assert {one.lease.worker for one in second} == {other.id}
        assert await on.claim() == []


async def a_claim_may_name_tasks_and_pass_some_over(rig: Rig) -> None:
    async with scene(rig) as on:
        tasks = [await on.created() for _ in range(4)]
        passing = Claim(worker=on.me.id, at=f.NOW, limit=2, passing_over=frozenset({tasks[0], tasks[2]}))
        assert [one.lease.task for one in await on.store.claim_tasks(passing)] == [tasks[1], tasks[3]]
        only = Claim(
            worker=on.me.id,
            at=f.NOW,
            limit=9,
            only=frozenset({tasks[0], tasks[1], f.task_id()}),
            passing_over=frozenset({tasks[2]}),
        )
        assert [one.lease.task for one in await on.store.claim_tasks(only)] == [tasks[0]]
        nothing = Claim(worker=on.me.id, at=f.NOW, limit=9, only=frozenset())
        assert await on.store.claim_tasks(nothing) == []


async def suspects_are_counted(rig: Rig) -> None:
    async with scene(rig) as on:
        tasks = [await on.created() for _ in range(3)]
        for _ in range(2):
            await on.claim(tasks[0], tasks[1])
            for task in tasks[:2]:
                done(await on.sweep(f.sweep(await on.load(task))))
        asked = Claim(worker=on.me.id, at=f.NOW, limit=9, suspect_from=2)
        assert [one.lease.task for one in await on.store.claim_tasks(asked)] == [tasks[2]]
        one_more = replace(asked, suspects=1)
        assert [one.lease.task for one in await on.store.claim_tasks(one_more)] == [tasks[0]]


async def cancelling_stays_cancelling(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        done(await on.command(f.command(state, Draft(body=e.TaskCancelling()))))
        assert await on.claim() == []
        done(await on.sweep(f.sweep(await on.load(state.id))))
        (one,) = await on.claim()
        cancelling = await on.load(state.id)
        assert (cancelling.status, cancelling.worker) == (TaskStatus.CANCELLING, on.me.id)
        (event,) = one.recorded
        assert isinstance(event.body, e.TaskStarted)
        assert event.body.from_status is TaskStatus.CANCELLING


async def ended_and_paused_tasks_are_not_claimed(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, f.finished())))
        other = await on.held()
        _, opened, told = f.paused()
        done(await on.commit(f.step_commit(other, opened, told)))
        assert await on.claim() == []


async def the_silent_are_dead_those_who_beat_are_not(rig: Rig) -> None:
    """A beat that is 120 s old is found at a threshold of 60 s, and not after another beat."""
    async with scene(rig) as on:
        other, lively = f.worker(at=f.NOW), f.worker(at=f.NOW)
        for one in (other, lively):
            await rig.register(one)
        task = await on.created()
        await on.claim(task, by=other)
        await on.claim(await on.created(), by=lively)
        on.store.beat(lively.id, f.later(200))
        now = f.later(120)
        on.store.beat(other.id, f.later(90))
        assert await on.store.find_dead(on.me.id, _before(now, 60), 10) == []
        now = f.later(210)
        (dead,) = await on.store.find_dead(on.me.id, _before(now, 60), 10)
        assert (dead.task, dead.status, dead.epoch) == (task, TaskStatus.RUNNING, 1)
        assert dead.worker is not None
        assert (dead.worker.id, dead.worker.heartbeat_at, dead.worker.released) == (other.id, f.later(90), False)
        await _fenced(on, other.id)


def _before(now: Instant, threshold_s: int) -> Instant:
    return Instant(now - threshold_s * 1000)


async def _fenced(on: Scene, worker: str) -> None:
    """Found dead is fenced: its beat comes too late."""
    for_good = f.worker()
    try:
        on.store.beat(worker, f.later(300))  # type: ignore[arg-type]
    except LeaseLost:
        pass
    else:
        raise AssertionError("a fenced worker beats on")
    try:
        on.store.beat(for_good.id, f.later(300))
    except LeaseLost:
        pass
    else:
        raise AssertionError("an unknown worker beats")


async def nobody_finds_oneself_dead(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        assert await on.store.find_dead(on.me.id, f.later(10_000), 10) == []
        on.store.beat(on.me.id, f.later(1))
        other = f.worker(at=f.later(20_000))
        await rig.register(other)
        (mine,) = await on.store.find_dead(other.id, f.later(10_000), 10)
        assert mine.task == state.id
        assert await on.store.find_dead(on.me.id, f.later(10_000), 10) == [], "fenced, but not by its own hand"


async def tasks_of_strangers_are_dead(rig: Rig) -> None:
    async with scene(rig) as on:
        tasks = [await on.created() for _ in range(3)]
        await on.claim(by=f.worker())
        dead = await on.store.find_dead(on.me.id, f.NOW, 2)
        assert [(one.task, one.worker) for one in dead] == [(tasks[0], None), (tasks[1], None)]


async def opening_again_finds_what_was_left(rig: Rig) -> None:
    """A planned stop releases its worker; its tasks are found at once, and nothing else has changed."""
    first = f.worker()
    async with scene(rig, first) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        before = await on.load(state.id)
        journal = await on.store.read_events(state.id, Seq(0), 10)
    async with scene(rig) as on:
        assert await on.load(state.id) == before
        assert await on.store.read_events(state.id, Seq(0), 10) == journal
        (dead,) = await on.store.find_dead(on.me.id, Instant(0), 10)
        assert (dead.task, dead.status) == (state.id, TaskStatus.RUNNING)
        assert dead.worker is not None
        assert (dead.worker.id, dead.worker.released) == (first.id, True)
        done(await on.sweep(f.sweep(before)))
        assert await on.store.find_dead(on.me.id, Instant(0), 10) == []


async def due_tasks_come_in_their_time(rig: Rig) -> None:
    async with scene(rig) as on:
        timed = {}
        for second in (30, 10, 20):
            state = await on.held()
            done(await on.commit(f.step_commit(state, f.waits(state, f.later(second)))))
            timed[second] = state.id
        stranger = f.worker()
        due = await on.store.due(on.me.id, f.later(20), 10)
        assert (due.tasks, due.next_at) == ((timed[10], timed[20]), f.later(30))
        assert (await on.store.due(on.me.id, f.later(20), 1)).tasks == (timed[10],)
        due = await on.store.due(on.me.id, f.later(5), 10)
        assert (due.tasks, due.next_at) == ((), f.later(10))
        nothing = await on.store.due(stranger.id, f.later(99), 10)
        assert (nothing.tasks, nothing.next_at) == ((), None)


async def tasks_are_carried_in_one_way(rig: Rig) -> None:
    async with scene(rig):
        """Who carries nothing says nothing."""
    async with scene(rig, replace(f.worker(), kind="temporal")):
        """The first who does has said how."""
    await raises(StoreRefused, rig.open(replace(f.worker(), kind="embedded")))
    for kind in ("temporal", ""):
        async with scene(rig, replace(f.worker(), kind=kind)) as on:
            assert (await on.held()).worker == on.me.id
