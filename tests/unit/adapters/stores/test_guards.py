"""The writer's memory: follows each unit, steps back with it, and is forgotten with a batch that failed."""

from everstep.adapters.stores.sql.desk import Guards
from everstep.adapters.stores.sql.rows import Guard
from everstep.domain.ids import Epoch, Seq, TaskId, WorkerId
from everstep.domain.states import TaskStatus

ONE, TWO = TaskId("t_1"), TaskId("t_2")
ME = WorkerId("w_1")


def guard(last_seq: int, worker: WorkerId | None = ME) -> Guard:
    return Guard(1, TaskStatus.RUNNING, 1, Epoch(1), worker, Seq(last_seq), b"")


def kept() -> Guards:
    guards = Guards()
    guards.put(ONE, guard(2))
    guards.keep()
    return guards


def test_follows_and_keeps() -> None:
    guards = kept()
    guards.put(ONE, guard(3))
    guards.put(TWO, guard(1))
    guards.keep()
    assert (guards.find(ONE), guards.find(TWO)) == (guard(3), guard(1))


def test_steps_back_with_its_unit() -> None:
    guards = kept()
    guards.put(ONE, guard(3))
    mark = guards.mark
    guards.put(ONE, guard(4))
    guards.put(TWO, guard(1))
    guards.put(TWO, guard(2))
    guards.step_back(mark)
    assert (guards.find(ONE), guards.find(TWO)) == (guard(3), None)


def test_a_failed_batch_is_forgotten() -> None:
    guards = kept()
    guards.put(TWO, guard(1))
    guards.keep()
    guards.put(ONE, guard(3))
    guards.forget()
    assert (guards.find(ONE), guards.find(TWO)) == (None, guard(1))


def test_what_nobody_holds_is_let_go_after_the_batch() -> None:
    guards = kept()
    guards.put(ONE, guard(3, worker=None))
    assert guards.find(ONE) == guard(3, worker=None), "the batch itself still needs it"
    guards.keep()
    assert guards.find(ONE) is None


def test_floors_are_what_was_acknowledged() -> None:
    guards = kept()
    guards.put(ONE, guard(3))
    guards.put(TWO, guard(1))
    assert guards.floors() == {ONE: 2}
    guards.clear()
    assert guards.floors() == {}
