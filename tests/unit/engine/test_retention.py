"""Old tasks go by themselves; what cannot be deleted is said aloud, and the key of what is gone is nobody's."""

from collections.abc import Sequence

import pytest

from everstep import Plan, tool
from everstep.domain.errors import NotFound, RequestError, Unavailable
from everstep.domain.ids import Instant, TaskId
from everstep.domain.states import TaskStatus
from everstep.domain.values import JsonObject
from everstep.testing.engine import TestEngine

QUICK: JsonObject = {"name": "p", "steps": [{"id": "a", "tool": "test.quick", "with": {}}]}
KEPT: JsonObject = {"retention": {"completed": "2d", "keys": "3d"}}


@tool("test.quick", effect="pure")
async def quick() -> int:
    """At once."""
    return 1


async def stuck(status: TaskStatus, before: Instant, limit: int) -> Sequence[tuple[str, TaskId]]:
    raise Unavailable("the disk says no")


async def test_old_tasks_go_and_their_keys_stay_taken_for_a_while() -> None:
    async with TestEngine([quick], config=KEPT) as engine:
        task = await engine.start(Plan.from_dict(QUICK), key="once")
        await engine.clock.advance("1d")
        assert (await engine.get(task.id)).status == "completed", "not yet"
        await engine.clock.advance("1d4h")
        with pytest.raises(NotFound):
            await engine.get(task.id)
        with pytest.raises(RequestError, match="was deleted"):
            await engine.start(Plan.from_dict(QUICK), key="once")
        await engine.clock.advance("4d")
        again = await engine.start(Plan.from_dict(QUICK), key="once")
        assert again.id != task.id


async def test_a_clean_up_that_fails_makes_the_engine_unwell_until_one_succeeds() -> None:
    async with TestEngine([quick], config=KEPT) as engine:
        await engine.start(Plan.from_dict(QUICK))
        with pytest.MonkeyPatch.context() as trouble:
            trouble.setattr(engine.store.housekeeping, "ended", stuck)
            await engine.clock.advance("3h")
        assert engine.desk.monitoring.unwell == "old tasks cannot be deleted: the disk says no"
        assert "old tasks cannot be deleted" in [event for event, _ in engine.sink.notes]
        await engine.clock.advance("5m")
        assert engine.desk.monitoring.unwell is None
