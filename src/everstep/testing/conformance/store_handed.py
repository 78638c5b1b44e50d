"""Tasks that somebody takes over: taken up by the commit that goes on with them, called by a name of the client's."""

from dataclasses import replace

from everstep.domain.continued import TaskStarted
from everstep.domain.fold import apply
from everstep.domain.ids import Epoch, Millis, Seq, TaskId
from everstep.domain.states import TaskStatus
from everstep.domain.task import StepCommit, TaskState
from everstep.ports.handles import Handle
from everstep.ports.traffic import Halt
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import Rig, Scene, done, refused, scene
from everstep.testing.conformance.store_traffic import traffic


async def paused(on: Scene) -> TaskState:
    """A task that nobody holds, because it waits for somebody."""
    state = await on.held()
    _, opened, stands = f.paused()
    done(await on.commit(f.step_commit(state, opened, stands)))
    return await on.load(state.id)


def taking(state: TaskState, on: Scene) -> StepCommit:
    """Hold it again, and begin a call."""
    taken = TaskStarted(from_status=state.status, worker=on.me.id, epoch=Epoch(state.epoch + 1))
    apply(state, taken, None, f.NOW)
    state.seq = Seq(state.seq + 1)
    commit = f.step_commit(state, proposals=(f.proposal(ONE),))
    return replace(commit, taken=taken, actor=f.HUMAN)


async def a_paused_task_is_taken_up_in_one_commit(rig: Rig) -> None:
    async with scene(rig) as on:
        before = await paused(on)
        commit = taking(await on.load(before.id), on)
        answer = done(await on.commit(commit))
        assert [event.type for event in answer.events] == ["task.started", "attempt.started"]
        read = await on.load(before.id)
        assert (read.status, read.epoch, read.worker) == (TaskStatus.RUNNING, before.epoch + 1, on.me.id)
        assert read.in_flight == (ONE,)
        refused(await on.commit(commit))
        assert (await on.load(before.id)).seq == read.seq
        await on.sound()


async def only_a_free_task_in_that_state_is_taken_up(rig: Rig) -> None:
    async with scene(rig) as on:
        held = await on.held()
        other = TaskStarted(from_status=TaskStatus.PAUSED, worker=on.me.id, epoch=Epoch(held.epoch + 1))
        commit = f.step_commit(held, proposals=(f.proposal(ONE),))
        refused(await on.commit(replace(commit, taken=other)))
        state = await paused(on)
        commit = taking(await on.load(state.id), on)
        refused(await on.commit(replace(commit, last_seq=Seq(commit.last_seq + 1))))
        await traffic(on).set_halt(Halt(mode="graceful", by="ana", at=f.NOW, note=None))
        refused(await on.commit(commit))
        await traffic(on).set_halt(None)
        done(await on.commit(commit))


def handle(task: TaskId, id: str = "mt_one", generation: int = 1) -> Handle:
    return Handle(id=id, owner="local", task=task, generation=generation, ttl_ms=Millis(5), created_at=f.NOW, notes={})


async def a_generation_has_one_handle(rig: Rig) -> None:
    async with scene(rig) as on:
        task, handles = await on.created(), on.store.handles
        assert await handles.find("mt_one") is None
        first = await handles.keep(handle(task))
        assert first == handle(task) == await handles.find("mt_one")
        assert await handles.keep(handle(task, "mt_two")) == first
        assert await handles.find("mt_two") is None
        assert (await handles.keep(handle(task, "mt_two", 2))).id == "mt_two"
        await handles.note("mt_one", {"aside": {"p_1": 1}, "n": 1})
        await handles.note("mt_one", {"n": None, "m": 2})
        noted = await handles.find("mt_one")
        assert noted is not None and noted.notes == {"aside": {"p_1": 1}, "m": 2}
