"""What all tasks share: the queue, the bound of live tasks, words about a task, rates, and the halt."""

from dataclasses import replace
from typing import cast

from everstep.domain.errors import LimitExceeded
from everstep.domain.events import Draft, TaskCancelled, TaskUpdated
from everstep.domain.ids import TaskId
from everstep.domain.pauses import PauseType
from everstep.domain.rate import Rate
from everstep.domain.states import TaskStatus
from everstep.ports.store import Created, TaskFilter
from everstep.ports.traffic import Halt, Reservation, Traffic, Waiting
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import Rig, Scene, done, raises, refused, scene

HALT = Halt(mode="graceful", by="ana", at=f.NOW, note="fire drill")


def traffic(on: Scene) -> Traffic:
    """The same store, asked about what tasks share."""
    return cast("Traffic", on.store)


async def few(on: Scene, owner: str = "local") -> TaskId:
    """A task of an owner who may have three."""
    new = replace(f.new_task(owner=owner), live_max=3)
    await on.store.create_tasks((new,))
    return new.id


async def waiting_makes_up_for_priority(rig: Rig) -> None:
    """Five minutes per step of priority: then even the least urgent goes before what comes later."""
    async with scene(rig) as on:
        old = await on.created(priority=3, at=f.NOW)
        urgent = await on.created(priority=0, at=f.later(14 * 60))
        late = await on.created(priority=0, at=f.later(16 * 60))
        usual = await on.created(priority=1, at=f.later(9 * 60))
        order = [urgent, usual, old, late]
        assert [await traffic(on).place_of(task) for task in order] == [1, 2, 3, 4]
        assert [one.lease.task for one in await on.claim()] == order
        assert await traffic(on).place_of(old) is None, "it does not wait any more"


async def who_waits_is_counted(rig: Rig) -> None:
    async with scene(rig) as on:
        traffic = cast("Traffic", on.store)
        assert await traffic.waiting() == Waiting(tasks=0, since=None)
        await on.created(at=f.later(5))
        await on.created(at=f.later(2))
        assert await traffic.waiting() == Waiting(tasks=2, since=f.later(2))
        await on.claim()
        assert (await traffic.waiting()).tasks == 0


async def live_tasks_are_bounded(rig: Rig) -> None:
    async with scene(rig) as on:
        first, *_ = [await few(on) for _ in range(3)]
        error = await raises(LimitExceeded, few(on))
        assert (error.code, error.details) == ("too_many_tasks", {"limit": 3})
        await few(on, owner="ana")
        state = await on.load(first)
        done(
            await on.command(
                f.command(state, Draft(body=TaskCancelled(reason="requested", skipped=tuple(state.steps))))
            )
        )
        await few(on)
        await raises(LimitExceeded, few(on))
        again = f.new_task(key="k", owner="ben")
        for new in (True, False):
            (answer,) = await on.store.create_tasks((again,))
            assert isinstance(answer, Created)
            assert answer.new is new, "the same task again is no new one"


async def words_follow_the_journal(rig: Rig) -> None:
    """Title, labels and priority of the row are those of the last event that says so; lists go by them."""
    async with scene(rig) as on:
        state, other = await on.held(), await on.created()
        body = TaskUpdated(changes={"title": "Another", "labels": {"team": "blue"}, "priority": 3})
        done(await on.command(f.command(state, Draft(body=body))))
        loaded = await on.load(state.id)
        assert (loaded.title, loaded.labels, loaded.priority) == ("Another", {"team": "blue"}, 3)
        done(await on.command(f.command(loaded, Draft(body=TaskUpdated(changes={"priority": 0})))))
        (item,) = (await on.store.list_tasks(TaskFilter(label=("team", "blue")))).items
        assert (item.id, item.title, item.priority) == (state.id, "Another", 0)
        assert (await on.store.list_tasks(TaskFilter(label=("team", "red")))).items == ()
        by_tool = [item.id for item in (await on.store.list_tasks(TaskFilter(tool="echo"))).items]
        assert sorted(by_tool) == sorted([state.id, other])
        assert (await on.store.list_tasks(TaskFilter(tool="other"))).items == ()


async def lists_go_by_open_pauses(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.load(await on.created())
        await on.created()
        pause, *drafts = f.paused()
        done(await on.command(f.command(state, *drafts)))
        (item,) = (await on.store.list_tasks(TaskFilter(reason=PauseType.USER_REQUESTED))).items
        assert (item.id, pause in (await on.load(item.id)).pauses) == (state.id, True)
        assert (await on.store.list_tasks(TaskFilter(reason=PauseType.TOOL_ERROR))).items == ()


async def rates_are_shared_and_survive(rig: Rig) -> None:
    rate = Rate(limit=10, period_ms=1000)

    def wish(name: str) -> Reservation:
        return Reservation(name=name, rate=rate, at=f.NOW)

    async with scene(rig) as on:
        given = await traffic(on).reserve([wish("local/web"), wish("local/web"), wish("ana/web")])
        assert given == [f.NOW, f.NOW + 100, f.NOW]
    async with scene(rig) as on:
        (at,) = await traffic(on).reserve([wish("local/web")])
        assert at == f.NOW + 200


async def a_provider_can_ask_to_be_left_alone(rig: Rig) -> None:
    wish = Reservation(name="local/web", rate=Rate(limit=10, period_ms=1000), at=f.NOW)
    async with scene(rig) as on:
        await traffic(on).push("local/web", f.later(30))
        await traffic(on).push("local/web", f.later(20))
        (at,) = await traffic(on).reserve([wish])
        assert at == f.later(30), "the latest word counts, and who asks sooner waits"
    async with scene(rig) as on:
        (at,) = await traffic(on).reserve([wish])
        assert at is not None
        assert at > f.later(30)


async def a_days_quota_is_counted_and_survives(rig: Rig) -> None:
    def wish(name: str = "local/web", after_s: int = 0) -> Reservation:
        return Reservation(name=name, rate=None, at=f.later(after_s), quota=2)

    async with scene(rig) as on:
        given = await traffic(on).reserve([wish(), wish("ana/web"), wish(), wish()])
        assert given == [f.NOW, f.NOW, f.NOW, None]
    async with scene(rig) as on:
        assert await traffic(on).reserve([wish()]) == [None]
        tomorrow = 24 * 3600
        assert await traffic(on).reserve([wish(after_s=tomorrow)]) == [f.later(tomorrow)]


async def a_halt_refuses_claims_and_intents(rig: Rig) -> None:
    """And nothing else: outcomes are recorded, tasks are created; it is still there after a restart."""
    async with scene(rig) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        state = await on.load(state.id)
        await traffic(on).set_halt(HALT)
        assert await traffic(on).get_halt() == HALT
        two = f.step_commit(state, f.completed(ONE), proposals=(f.proposal(f.TWO),))
        assert refused(await on.commit(two)).last_seq == state.seq
        done(await on.commit(replace(two, proposals=())))
        waiting = await on.created()
        assert await on.claim() == []
        assert (await on.load(waiting)).status is TaskStatus.QUEUED
    async with scene(rig) as on:
        assert await traffic(on).get_halt() == HALT
        assert await on.claim() == []
        await traffic(on).set_halt(None)
        assert await traffic(on).get_halt() is None
        assert [one.lease.task for one in await on.claim()] == [waiting]
