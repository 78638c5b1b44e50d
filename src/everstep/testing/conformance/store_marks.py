"""Marks: what was said of a task, and how far its calls have come; both survive, and neither goes back."""

import asyncio
from dataclasses import replace
from typing import Final, cast

from everstep.domain.ids import Digest, Epoch, StepPath
from everstep.domain.task import Lease, TaskState
from everstep.ports.marks import Mark
from everstep.ports.traffic import Traffic
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import Rig, done, scene

MARK: Final = Mark(attempt=1, tool="test.units", input=Digest("sha256:1"), cursor={"done": 3, "name": "é"})


def lease_of(state: TaskState) -> Lease:
    assert state.worker is not None
    return Lease(task=state.id, epoch=state.epoch, worker=state.worker)


async def what_was_told_is_never_less(rig: Rig) -> None:
    async with scene(rig) as on:
        task, other = await on.created(), await on.created()
        marks = on.store.marks
        assert await marks.told(task, 1) == 0
        await marks.tell(task, 1, 0.4)
        await marks.tell(task, 1, 0.3)
        assert (await marks.told(task, 1), await marks.told(other, 1)) == (0.4, 0)
        await marks.tell(task, 2, 0.1)
        await marks.tell(task, 1, 0.9)
        assert (await marks.told(task, 2), await marks.told(task, 1)) == (0.1, 0)
        await marks.tell(f.new_task().id, 1, 0.5)
    async with scene(rig) as on:
        assert await on.store.marks.told(task, 2) == 0.1


async def only_its_holder_says_how_far_a_call_is(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        marks, lease = on.store.marks, lease_of(state)
        assert await marks.find(state.id, ONE) is None
        assert await marks.put(lease, ONE, MARK) == "kept"
        assert await marks.find(state.id, ONE) == MARK
        later = replace(MARK, attempt=2, cursor={"done": 5})
        assert await marks.put(lease, ONE, later) == "kept"
        assert await marks.put(lease, ONE, MARK) == "gone", "an attempt that was given up speaks no more"
        assert await marks.put(replace(lease, epoch=Epoch(lease.epoch + 1)), ONE, replace(later, attempt=3)) == "gone"
        assert await marks.put(replace(lease, task=f.new_task().id), ONE, MARK) == "gone"
    async with scene(rig) as on:
        assert await on.store.marks.find(state.id, ONE) == later
        stranger = replace(lease, worker=on.me.id)
        assert await on.store.marks.put(stranger, ONE, replace(later, attempt=3)) == "gone"


async def of_all_who_would_make_a_call_one_begins_it(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        marks, lease = on.store.marks, lease_of(state)
        said = await asyncio.gather(*(marks.begin(lease, ONE, 1) for _ in range(8)))
        assert sorted(said) == ["before"] * 7 + ["now"]
        assert await marks.begin(lease, ONE, 2) == "now", "the next attempt is another call"
        assert await marks.begin(lease, ONE, 1) == "before", "one that was given up begins no more"
        assert await marks.begin(lease, StepPath("two"), 1) == "now"
        assert await marks.begin(replace(lease, epoch=Epoch(lease.epoch + 1)), ONE, 3) == "gone"
        assert await marks.begin(replace(lease, task=f.new_task().id), ONE, 1) == "gone"
    async with scene(rig) as on:
        assert await on.store.marks.begin(lease, ONE, 2) in {"before", "gone"}
        assert await on.store.marks.begin(replace(lease, worker=on.me.id), ONE, 3) == "gone"


async def marks_go_with_their_task(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        marks = on.store.marks
        assert await marks.put(lease_of(state), ONE, MARK) == "kept"
        assert await marks.begin(lease_of(state), ONE, 1) == "now"
        await marks.tell(state.id, 1, 0.5)
        done(await on.commit(f.step_commit(state, f.finished())))
        assert await cast("Traffic", on.store).housekeeping.delete("local", state.id, f.NOW)
        assert (await marks.find(state.id, ONE), await marks.told(state.id, 1)) == (None, 0)
