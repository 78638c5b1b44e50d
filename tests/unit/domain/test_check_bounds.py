"""Checking costs no more than the plan is long, whatever the plan says."""

import sys
from types import FrameType

import pytest

from everstep.domain.check import problems
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import PROBLEMS_MAX
from everstep.domain.values import JsonObject
from everstep.wire.schema import compile_schema
from tests.unit.known_tools import TOOLS, check, plan, spec, step


def calls_to_check(value: PlanSpec) -> int:
    """How many functions a check calls: the same on every machine."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        problems(value, TOOLS, compile_schema)
    finally:
        sys.setprofile(None)
    return count


def chain(count: int) -> JsonObject:
    return plan(*[
        step(
            f"s{at}",
            title="Step ${s0.indexed} of many",
            with_={"query": f"${{s{at - 1}.indexed}} ${{s{max(0, at - 7)}.results[0].url}}" if at else "x"},
            when="${s0.indexed > 3 and len(s0.results) < 10}" if at else True,
        )
        for at in range(count)
    ])  # fmt: skip


def fan(count: int) -> JsonObject:
    """Every step needs all before it."""
    return plan(*[step(f"s{at}", needs=[f"s{before}" for before in range(at)]) for at in range(count)])


def strangers(count: int) -> JsonObject:
    """Every name is wrong, and nearly right."""
    return plan(*[step(f"step_{at}", f"search.loca{at}", with_={"query": f"${{stpe_{at}.x}}"}) for at in range(count)])


def circle(count: int) -> JsonObject:
    return plan(*[step(f"s{at}", needs=[f"s{(at + 1) % count}"]) for at in range(count)])


@pytest.mark.parametrize("make", [chain, strangers, circle])
def test_twice_the_steps_twice_the_work(make: object) -> None:
    assert callable(make)
    half, whole = calls_to_check(spec(make(150))), calls_to_check(spec(make(300)))
    assert whole < 2.3 * half
    assert whole < 300 * 1_000


def test_many_needs() -> None:
    """20,000 edges are looked at once each."""
    assert calls_to_check(spec(fan(200))) < 200 * 500


def test_problems_are_bounded() -> None:
    many = plan(step("a", with_={"query": "".join(f"${{x{at}}}" for at in range(5_000))}))
    assert len(check(many)) == PROBLEMS_MAX


def test_many_circles_are_named_one_by_one() -> None:
    pairs = plan(*[step(f"s{at}", needs=[f"s{at ^ 1}"]) for at in range(100)])
    found = check(pairs)
    assert {problem.code for problem in found} == {"plan.cycle"}
    assert len(found) == 10


def test_a_long_circle_is_shortened() -> None:
    (found,) = check(circle(300))
    assert found.message == "these wait for each other: s0 → s1 → s2 → s3 → s4 → s5 → … → s0"
