"""Did you mean: synonyms first, then the closest name that is valid there, or nothing."""

import pytest

from everstep.domain.suggest import PLAN_KEYS, STEP_KEYS, did_you_mean, suggest


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("args", "with"), ("params", "with"), ("arguments", "with"), ("input", "with"),
        ("uses", "tool"), ("action", "tool"), ("call", "tool"), ("type", "tool"),
        ("depends_on", "needs"), ("after", "needs"), ("if", "when"), ("condition", "when"),
        ("foreach", "for_each"), ("loop", "for_each"), ("with_items", "for_each"),
        ("retries", "retry"), ("max_attempts", "retry"), ("continue-on-error", "on_error: continue"),
        ("optional", "on_error: continue"), ("output", "bind"), ("as", "bind"), ("max_parallel", "parallel"),
        ("concurrency", "parallel"), ("requires_approval", "approve"), ("confirm", "approve"),
        ("compensate", "undo"), ("rollback", "undo"),
    ],
)  # fmt: skip
def test_synonyms_of_step_keys(written: str, meant: str) -> None:
    assert suggest(written, ["tool", "with"], STEP_KEYS) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [("timeout", "limits.wall_time"), ("deadline", "limits.wall_time"), ("cleanup", "finally"), ("on_exit", "finally")],
)
def test_synonyms_of_plan_keys(written: str, meant: str) -> None:
    assert suggest(written, [], PLAN_KEYS) == meant


def test_closest_name() -> None:
    assert suggest("topci", ["topic", "to", "tone"]) == "topic"
    assert suggest("search.locl", ["search.local", "search.web"]) == "search.local"
    assert suggest("zebra", ["topic", "to"]) is None
    assert suggest("a" * 10_000, ["a" * 63]) is None


def test_one_line() -> None:
    assert did_you_mean("no tool 'x'", "y") == "no tool 'x' (did you mean 'y'?)"
    assert did_you_mean("no tool 'x'", None) == "no tool 'x'"
