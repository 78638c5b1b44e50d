"""Records: what a dataclass would do, though their `__init__` is not written before the first one is made."""

import sys
from dataclasses import FrozenInstanceError, field, replace

import pytest

from everstep.domain.record import hot_record, record


@record
class Point:
    x: int
    y: int = 2
    tags: list[str] = field(default_factory=list)


@hot_record
class Hot:
    x: int
    y: int = 2
    z: int = field(default=3, kw_only=True)


@record
class Place(Point):
    name: str


@record
class Empty:
    """Nothing to say."""


def test_fields_are_named_and_have_their_defaults() -> None:
    one = Point(x=1)
    assert (one.x, one.y, one.tags) == (1, 2, [])
    assert one == Point(x=1, y=2, tags=[])
    assert one != Point(x=2)
    assert repr(one) == "Point(x=1, y=2, tags=[])"
    assert Empty() == Empty()


def test_a_default_that_is_made_is_made_for_each() -> None:
    assert Point(x=1).tags is not Point(x=1).tags
    given = ["a"]
    assert Point(x=1, tags=given).tags is given


def test_what_is_missing_or_too_much_is_refused_the_first_time_and_later() -> None:
    @record
    class Fresh:
        x: int

    for _ in range(2):
        with pytest.raises(TypeError, match=r"missing 1 required keyword-only argument: 'x'"):
            Fresh()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            Fresh(x=1, z=2)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="positional"):
            Fresh(1)  # type: ignore[call-arg]


def test_hot_records_take_their_fields_by_position() -> None:
    assert Hot(1) == Hot(x=1, y=2)
    assert (Hot(1, 5).y, Hot(1, 5, z=7).z) == (5, 7)
    with pytest.raises(TypeError):
        Hot(1, 2, 3)


def test_one_that_extends_another_has_all_fields() -> None:
    one = Place(x=1, name="here")
    assert (one.x, one.y, one.name) == (1, 2, "here")
    assert isinstance(one, Point)
    assert Point(x=1) != one


def test_one_is_made_from_another() -> None:
    one = Point(x=1, tags=["a"])
    assert replace(one, y=9) == Point(x=1, y=9, tags=["a"])
    assert hash(Hot(1)) == hash(Hot(1))


def test_nothing_is_compiled_before_the_first_one() -> None:
    @record
    class Fresh:
        x: int

    before = Fresh.__init__
    Fresh(x=1)
    after = Fresh.__init__
    Fresh(x=2)
    assert before is not after
    assert Fresh.__init__ is after


@pytest.mark.skipif(not sys.flags.dev_mode, reason="records are frozen under `python -X dev`, as in `make check`")
def test_in_development_nobody_writes_to_one() -> None:
    with pytest.raises(FrozenInstanceError):
        Point(x=1).x = 2  # type: ignore[misc]
