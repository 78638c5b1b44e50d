"""Arguments in another type than the tool takes: taken where nothing is lost, and the journal says so."""

import pytest

from everstep import Plan, PlanError, tool
from everstep.testing import TestEngine

CALLS: list[object] = []


@tool.pure("count.up")
async def count_up(n: int, name: str) -> dict[str, int]:
    """Count."""
    CALLS.append((n, name))
    return {"n": n + 1}


@pytest.mark.req("6.3")
async def test_what_loses_nothing_is_taken_and_recorded() -> None:
    CALLS.clear()
    plan = Plan("counting", inputs={"n": str})
    one = plan.step("one", "count.up", {"n": "3", "name": 7})
    plan.step("two", "count.up", {"n": plan.inputs.n, "name": f"{one.n}"})
    async with TestEngine([count_up]) as engine:
        task = await engine.start(plan, {"n": "41"})
        result = await task.result()
        assert (result.status, CALLS) == ("completed", [(3, "7"), (41, "4")])
        started = [event.data async for event in task.events(follow=False) if event.type == "attempt.started"]
    assert [data["coerced"] for data in started] == [["/n", "/name"], ["/n", "/name"]]


@pytest.mark.req("6.3")
async def test_the_rest_is_refused_all_at_once_before_any_call() -> None:
    CALLS.clear()
    plan = Plan("counting")
    plan.step("one", "count.up", {"n": "three", "name": True})
    plan.step("two", "count.up", {"n": "1.0"})
    async with TestEngine([count_up]) as engine:
        with pytest.raises(PlanError) as refused:
            await engine.start(plan)
    places = {problem.path for problem in refused.value.problems}
    assert places == {"/steps/0/with/n", "/steps/0/with/name", "/steps/1/with/n", "/steps/1/with"}
    assert CALLS == []
