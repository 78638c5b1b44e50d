"""Creation, lists, payloads and keeping."""

from dataclasses import replace

from everstep.domain.errors import Conflict, EngineClosed, NotFound, Validation
from everstep.domain.ids import Digest, Seq, TaskId
from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.states import TaskStatus
from everstep.ports.store import Created, KeyTaken, TaskFilter
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import Rig, Scene, done, raises, scene
from everstep.wire.values import digest_of


async def a_task_is_created_with_its_first_event(rig: Rig) -> None:
    async with scene(rig) as on:
        new = f.new_task(inputs={"topic": "solar"})
        (created,) = await on.store.create_tasks((new,))
        assert isinstance(created, Created)
        assert (created.task, created.new, [event.type for event in created.events]) == (new.id, True, ["task.created"])
        state = await on.load(new.id)
        assert (state.status, state.seq, state.plan, state.owner) == (TaskStatus.QUEUED, 1, f.PLAN, "local")
        assert (state.inputs.value, state.created_by) == ({"topic": "solar"}, f.HUMAN)
        assert await on.store.load_tasks((f.task_id(), new.id, new.id)) == [None, state, state]


async def the_same_key_is_the_same_task(rig: Rig) -> None:
    async with scene(rig) as on:
        first = f.new_task(key="brief-1", inputs={"n": 1})
        twin = f.new_task(key="brief-1", inputs={"n": 1})
        other = f.new_task(key="brief-1", inputs={"n": 2})
        theirs = f.new_task(key="brief-1", inputs={"n": 1}, owner="ana")
        answers = await on.store.create_tasks((first, twin, other, theirs))
        again = await on.store.create_tasks((twin,))
        assert [isinstance(one, Created) and one.new for one in answers] == [True, False, False, True]
        assert answers[1:3] == [Created(task=first.id, new=False), KeyTaken(task=first.id)]
        assert again == [Created(task=first.id, new=False)]
        assert await on.store.load_tasks((twin.id, other.id)) == [None, None]
        assert await on.seqs(first.id) == [1]


async def an_id_is_given_once(rig: Rig) -> None:
    async with scene(rig) as on:
        new = f.new_task()
        await on.store.create_tasks((new,))
        assert await on.store.create_tasks((new,)) == [Created(task=new.id, new=False)]
        await raises(Conflict, on.store.create_tasks((replace(new, inputs_digest=f.CODEC.seal(1).digest),)))


