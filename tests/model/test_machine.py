"""Random commands, failures and crashes against the small model: after each of them the engine shows what it says."""

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from everstep.authoring.plan import Plan
from everstep.domain.errors import Conflict
from everstep.domain.ids import StepPath
from everstep.facade.task import Task
from everstep.testing.engine import TestEngine
from tests.model.model import STEPS, TERMINAL, Model, Step
from tests.model.verdict import verdict
from tests.model.world import RAISES, World
from tests.unit.explained import check_explanation

T = TypeVar("T")
EXAMPLES: Final = int(os.environ.get("EVERSTEP_TEST_EXAMPLES", "50"))
"""`make torture` has more of them."""
STEPS_EACH: Final = 50
CRASHES_MAX: Final = 4
"""Fewer than make a task a suspect for good."""

ANSWERS: Final = {
    "toolError": ("retry", "supply_output", "skip", "fail"),
    "uncertainOutcome": ("happened", "not_happened", "skip", "fail"),
    "unresolvedDependency": ("skip",),
    "approvalRequired": ("approve", "approve", "reject"),
}
ONCE_MORE: Final = {
    "toolError": "supply_output",
    "uncertainOutcome": "not_happened",
    "unresolvedDependency": "skip",
    "approvalRequired": "approve",
}
"""What brings every question to an end."""

A_STEP: Final = st.tuples(
    st.sampled_from(("fail", "continue", "pause")),
    st.sampled_from(("pure", "idempotent", "once")),
    st.sampled_from((False, False, True)),
)
RETRIES_MAX: Final = 3


def plan_of(steps: dict[str, Step]) -> Plan:
    needs: dict[str, dict[str, Any]] = {"b1": {"needs": []}, "b2": {"needs": ["b1"]}}
    return Plan.from_dict(
        {
            "name": "model",
            "parallel": 2,
            "steps": [
                {
                    "id": name,
                    "tool": f"model.{step.effect}",
                    "on_error": step.on_error,
                    "retry": {"times": 1, "delay": "1s"},
                    **({"approve": True} if step.gated else {}),
                    **needs.get(name, {}),
                }
                for name, step in steps.items()
            ],
            "outputs": {name: f"${{default({name}, null)}}" for name in steps},
        }
    )


