"""Patches as a rule: refused with a type, or a plan that checks; what has begun is never touched."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain import events as e
from everstep.domain.changes import changed
from everstep.domain.errors import RequestError
from everstep.domain.graph import wire_plan
from everstep.domain.ids import Millis, StepPath
from everstep.domain.patch import Op, revise
from everstep.domain.plan import ApproveSpec, Effect, StepSpec
from everstep.domain.states import StepStatus
from everstep.domain.task import TaskState
from tests.unit.histories import History, plan, step

IDS = ("a", "b", "c", "d", "e", "f")
EFFECTS = st.sampled_from([None, *Effect])
APPROVALS = st.none() | st.builds(
    ApproveSpec,
    title=st.just("?"),
    edit=st.sampled_from([(), ("x",), ("x", "y"), True]),
    by=st.sampled_from(["human", "llm", "anyone"]),
    within_ms=st.sampled_from([None, 1000, 2000]),
    on_timeout=st.sampled_from([None, "reject", "wait", "approve"]),
)
STEPS = st.builds(
    lambda name, effect, approve: step(name, effect=effect, approve=approve), st.sampled_from(IDS), EFFECTS, APPROVALS
)
OPS = st.builds(
    Op,
    op=st.sampled_from(["append", "replace", "set", "skip"]),
    id=st.sampled_from(IDS),
    step=STEPS,
    after=st.none() | st.sampled_from(IDS),
    arguments=st.dictionaries(st.sampled_from("xyz"), st.none() | st.integers(), max_size=2),
)


def effect_of(spec: StepSpec) -> Effect:
    return spec.effect or Effect.PURE


def task(begun: int) -> TaskState:
    """A task of four steps of which some have ended, and the next is under way."""
    steps = [step(name, arguments={"x": 1}, approve=ApproveSpec(title="?", edit=("x",))) for name in IDS[:4]]
    history = History(plan(*steps)).claimed()
    for name in IDS[:begun]:
        history.called(name)
        if name != IDS[begun - 1]:
            history.completed(name)
    return history.state


@given(begun=st.integers(0, 4), ops=st.lists(OPS, min_size=1, max_size=4))
def test_refused_or_a_plan_whose_begun_steps_are_the_same(begun: int, ops: list[Op]) -> None:
    state = task(begun)
    before = {spec.id: spec for spec in state.plan.steps}
    try:
        revision = revise(state, ops, effect_of)
    except RequestError:
        return
    assert revision.plan == changed(state.plan, revision.diff), "the journal tells how the plan came about"
    after = {spec.id: spec for spec in revision.plan.steps}
    for name in IDS[:4]:
        old, new = before[name], after[name]
        if state.steps[StepPath(name)].status is not StepStatus.PENDING:
            assert new == old
        assert effect_of(new).care <= effect_of(old).care
        assert old.approve is None or new.approve is not None
    assert len({spec.id for spec in revision.plan.steps}) == len(revision.plan.steps)
    wire_plan(revision.plan)


HUMAN = ApproveSpec(title="?", edit=("x",), within_ms=Millis(1000), on_timeout="reject")


@pytest.mark.parametrize(
    "looser",
    [
        None,
        replace(HUMAN, by="llm"),
        replace(HUMAN, edit=True),
        replace(HUMAN, edit=("x", "y")),
        replace(HUMAN, within_ms=Millis(2000)),
        replace(HUMAN, within_ms=None),
        replace(HUMAN, on_timeout="approve"),
    ],
)
def test_no_approval_is_loosened(looser: ApproveSpec | None) -> None:
    state = History(plan(step("a", approve=HUMAN))).state
    with pytest.raises(RequestError) as refused:
        revise(state, [Op(op="replace", id="a", step=step("a", approve=looser))], effect_of)
    assert refused.value.code == "patch.approval_loosened"
    stricter = replace(HUMAN, edit=(), within_ms=Millis(500))
    revise(state, [Op(op="replace", id="a", step=step("a", approve=stricter))], effect_of)


def test_null_takes_an_argument_away() -> None:
    state = History(plan(step("a", arguments={"x": 1, "y": None, "z": 3}))).state
    revision = revise(state, [Op(op="set", id="a", arguments={"x": None, "z": 4})], effect_of)
    assert revision.plan.steps[0].arguments == {"y": None, "z": 4}


def test_a_revision_that_is_folded_is_the_plan_that_was_checked() -> None:
    history = History(plan(step("a"), step("b")))
    revision = revise(history.state, [Op(op="append", id="", after="a", step=step("n"))], effect_of)
    body = e.PlanRevised(
        revision=2, digest=history.state.plan_digest, base_digest=history.state.plan_digest, diff=revision.diff
    )
    state = history.say(body).state
    assert (state.plan, list(state.specs), state.revision) == (revision.plan, ["a", "n", "b"], 2)