async def lists_page_newest_first(rig: Rig) -> None:
    async with scene(rig) as on:
        tasks = [await on.created(at=f.later(number // 2)) for number in range(7)]
        seen: list[TaskId] = []
        cursor = None
        while True:
            page = await on.store.list_tasks(TaskFilter(limit=3, cursor=cursor))
            seen += [item.id for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
            assert len(page.items) == 3
        assert seen == tasks[::-1]
        page = await on.store.list_tasks(TaskFilter(limit=3))
        assert page.next_cursor is not None
        altered = page.next_cursor[:-1] + ("A" if page.next_cursor[-1] != "A" else "B")
        await raises(Validation, on.store.list_tasks(TaskFilter(cursor=altered)))
        await raises(Validation, on.store.list_tasks(TaskFilter(cursor="ü")))


async def lists_are_filtered(rig: Rig) -> None:
    async with scene(rig) as on:
        mine = await on.created(at=f.later(1), inputs={"n": 1})
        theirs = await on.created(owner="ana", at=f.later(2))
        held = await on.held(at=f.later(3))
        ended = await on.held(at=f.later(4))
        done(await on.commit(f.step_commit(ended, f.finished(), at=f.later(9))))
        assert await _listed(on, TaskFilter(owner="ana")) == [theirs]
        assert await _listed(on, TaskFilter(owner="local")) == [ended.id, held.id, mine]
        queued = frozenset({TaskStatus.QUEUED, TaskStatus.COMPLETED})
        assert await _listed(on, TaskFilter(statuses=queued)) == [ended.id, theirs, mine]
        assert await _listed(on, TaskFilter(statuses=frozenset())) == []
        assert await _listed(on, TaskFilter(since=f.later(3))) == [ended.id, held.id]
        assert await _listed(on, TaskFilter(inputs_digest=f.CODEC.seal({"n": 1}).digest)) == [mine]
        assert await _listed(on, TaskFilter(plan_name="brief", text="TITLE OF B")) == [ended.id, held.id, theirs, mine]
        assert await _listed(on, TaskFilter(text=mine[-5:])) == [mine]
        assert await _listed(on, TaskFilter(plan_name="other")) == []
        (item,) = (await on.store.list_tasks(TaskFilter(text=ended.id))).items
        assert (item.row.status, item.row.ended_at, item.row.outcome) == (
            TaskStatus.COMPLETED,
            f.later(9),
            "success",
        )
        assert (item.updated_at, item.seq, item.epoch, item.worker, item.steps) == (f.later(9), 3, 1, None, 3)


async def _listed(on: Scene, which: TaskFilter) -> list[TaskId]:
    return [item.id for item in (await on.store.list_tasks(which)).items]


async def tasks_are_found_by_name(rig: Rig) -> None:
    async with scene(rig) as on:
        named = f.new_task(key="monday")
        await on.store.create_tasks((named,))
        other = await on.created()
        assert list(await on.store.find_task("local", "monday")) == [named.id]
        assert list(await on.store.find_task("local", named.id)) == [named.id]
        shared = named.id[:20]
        assert sorted(await on.store.find_task("local", shared)) == sorted([named.id, other])
        for owner, name in (("ana", named.id), ("ana", "monday"), ("local", "t_nobody"), ("local", "mon")):
            assert list(await on.store.find_task(owner, name)) == []


async def all_journals_are_one_line(rig: Rig) -> None:
    async with scene(rig) as on:
        assert await on.store.tail.last() is None
        assert await on.store.tail.read(0, 10) == []
        mine = await on.held()
        theirs = await on.created(owner="ana")
        done(await on.commit(f.step_commit(mine, f.finished())))
        line = await on.store.tail.read(0, 10)
        assert [(one.event.task, one.event.seq) for one in line] == [
            (mine.id, 1),
            (mine.id, 2),
            (theirs, 1),
            (mine.id, 3),
        ]
        assert [one.owner for one in line] == ["local", "local", "ana", "local"]
        assert sorted({one.place for one in line}) == [one.place for one in line]
        assert [one.event for one in line if one.event.task == mine.id] == await on.store.read_events(
            mine.id, Seq(0), 10
        )
        assert await on.store.tail.last() == line[-1]
        assert await on.store.tail.read(line[0].place, 2) == line[1:3]
        assert await on.store.tail.read(0, 10, "ana") == [line[2]]
        assert await on.store.tail.read(line[-1].place, 10) == []


async def payloads_are_kept_by_content(rig: Rig) -> None:
    async with scene(rig) as on:
        large = f.CODEC.seal({"text": "ü" * 40_000})
        assert large.by_reference
        assert large.raw is not None
        await on.store.put_payloads([(large.digest, large.raw), (large.digest, large.raw)])
        assert await on.store.get_payloads([large.digest]) == [{"text": "ü" * 40_000}]
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE, large.value),))))
        done(await on.commit(f.step_commit(await on.load(state.id), f.completed(ONE, large.value))))
        output = (await on.load(state.id)).steps[ONE].output
        assert output == large
        assert not output.present
        await raises(NotFound, on.store.get_payloads([large.digest, Digest("sha256:" + "0" * 64)]))
        await raises(Validation, on.store.put_payloads([(Digest("sha256:" + "0" * 64), b"1")]))
        assert digest_of(large.raw) == large.digest


async def a_long_plan_is_a_plan(rig: Rig) -> None:
    async with scene(rig) as on:
        text = "x" * 300
        steps = tuple(StepSpec(id=f"s{n}", tool="echo", arguments={"text": text}, bind=f"s{n}") for n in range(200))
        plan = PlanSpec(name="long", steps=steps, outputs={})
        new = f.of_plan(plan, f.CODEC.seal({"text": "y" * 30_000}))
        await on.store.create_tasks((new,))
        assert (await on.load(new.id)).plan == plan
        (event,) = await on.store.read_events(new.id, Seq(0), 10)
        assert len(event.encoded) < 64 * 1024


async def figures_are_told(rig: Rig) -> None:
    async with scene(rig) as on:
        await on.created()
        await on.held()
        info = await on.store.info()
        assert (info.tasks["queued"], info.tasks["running"], info.tasks["failed"]) == (1, 1, 0)
        assert (info.events, info.details["status"]) == (3, "ok")


async def a_closed_store_says_so(rig: Rig) -> None:
    async with scene(rig) as on:
        task = await on.created()
    await raises(EngineClosed, on.store.load_tasks((task,)))
    await raises(EngineClosed, on.store.create_tasks((f.new_task(),)))
    await raises(EngineClosed, on.store.claim_tasks(f.claim(on.me)))
    await on.store.close()
