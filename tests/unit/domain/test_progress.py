"""Progress: never falls, is 1 only at the end; titles and bindings as people read them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everstep.domain import events as e
from everstep.domain.ids import StepPath
from everstep.domain.plan import StepSpec
from everstep.domain.progress import item_counts, progress_of
from everstep.domain.titles import bound_from, step_title
from tests.unit.histories import History, plan, running, sealed, step

A = StepPath("a")


def test_steps_count_alike_and_the_last_percent_is_for_the_end() -> None:
    history = running(step("a"), step("b"))
    assert progress_of(history.state).fraction == 0
    assert progress_of(history.state).current == (A,)
    history.completed("a").called("b").completed("b")
    progress = progress_of(history.state)
    assert (progress.fraction, progress.done, progress.total, progress.current) == (0.99, 2, 2, ())
    history.say(e.TaskCompleted(outcome="success", outputs=sealed({}), issues=(), duration_s=1, work_s=1))
    assert progress_of(history.state).fraction == 1


def test_a_plan_without_steps_has_nothing_done() -> None:
    assert progress_of(History(plan()).state).fraction == 0


@pytest.mark.req("1.3", "C.4", "TU.4")
@given(st.lists(st.sampled_from(["completed", "skipped"]), min_size=1, max_size=8), st.integers(0, 3))
def test_it_never_falls(ends: list[str], items: int) -> None:
    history = History(plan(*(step(f"s{at}") for at in range(len(ends))), step("each", for_each=[]))).claimed()
    seen = [progress_of(history.state).fraction]
    for at, end in enumerate(ends):
        history.called(f"s{at}")
        seen.append(progress_of(history.state).fraction)
        if end == "completed":
            history.completed(f"s{at}")
        else:
            history.say(e.StepSkipped(reason=e.SkipReason.REQUESTED), f"s{at}")
        seen.append(progress_of(history.state).fraction)
    history.say(e.StepStarted(title="each", items=sealed([*range(items)])), "each")
    for index in range(items):
        history.called(f"each[{index}]")
        seen.append(progress_of(history.state).fraction)
        history.completed(f"each[{index}]")
        seen.append(progress_of(history.state).fraction)
    history.say(_done(), "each")
    seen.append(progress_of(history.state).fraction)
    assert seen == sorted(seen)
    assert all(fraction <= 0.99 for fraction in seen)


@pytest.mark.req("1.3", "C.4", "TU.4")
@settings(max_examples=40)
@given(st.data())
def test_it_never_falls_whatever_is_learned_on_the_way(data: st.DataObject) -> None:
    """Weights are what steps are expected to take, and history changes them with every look."""
    names = [f"s{at}" for at in range(data.draw(st.integers(1, 6)))]
    history = History(plan(*(step(name) for name in names))).claimed()
    weight = st.one_of(st.none(), st.floats(0, 1e6))
    seen = [0.0]

    def look() -> None:
        drawn = {StepPath(name): data.draw(weight) for name in names}
        known = {path: seconds for path, seconds in drawn.items() if seconds is not None}
        seen.append(progress_of(history.state, known, seen[-1]).fraction)

    for name in names:
        look()
        history.called(name)
        look()
        history.completed(name)
        look()
    assert seen == sorted(seen)
    assert seen[-1] <= 0.99
    history.say(e.TaskCompleted(outcome="success", outputs=sealed({}), issues=(), duration_s=1, work_s=1))
    look()
    assert seen[-1] == 1


def test_a_step_weighs_what_it_is_expected_to_take() -> None:
    history = running(step("a"), step("b"))
    history.completed("a")
    assert progress_of(history.state, {A: 9.0, StepPath("b"): 1.0}).fraction == 0.9
    assert progress_of(history.state, {A: 1.0, StepPath("b"): 9.0}).fraction == 0.1
    assert progress_of(history.state, {StepPath("b"): 9.0}).fraction == 0.5, "who is not known weighs as usual"
    assert 0 < progress_of(history.state, {A: 0.0, StepPath("b"): 9.0}).fraction < 0.1, "every end is seen"


def _done() -> e.StepCompleted:
    return e.StepCompleted(attempt=None, output=sealed([]), summary=None, via="tool", tool_used=None, duration_s=1)


def test_items_are_counted_by_how_they_ended() -> None:
    history = History(plan(step("a", for_each=[1, 2, 3]))).claimed()
    assert item_counts(history.state, history.state.steps[A]) is None
    history.say(e.StepStarted(title="A", items=sealed([1, 2, 3])), "a")
    history.called("a[0]").completed("a[0]").called("a[1]")
    history.say(e.StepSkipped(reason=e.SkipReason.CONDITION), "a[1]")
    counts = item_counts(history.state, history.state.steps[A])
    assert counts == {"total": 3, "completed": 1, "failed": 0, "skipped": 1}
    assert progress_of(history.state).fraction == round(2 / 3, 4)


def test_titles_show_what_is_known() -> None:
    steps = (step("a"), step("b", title="Send ${a.n} to ${inputs.who}"), step("c", title="Read", for_each=[1]))
    history = running(*steps)
    assert step_title(history.state, A) == "a"
    assert "output from a" in step_title(history.state, StepPath("b"))
    history.completed("a", {"n": 3})
    history.state.inputs.value = {"who": "Ana"}
    assert step_title(history.state, StepPath("b")) == "Send 3 to Ana"
    assert step_title(history.state, StepPath("c[0]")) == "Read [0]"


def test_bound_arguments_are_those_with_a_binding() -> None:
    spec: StepSpec = step(
        "a", arguments={"query": "${inputs.topic}", "n": 3, "deep": {"x": ["${b.y}"]}, "text": "$${x}"}
    )
    assert bound_from(spec) == {"query": "${inputs.topic}", "deep": {"x": ["${b.y}"]}}
