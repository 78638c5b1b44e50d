"""One table for every code: nothing is raised that no door can answer, and nothing leaves but what should."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import everstep
from everstep.domain.catalogue import ERROR_CODES
from everstep.domain.errors import EverstepError, LeaseLost, NotFound, PlanError
from everstep.domain.problem import Problem
from everstep.doors.errors import REFUSALS, REMEDIES, RETRY_AFTER_S, error_object, problem, refusal_of

SOURCES = Path(everstep.__file__).parent


def classes(kind: type[EverstepError] = EverstepError) -> Iterator[type[EverstepError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from classes(child)


@cache
def raised_codes() -> set[str]:
    """Every `code="…"` that is given to one of our exceptions anywhere in the product."""
    names = {kind.__name__ for kind in classes()}
    found = set()
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names:
                found |= {
                    word.value.value
                    for word in node.keywords
                    if word.arg == "code" and isinstance(word.value, ast.Constant)
                }
    return {str(code) for code in found if code is not None}


def test_every_error_has_a_row() -> None:
    assert {kind.code for kind in classes()} <= REFUSALS.keys()
    assert raised_codes() <= REFUSALS.keys()


def test_every_row_is_used() -> None:
    assert REFUSALS.keys() <= raised_codes() | {kind.code for kind in classes()}


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_a_row_says_all_that_a_door_needs(code: str) -> None:
    row = REFUSALS[code]
    assert 400 <= row.status <= 599
    assert row.exit in (1, 2, 3, 4, 5, 6, 9, 70)
    assert row.title[0].isupper()
    assert set(RETRY_AFTER_S) <= set(REFUSALS)


# The codes of the catalogue with their statuses and exits (interfaces, 4.1), as far as they exist.
CATALOGUE = {
    "bad_request": (400, 2), "too_large": (413, 2), "not_found": (404, 5), "method_not_allowed": (405, 5),
    "resync_required": (410, 5), "illegal_state": (409, 9), "answer_needed": (409, 9), "already_answered": (409, 9),
    "idempotency_conflict": (409, 9), "version_conflict": (412, 9), "plan_invalid": (422, 3),
    "inputs_invalid": (422, 3), "answer_invalid": (422, 3), "unknown_field": (422, 3), "internal": (500, 70),
    "not_ready": (503, 6), "overloaded": (503, 6), "store_unavailable": (503, 6), "store_full": (507, 6),
    "forbidden": (403, 4),
}  # fmt: skip


def test_statuses_and_exits_are_those_of_the_catalogue() -> None:
    assert {code: (REFUSALS[code].status, REFUSALS[code].exit) for code in CATALOGUE} == CATALOGUE


def test_a_refusal_carries_the_whole_error_object() -> None:
    said = problem(NotFound("no task 'x'", details={"near": "y"}))
    error = said.pop("error")
    assert said == {
        "type": "urn:everstep:error:not_found",
        "title": "There is no such thing",
        "status": 404,
        "detail": "no task 'x'",
    }
    assert isinstance(error, dict)
    assert str(error["id"]).startswith("e_")
    assert len(str(error["id"])) == 28
    assert list(error) == [
        "id", "code", "category", "message", "what_to_do", "step", "attempt", "retry", "impact", "suggestions",
        "details", "cause",
    ]  # fmt: skip
    assert error["details"] == {"near": "y"}


def test_a_plan_lists_all_its_problems() -> None:
    found = (
        Problem(code="plan.cycle", message="m", path="/steps/0"),
        Problem(code="plan.bad_name", message="n", path=""),
    )
    details = error_object(PlanError("bad", found))["details"]
    assert isinstance(details, dict)
    assert isinstance(details["problems"], list)
    assert len(details["problems"]) == 2


def test_two_refusals_have_two_ids_and_an_unknown_code_is_our_bug() -> None:
    error = EverstepError("x", code="made_up")
    assert error_object(error)["id"] != error_object(error)["id"]
    assert refusal_of(error).exit == 70
    assert refusal_of(LeaseLost("gone")).exit == 6


@pytest.mark.req("8.4")
def test_every_code_says_what_to_do_and_stands_in_the_reference() -> None:
    assert REMEDIES.keys() == REFUSALS.keys()
    assert all(REMEDIES.values())
    page = (Path(__file__).parents[3] / "docs/reference/errors.md").read_text(encoding="utf-8")
    named = {code for code in ERROR_CODES if not code.startswith("http_")} | REFUSALS.keys()
    assert [code for code in sorted(named) if f"`{code}`" not in page] == []
    assert "any other `http_4xx`" in page
