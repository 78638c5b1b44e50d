"""Lists in every order, and tasks that go: what is left of them, and what is not."""

from typing import cast

from everstep.domain.errors import NotFound, RequestError, Validation
from everstep.domain.ids import Instant, Seq, TaskId
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.ports.store import Sort, Store, TaskFilter
from everstep.ports.traffic import Traffic
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import Rig, Scene, done, raises, scene


async def lists_go_in_every_order_page_by_page(rig: Rig) -> None:
    async with scene(rig) as on:
        ended = await ended_task(on)
        others = [await on.created(at=f.later(number)) for number in range(1, 6)]
        made = [ended.id, *others]
        for sort, wanted in (("-created_at", made[::-1]), ("created_at", made), ("-updated_at", None)):
            seen: list[TaskId] = []
            cursor: str | None = None
            while True:
                which = TaskFilter(owner="local", sort=cast("Sort", sort), limit=2, cursor=cursor)
                page = await on.store.list_tasks(which)
                seen += [item.id for item in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
                other = "created_at" if sort != "created_at" else "-created_at"
                await raises(
                    Validation,
                    on.store.list_tasks(TaskFilter(owner="local", sort=cast("Sort", other), cursor=cursor)),
                )
            assert sorted(seen) == sorted(made)
            assert wanted is None or seen == wanted
        window = TaskFilter(owner="local", since=f.later(2), until=f.later(4))
        assert await ids(on.store, window) == [others[2], others[1]]
        for statuses in ({TaskStatus.COMPLETED}, {TaskStatus.COMPLETED, TaskStatus.FAILED}):
            assert await ids(on.store, TaskFilter(owner="local", statuses=frozenset(statuses))) == [ended.id]
        live = TaskFilter(owner="local", statuses=frozenset({TaskStatus.QUEUED, TaskStatus.RUNNING}))
        assert await ids(on.store, live) == others[::-1]
        assert await ids(on.store, TaskFilter(owner="local", plan_name=ended.plan.name)) == made[::-1]
        assert await ids(on.store, TaskFilter(owner="local", parent=ended.id)) == []
        assert await ids(on.store, TaskFilter(owner="local", needs_you=True)) == []


async def a_task_that_ended_can_go(rig: Rig) -> None:
    async with scene(rig) as on:
        keeping = cast("Traffic", on.store).housekeeping
        ended, live = await ended_task(on, key="mine"), await on.created()
        until = f.later(100)
        assert not await keeping.delete("local", live, until)
        assert not await keeping.delete("somebody", ended.id, until)
        newest = await on.store.tail.last()
        assert await keeping.delete("local", ended.id, until)
        assert not await keeping.delete("local", ended.id, until)
        assert await on.store.load_tasks((ended.id,)) == [None]
        assert await on.store.read_events(ended.id, Seq(0), 9) == []
        assert await ids(on.store, TaskFilter(owner="local")) == [live]
        error = await raises(RequestError, on.store.create_tasks((f.new_task(key="mine"),)))
        assert error.code == "gone"
        assert newest is not None
        again = await on.created(key="mine", at=Instant(until + 1))
        (line,) = await on.store.tail.read(newest.place, 9)
        assert (line.event.task, line.place > newest.place) == (again, True)
        await on.sound()


async def what_ended_long_ago_is_found(rig: Rig) -> None:
    async with scene(rig) as on:
        keeping = cast("Traffic", on.store).housekeeping
        first, _live, second = await ended_task(on), await on.created(), await ended_task(on)
        found = await keeping.ended(TaskStatus.COMPLETED, f.later(100), 10)
        assert found == [("local", first.id), ("local", second.id)]
        assert await keeping.ended(TaskStatus.COMPLETED, f.later(100), 1) == [("local", first.id)]
        assert await keeping.ended(TaskStatus.FAILED, f.later(100), 10) == []
        assert await keeping.ended(TaskStatus.COMPLETED, f.NOW, 10) == []


async def payloads_go_with_the_last_task_that_names_them(rig: Rig) -> None:
    async with scene(rig) as on:
        keeping, late = cast("Traffic", on.store).housekeeping, Instant(2**53)
        shared, alone, nobodys = (f.CODEC.seal({"text": letter * 40_000}) for letter in "sax")
        for one in (shared, shared, alone, nobodys):
            assert one.raw is not None
            await on.store.put_payloads([(one.digest, one.raw)])
        tasks = []
        for value in (shared.value, shared.value, alone.value):
            state = await on.held()
            done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE, value),))))
            state = await on.load(state.id)
            done(await on.commit(f.step_commit(state, f.completed(ONE, value), f.finished())))
            tasks.append(state.id)
        assert await keeping.collect(Instant(0)) == 0, "what was kept a moment ago may be named in the next one"
        assert await keeping.collect(late) == 1
        await raises(NotFound, on.store.get_payloads([nobodys.digest]))
        assert await on.store.get_payloads([shared.digest, alone.digest]) == [shared.value, alone.value]
        assert await keeping.delete("local", tasks[0], f.NOW)
        assert await keeping.collect(late) == 0, "another task names it"
        assert await on.store.get_payloads([shared.digest]) == [shared.value]
        assert await keeping.delete("local", tasks[1], f.NOW)
        assert await keeping.collect(late) == 1
        await raises(NotFound, on.store.get_payloads([shared.digest]))
        assert await on.store.get_payloads([alone.digest]) == [alone.value]


async def the_newest_line_of_all_keeps_its_number(rig: Rig) -> None:
    async with scene(rig) as on:
        keeping = cast("Traffic", on.store).housekeeping
        last = 0
        for _ in range(3):
            ended = await ended_task(on)
            newest = await on.store.tail.last()
            assert newest is not None
            assert newest.event.task == ended.id
            assert newest.place > last
            last = newest.place
            assert await keeping.delete("local", ended.id, f.NOW)
            assert await on.store.tail.read(last, 9) == []
        fresh = await on.created()
        assert [one.event.task for one in await on.store.tail.read(last, 9)] == [fresh]
        await on.sound()


async def workers_are_remembered(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        (one,) = await cast("Traffic", on.store).housekeeping.workers()
        assert (one.id, one.gone, one.tasks) == (on.me.id, False, 1)
        assert state.worker == one.id


async def ended_task(on: Scene, key: str | None = None) -> TaskState:
    state = await on.held(key=key)
    done(await on.commit(f.step_commit(state, f.finished())))
    return state


async def ids(store: Store, which: TaskFilter) -> list[TaskId]:
    return [item.id for item in (await store.list_tasks(which)).items]
