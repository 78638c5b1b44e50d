"""Plans on their way in."""

import pytest

from everstep import Plan, tool
from everstep.testing import TestEngine


@tool.pure("accepting.work")
async def work() -> int:
    """Nothing."""
    return 1


async def test_what_is_known_of_sound_plans_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everstep.facade.accept.SOUND_MAX", 2)
    async with TestEngine([work]) as engine:
        for number in range(5):
            plan = Plan.from_dict({"name": f"p{number}", "steps": [{"id": "a", "tool": "accepting.work"}]})
            await (await engine.start(plan)).result()
        assert 0 < len(engine.desk._plans._sound) <= 2