class Machine(RuleBasedStateMachine):
    """One task in virtual time, and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = World()
        self.engine = TestEngine(self.world.tools())
        self.crashes = 0
        self.made = 0
        self.retries = 0
        self.sound = False

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        async def and_settle() -> T:
            try:
                return await work
            finally:
                await self.engine.clock.settle()

        return self.loop.run_until_complete(and_settle())

    @initialize(said=st.tuples(*(A_STEP for _ in STEPS)))
    def begin(self, said: tuple[tuple[str, str, bool], ...]) -> None:
        steps = {name: Step(*words) for name, words in zip(STEPS, said, strict=True)}
        self.model = Model(steps)
        self.do(self.engine.open())
        self.task: Task = self.do(self.engine.start(plan_of(steps)))
        self.model.begin()

    def teardown(self) -> None:
        try:
            if self.sound:
                self._to_the_end()
        finally:
            self.do(self.engine.close())
            self.loop.close()

    # --- the world ---

    @precondition(lambda self: self.model.in_flight)
    @rule(data=st.data(), how=st.sampled_from(("ok", "ok", "ok", *RAISES)))
    def a_call_ends(self, data: st.DataObject, how: str) -> None:
        self._end(data.draw(st.sampled_from(self.model.in_flight)), how)

    @rule()
    def time_passes(self) -> None:
        self.do(self.engine.clock.advance("31s"))
        self.model.time_passes()

    @precondition(lambda self: self.crashes < CRASHES_MAX)
    @rule()
    def the_engine_dies(self) -> None:
        self.crashes += 1
        self.do(self.engine.crash())
        self.task = self.do(self.engine.get(self.task.id))
        self.model.crash()

    # --- people ---

    @rule()
    def pause(self) -> None:
        self._command(self.task.pause(), allowed=self.model.pause())

    @rule()
    def resume(self) -> None:
        self._command(self.task.resume(), allowed=self.model.resume())

    @precondition(lambda self: self.made > 4)
    @rule(sure=st.sampled_from((False, False, False, True)))
    def cancel(self, sure: bool) -> None:
        if sure:
            self._command(self.task.cancel(), allowed=self.model.cancel())

    @precondition(lambda self: self.model.ended is None and self.model.questions)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.model.questions))
        self._answer(name, data.draw(st.sampled_from(ANSWERS[self.model.steps[name].why])))

    @precondition(lambda self: self.made > 2)
    @rule(name=st.sampled_from(STEPS), sure=st.sampled_from((False, False, True)))
    def leave_out(self, name: str, sure: bool) -> None:
        if sure:
            revision = self.do(self.task.refresh()).revision
            ops: list[dict[str, Any]] = [{"op": "skip", "id": name}]
            self._command(self.task.patch(ops, revision), allowed=self.model.leave_out(name))

    @precondition(lambda self: self.retries < RETRIES_MAX)
    @rule(name=st.sampled_from(STEPS))
    def retry(self, name: str) -> None:
        allowed = self.model.retry(name)
        self.retries += allowed
        self._command(self.task.retry(name, confirm_effects=True), allowed=allowed)

    # --- what must hold ---

    @invariant()
    def the_engine_shows_what_the_model_says(self) -> None:
        self.sound = False
        task, model = self.loop.run_until_complete(self.task.refresh()), self.model
        assert task.status == model.status
        check_explanation(task._state)
        assert {name: task.steps[StepPath(name)].status.value for name in STEPS} == {
            n: s.shown for n, s in model.steps.items()
        }
        assert self.world.open == set(model.in_flight)
        asked = {pause.step: pause.type for pause in task.pauses if pause.step is not None}
        assert asked == {name: model.steps[name].why for name in model.questions}
        for name, step in model.steps.items():
            keys = self.world.keys(name)
            assert len(keys) == step.calls, f"{name} was called {len(keys)} times"
            assert [keys.index(key) for key in keys] == [step.tries.index(one) for one in step.tries[:-1]]
        self.sound = True

    def _to_the_end(self) -> None:
        """Everything is answered and every call succeeds: the task ends, and its history stands before the checker."""
        for _ in range(40):
            if self.model.ended is not None:
                break
            self.resume()
            for name in self.model.questions:
                self._answer(name, ONCE_MORE[self.model.steps[name].why])
            for name in self.model.in_flight:
                self._end(name, "ok")
            self.time_passes()
            self.the_engine_shows_what_the_model_says()
        assert self.model.ended in TERMINAL
        if self.model.ended == "completed":
            outputs = {name: step.output for name, step in self.model.steps.items()}
            assert self.do(self.task.refresh()).outputs == outputs
        assert self.do(verdict(self.do(self.task.refresh()))) == []

    def _end(self, name: str, how: str) -> None:
        self.made += 1

        async def end() -> None:
            self.world.end(name, how, self.made)

        self.do(end())
        self.model.finish(name, how, self.made)

    def _answer(self, name: str, given: str) -> None:
        self.made += 1
        (pause,) = [pause for pause in self.do(self.task.refresh()).pauses if pause.step == name]
        say = getattr(pause, given)
        words: tuple[Any, ...] = {"happened": (self.made,), "supply_output": (self.made,), "reject": ("no",)}.get(
            given, ()
        )
        self.do(say(*words))
        self.model.answer(name, given, self.made)

    def _command(self, command: Coroutine[Any, Any, object], *, allowed: bool) -> None:
        if allowed:
            self.do(command)
        else:
            with pytest.raises(Conflict):
                self.do(command)


Machine.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS_EACH,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestMachine = pytest.mark.long(pytest.mark.req("4.5")(Machine.TestCase))
