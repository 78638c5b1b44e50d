"""`crash_points`: a plan that survives them all, and one that does not."""

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.values import JsonObject
from everstep.testing import crash_points, fake

STEPS: list[JsonObject] = [
    {"id": "find", "tool": "library.search", "with": {"query": "${inputs.topic}"}},
    {"id": "read", "tool": "library.read", "for_each": "${find.names}", "with": {"name": "${item}"}},
    {"id": "send", "tool": "mail.post", "approve": "Send it?", "with": {"text": "${read}"}},
]
PLAN = Plan.from_dict({"name": "p", "inputs": {"topic": "string"}, "steps": [*STEPS], "outputs": {"id": "${send.id}"}})
INPUTS: JsonObject = {"topic": "solar"}
FAKES = {
    "library.search": fake(returns={"names": ["a", "b"]}, effect="pure"),
    "library.read": fake(returns={"text": "…"}, raises=[TimeoutError(), None], effect="idempotent"),
    "mail.post": fake(returns={"id": "m1"}),
}


async def test_every_boundary_is_survived_and_nothing_is_sent_twice() -> None:
    points = []
    async for t in crash_points(PLAN, INPUTS, tools=FAKES, approve_all=True):
        points.append(t.point)
        assert (t.result.status, t.result.outputs) == ("completed", {"id": "m1"}), t.timeline
        assert t.calls("mail.post").count == 1, t.timeline
    assert len(points) > 20
    assert sum("inside the call" in point for point in points) == 4
    assert any("before the commit of step.completed find" in point for point in points)
    assert any("pause.answered" in point for point in points)
    assert FAKES["mail.post"].count == 0, "each trial has a world of its own"


async def test_somebody_has_to_answer() -> None:
    with pytest.raises(AssertionError, match="approve_all=True"):
        async for _ in crash_points(PLAN, INPUTS, tools=FAKES):
            pass


async def test_answers_are_given_to_steps_that_ask() -> None:
    ask: JsonObject = {"id": "who", "tool": "ask", "with": {"question": "To whom?"}}
    plan = Plan.from_dict({"name": "a", "steps": [ask], "outputs": {"who": "${who}"}})
    async for t in crash_points(plan, tools={}, answers={"who": "ana"}):
        assert t.result.outputs == {"who": "ana"}


async def test_a_broken_history_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that forgets a guard is found by the checker, not by luck."""
    from everstep.adapters.stores.memory import MemoryStore

    whole = MemoryStore._sweep

    def forgetful(self: MemoryStore, sweep: object) -> object:
        answer = whole(self, sweep)  # type: ignore[arg-type]
        next(iter(self._tasks.values())).epoch -= 1  # type: ignore[assignment]
        return answer

    monkeypatch.setattr(MemoryStore, "_sweep", forgetful)
    with pytest.raises(AssertionError, match="epoch"):
        async for _ in crash_points(PLAN, INPUTS, tools=FAKES, approve_all=True):
            pass
