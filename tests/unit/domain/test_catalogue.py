"""Every code of a step has its row, and every row a title and a way on."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from everstep.domain.catalogue import ERROR_CODES, SAID
from everstep.domain.failure import Category, EffectState

SOURCE = Path(__file__).parents[3] / "src" / "everstep"
SPEAKERS = frozenset(
    {"Failure", "failure_of", "ToolError", "Transient", "Uncertain", "Misconfigured", "Denied", "Impossible"}
)


def codes_in(tree: ast.AST) -> Iterator[str]:
    """Codes written out where a failure is made: `code=` of any speaker, the first argument of `failure_of`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in SPEAKERS:
            said = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            if ast.unparse(node.func) == "failure_of":
                said += node.args[:1]
            yield from (part.value for part in said if isinstance(part, ast.Constant) and isinstance(part.value, str))


def test_every_code_in_the_source_has_a_row() -> None:
    said = {code for file in SOURCE.rglob("*.py") for code in codes_in(ast.parse(file.read_text("utf-8")))}
    assert len(said) > 10
    assert said - ERROR_CODES.keys() == set()


def test_the_finder_finds() -> None:
    tree = ast.parse("Failure(code='a'); ports.Denied('m', code='b'); failure_of('c', 'm'); other(code='d')")
    assert set(codes_in(tree)) == {"a", "b", "c"}


@pytest.mark.parametrize("code", ERROR_CODES)
def test_a_row_says_what_and_what_next(code: str) -> None:
    row = ERROR_CODES[code]
    assert row.title
    assert row.what_to_do
    assert not row.what_to_do.endswith(".")


def test_every_category_has_a_code_for_authors_who_give_none() -> None:
    assert SAID.keys() == set(Category)
    for category, code in SAID.items():
        assert ERROR_CODES[code].category is category


HTTP: dict[Category, dict[EffectState, tuple[int, ...]]] = {
    Category.TRANSIENT: {
        EffectState.NONE: (408, 425, 429, 503),
        EffectState.UNKNOWN: (500, 502, 504, 506, 520, 524, 599),
    },
    Category.CONFIGURATION: {EffectState.NONE: (400, 402, 404, 405, 406, 410, 415, 418, 422, 499, 501, 505)},
    Category.PERMISSION: {EffectState.NONE: (401, 403, 407, 451)},
    Category.LOGIC: {EffectState.NONE: (409, 412, 423, 428)},
    Category.RESOURCE: {EffectState.NONE: (413, 507)},
}


def test_http_rows() -> None:
    for category, states in HTTP.items():
        for effect_state, statuses in states.items():
            for status in statuses:
                row = ERROR_CODES[f"http_{status}"]
                assert (status, row.category, row.effect_state) == (status, category, effect_state)
    assert all(f"http_{status}" in ERROR_CODES for status in range(400, 600))
