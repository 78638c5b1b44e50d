"""What functions return, as JSON; what JSON cannot say, and what has no end, is left to the codec."""

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from everstep.authoring.dump import dump
from everstep.domain.values import DEPTH_MAX, NotJson
from everstep.wire.values import canonical


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Found:
    place: Path
    sizes: tuple[int, ...]


def test_json_is_not_copied() -> None:
    value = {"a": [1, {"b": None}]}
    assert dump(value) is value


def test_what_python_says_in_other_words() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    found = {"c": Colour.RED, "f": [Found(Path("a/b"), (1, 2))], "at": at, "id": UUID(int=1)}
    assert dump(found) == {
        "c": "red",
        "f": [{"place": "a/b", "sizes": [1, 2]}],
        "at": "2026-01-02T00:00:00+00:00",
        "id": "00000000-0000-0000-0000-000000000001",
    }


def nested(leaf: Any, depth: int) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def doubled(leaf: Any, depth: int) -> Any:
    for _ in range(depth):
        leaf = [leaf, leaf]
    return leaf


def holding_itself(first: Any) -> Any:
    value = [first]
    value += [value, value]
    return value


@pytest.mark.parametrize("leaf", [1, (1,)], ids=["plain", "not plain"])
def test_what_has_no_end_is_refused_with_its_place(leaf: Any) -> None:
    """Neither a deep value nor one that holds itself costs more than a look."""
    for value in (nested(leaf, DEPTH_MAX + 1), nested(leaf, 100_000), holding_itself(leaf)):
        with pytest.raises(NotJson, match=f"nested more than {DEPTH_MAX} deep"):
            canonical(dump(value), bytes_max=10_000)


@pytest.mark.parametrize("leaf", [1, (1,)], ids=["plain", "not plain"])
def test_what_holds_the_same_again_and_again_is_too_large(leaf: Any) -> None:
    with pytest.raises(NotJson, match="more than 10000 bytes"):
        canonical(dump(doubled(leaf, DEPTH_MAX - 2)), bytes_max=10_000)


def test_as_deep_as_allowed_is_kept() -> None:
    assert canonical(dump(nested((1,), DEPTH_MAX - 1))) == canonical(nested([1], DEPTH_MAX - 1))


def test_what_is_held_twice_is_said_twice() -> None:
    both = (1, 2)
    assert dump([both, both, [both]]) == [[1, 2], [1, 2], [[1, 2]]]
