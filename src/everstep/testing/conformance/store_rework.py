"""Tasks made of others, new generations and new revisions: written together or not at all."""

from dataclasses import replace

from everstep.domain import events as e
from everstep.domain.changes import Change
from everstep.domain.events import Draft
from everstep.domain.fold import fold
from everstep.domain.ids import Digest, Epoch
from everstep.domain.states import StepStatus, TaskStatus
from everstep.domain.task import TaskState
from everstep.ports.store import Created, Stale, TaskFilter
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE, THREE, TWO
from everstep.testing.conformance.stage import Rig, Scene, done, scene


async def _ended(on: Scene) -> TaskState:
    """A completed task."""
    state = await on.held()
    steps = (f.completed(ONE), f.completed(TWO), f.completed(THREE), f.finished())
    done(await on.commit(replace(f.step_commit(state, *steps), release=True)))
    return await on.load(state.id)


async def a_task_may_begin_with_outcomes(rig: Rig) -> None:
    async with scene(rig) as on:
        new = f.new_task()
        state = fold(None, "local", f.first_event(new))
        copied = f.command(state, f.completed(ONE, {"n": 1}))
        (made,) = await on.store.create_tasks((replace(new, commands=(copied,)),))
        assert isinstance(made, Created)
        assert [event.type for event in made.events] == ["task.created", "step.completed"]
        read = await on.load(new.id)
        assert (read.seq, read.done, read.steps[ONE].status) == (2, 1, StepStatus.COMPLETED)
        assert await on.store.check() == []


async def a_task_and_a_line_elsewhere_are_written_together_or_not_at_all(rig: Rig) -> None:
    async with scene(rig) as on:
        other = await _ended(on)
        mark = Draft(body=e.TaskUpdated(changes={"undone": {"by": "t_x", "steps": {"one": "undo_one"}}}))
        told = f.command(other, mark, guarded=True)
        first, second = f.new_task(), f.new_task()
        (made,) = await on.store.create_tasks((replace(first, commands=(told,)),))
        assert isinstance(made, Created)
        (refused,) = await on.store.create_tasks((replace(second, commands=(told,)),))
        assert isinstance(refused, Stale), "the journal has moved"
        assert (await on.store.load_tasks((second.id,))) == [None]
        read = await on.load(other.id)
        assert (read.seq, read.steps[ONE].undone_by) == (other.seq + 1, ("t_x", "undo_one"))
        assert await on.store.check() == []


async def a_step_makes_a_task_in_its_own_commit(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        state = await on.load(state.id)
        child = f.new_task()
        waits = Draft(body=e.StepWaiting(kind="child", detail=child.id, until=None), step=ONE)
        commit = replace(f.step_commit(state, waits), children=(child,))
        stale = replace(commit, last_seq=state.seq, lease=replace(commit.lease, epoch=Epoch(9)))
        assert isinstance(await on.commit(stale), Stale)
        assert await on.store.load_tasks((child.id,)) == [None], "a refused commit makes nothing"
        answer = done(await on.commit(commit))
        assert [event.type for event in answer.events] == ["step.waiting", "task.created"]
        assert (await on.load(child.id)).status is TaskStatus.QUEUED
        read = await on.load(state.id)
        assert (read.in_flight, read.children) == ((), {ONE: child.id})
        assert await on.store.check() == []


async def a_reopened_task_is_queued_again(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await _ended(on)
        again = e.TaskReopened(generation=2, from_step=TWO, kept=(ONE,), superseded=(TWO, THREE), arguments={})
        done((await on.store.commit_commands((f.command(state, Draft(body=again), guarded=True),)))[0])
        read = await on.load(state.id)
        assert (read.status, read.generation, read.done, read.ended_at) == (TaskStatus.QUEUED, 2, 1, None)
        (late,) = await on.store.commit_commands((f.command(await on.load(state.id), f.note("x")),))
        done(late)
        assert [one.lease.task for one in await on.claim()] == [state.id]
        assert await on.store.check() == []


async def a_plan_is_not_revised_behind_its_holder(rig: Rig) -> None:
    async with scene(rig) as on:
        before = await on.held()
        done(await on.commit(f.step_commit(before, proposals=(f.proposal(ONE),))))
        change = Change(op="set", id=ONE, step=replace(f.PLAN.steps[0], arguments={"value": 9}))
        body = e.PlanRevised(revision=2, digest=Digest("sha256:other"), base_digest=before.plan_digest, diff=(change,))
        told = replace(f.command(before, Draft(body=body), guarded=True), steps=3)
        assert isinstance((await on.store.commit_commands((told,)))[0], Stale), "the step has begun meanwhile"


async def a_revised_plan_has_its_number_of_steps(rig: Rig) -> None:
    async with scene(rig) as on:
        task = await on.created()
        state = await on.load(task)
        more = replace(f.PLAN.steps[0], id="more", bind="more")
        change = Change(op="append", id="more", step=more)
        body = e.PlanRevised(revision=2, digest=Digest("sha256:other"), base_digest=state.plan_digest, diff=(change,))
        told = replace(f.command(state, Draft(body=body), guarded=True), steps=4)
        done((await on.store.commit_commands((told,)))[0])
        page = await on.store.list_tasks(TaskFilter())
        assert [item.steps for item in page.items] == [4]
        read = await on.load(task)
        assert (read.revision, list(read.specs)) == (2, ["one", "two", "three", "more"])
        assert await on.store.check() == []
