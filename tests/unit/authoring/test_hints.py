"""Every supported hint: its schema, its way in, its way back. Every other one: refused with a way out."""

import sys
import typing
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, Required, TypedDict, Union

import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st

from everstep.authoring.dump import dump
from everstep.authoring.hints import shape_of
from everstep.authoring.shape import Arg, Place
from everstep.domain.handles import Artifact, Secret
from everstep.domain.ids import Digest
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.schema import compile_schema

HERE = Place(text="here")
Name = NewType("Name", str)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Word(StrEnum):
    YES = "yes"


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Page:
    url: str
    at: datetime
    points: list[Point] = field(default_factory=list)
    colour: Colour = Colour.RED


class Row(TypedDict):
    id: int
    note: NotRequired[str]


class Loose(TypedDict, total=False):
    id: Required[int]
    due: date


MOMENT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)
ID = uuid.UUID(int=7)
OBJECT: JsonObject = {"type": "object", "additionalProperties": False}

# hint, schema, JSON value, Python value
SUPPORTED: list[tuple[Any, JsonObject, JsonValue, object]] = [
    (str, {"type": "string"}, "a", "a"),
    (int, {"type": "integer"}, 3, 3),
    (float, {"type": "number"}, 1.5, 1.5),
    (bool, {"type": "boolean"}, True, True),
    (None, {"type": "null"}, None, None),
    (typing.List, {"type": "array"}, [1], [1]),  # noqa: UP006 -- users write it
    (typing.Dict, {"type": "object"}, {"a": 1}, {"a": 1}),  # noqa: UP006 -- users write it
    (typing_extensions.TypeAliasType("Alias", int), {"type": "integer"}, 3, 3),
    (Annotated[int, "nothing of ours"], {"type": "integer"}, 3, 3),
    (Any, {}, {"a": [1]}, {"a": [1]}),
    (object, {}, "x", "x"),
    (list, {"type": "array"}, [1, "a"], [1, "a"]),
    (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
    (list[date], {"type": "array", "items": {"type": "string", "format": "date"}}, ["2026-01-31"], [date(2026, 1, 31)]),
    (dict, {"type": "object"}, {"a": 1}, {"a": 1}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
    (
        dict[str, Path],
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"a": "b/c"},
        {"a": Path("b/c")},
    ),
    (tuple, {"type": "array"}, [1], (1,)),
    (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, [1, 2], (1, 2)),
    (
        tuple[uuid.UUID, ...],
        {"type": "array", "items": {"type": "string", "format": "uuid"}},
        [str(ID)],
        (ID,),
    ),
    (
        tuple[int, Colour],
        {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"enum": ["red", "blue"], "type": "string"}],
            "items": False,
            "minItems": 2,
            "maxItems": 2,
        },
        [1, "red"],
        (1, Colour.RED),
    ),
    (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, "b", "b"),
    (Literal["a", 1], {"enum": ["a", 1]}, 1, 1),
    (Colour, {"enum": ["red", "blue"], "type": "string"}, "blue", Colour.BLUE),
    (Level, {"enum": [1, 2]}, 2, Level.HIGH),
    (Word, {"enum": ["yes"], "type": "string"}, "yes", Word.YES),
    (int | None, {"type": ["integer", "null"]}, None, None),
    (Optional[str], {"type": ["string", "null"]}, "a", "a"),  # noqa: UP045 -- users write it
    (
        Union[int, Literal["all"]],  # noqa: UP007 -- users write it
        {"anyOf": [{"type": "integer"}, {"enum": ["all"], "type": "string"}]},
        "all",
        "all",
    ),
    (datetime, {"type": "string", "format": "date-time"}, "2026-01-31T12:30:00+00:00", MOMENT),
    (date, {"type": "string", "format": "date"}, "2026-01-31", date(2026, 1, 31)),
    (uuid.UUID, {"type": "string", "format": "uuid"}, str(ID), ID),
    (Path, {"type": "string"}, "a/b", Path("a/b")),
    (PurePosixPath, {"type": "string"}, "a/b", PurePosixPath("a/b")),
    (Name, {"type": "string"}, "a", "a"),
    (
        Point,
        OBJECT | {"properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}}, "required": ["x"]},
        {"x": 1, "y": 2},
        Point(1, 2),
    ),
    (
        Page,
        OBJECT
        | {
            "properties": {
                "url": {"type": "string"},
                "at": {"type": "string", "format": "date-time"},
                "points": {
                    "type": "array",
                    "items": OBJECT
                    | {
                        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                        "required": ["x"],
                    },
                },
                "colour": {"enum": ["red", "blue"], "type": "string", "default": "red"},
            },
            "required": ["url", "at"],
        },
        {"url": "u", "at": "2026-01-31T12:30:00+00:00", "points": [{"x": 1, "y": 0}], "colour": "blue"},
        Page("u", MOMENT, [Point(1)], Colour.BLUE),
    ),
    (
        Row,
        OBJECT | {"properties": {"id": {"type": "integer"}, "note": {"type": "string"}}, "required": ["id"]},
        {"id": 1},
        {"id": 1},
    ),
    (
        Loose,
        OBJECT
        | {"properties": {"id": {"type": "integer"}, "due": {"type": "string", "format": "date"}}, "required": ["id"]},
        {"id": 1, "due": "2026-01-31"},
        {"id": 1, "due": date(2026, 1, 31)},
    ),
    (
        Artifact,
        OBJECT
        | {
            "properties": {
                "name": {"type": "string"},
                "digest": {"type": "string"},
                "media_type": {"type": "string"},
                "bytes": {"type": "integer"},
            },
            "required": ["name", "digest", "media_type", "bytes"],
        },
        {"name": "a.png", "digest": "sha256:00", "media_type": "image/png", "bytes": 3},
        Artifact(name="a.png", digest=Digest("sha256:00"), media_type="image/png", bytes=3),
    ),
    (
        Annotated[str, Arg("Page to read", kind="checked", format="uri"), "ignored"],
        {"type": "string", "description": "Page to read", "x-everstep-kind": "checked", "format": "uri"},
        "https://example.test/",
        "https://example.test/",
    ),
    (
        list[Annotated[int, Arg(minimum=0, maximum=9)]],
        {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}},
        [3],
        [3],
    ),
]


@pytest.mark.parametrize(("hint", "schema", "value", "expected"), SUPPORTED, ids=range(len(SUPPORTED)))
def test_a_hint_gives_schema_value_and_back(hint: Any, schema: JsonObject, value: JsonValue, expected: object) -> None:
    shape = shape_of(hint, HERE)
    assert shape.schema == schema
    assert compile_schema(shape.schema)(value) == []
    assert (value if shape.load is None else shape.load(value)) == expected
    assert type(value) in shape.kinds
    assert dump(expected) == value
    if shape.plain:
        assert shape.load is None


def test_results_of_json_hints_need_no_conversion() -> None:
    for hint in (str, int, float, bool, None, list[str], dict[str, int], Row, int | None, Literal["a"]):
        assert shape_of(hint, HERE).plain


def test_the_more_particular_member_of_a_union_wins() -> None:
    load = shape_of(str | uuid.UUID | Point | Page | None, HERE).load
    assert load is not None
    assert load(str(ID)) == ID
    assert load("plain") == "plain"
    assert load({"x": 3}) == Point(3)
    assert load({"url": "u", "at": "2026-01-31T12:30:00Z"}) == Page("u", MOMENT)
    assert load(None) is None
    with pytest.raises(ValueError, match="fits none"):
        load(3)


def test_a_typed_dict_in_a_union_is_told_by_its_keys() -> None:
    load = shape_of(Loose | Point, HERE).load
    assert load is not None
    assert load({"x": 1}) == Point(1)
    assert load({"id": 1, "due": "2026-01-31"}) == {"id": 1, "due": date(2026, 1, 31)}


def test_a_secret_is_loaded_and_hides_itself() -> None:
    shape = shape_of(Secret, HERE)
    assert shape.schema == {"type": "string", "x-everstep-kind": "secret"}
    assert shape.load is not None
    secret = shape.load("hunter22")
    assert isinstance(secret, Secret)
    assert secret.reveal() == "hunter22"
    assert f"{secret} {secret!r} {secret:>9}" == "*** *** ***"
    with pytest.raises(TypeError, match="not copied"):
        __import__("pickle").dumps(secret)


@dataclass
class Tree:
    children: "list[Tree]"


@dataclass
class Sized:
    name: str
    size: int = field(init=False, default=0)


REFUSED: list[tuple[Any, str]] = [
    (bytes, "use str, or Artifact"),
    (set[int], r"use list\[T\]"),
    (frozenset, r"use list\[T\]"),
    (Sequence[int], r"use list\[T\]"),
    (Decimal, "use str or float"),
    (timedelta, "in seconds"),
    (complex, "two floats"),
    (dict[int, str], r"use dict\[str, T\]"),
    (HERE.__class__.refuse, "use JSON types"),
    (int.__class__, "use JSON types"),
    (Exception, "use JSON types"),
    (Literal[b"a"], "choices must be"),
    (Enum("Odd", {"A": (1, 2)}), "choices must be"),
    (Tree, "contains itself"),
    (Sized, "init=False"),
    (list[bytes], "use str, or Artifact"),
]


@pytest.mark.parametrize(("hint", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_hint_without_json_form_is_refused(hint: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        shape_of(hint, HERE)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(TypeError, match="no argument kind 'chekced'"):
        Arg(kind="chekced")  # type: ignore[arg-type]


def test_a_datetime_without_zone_is_not_taken() -> None:
    load = shape_of(datetime, HERE).load
    assert load is not None
    with pytest.raises(ValueError, match="no time zone"):
        load("2026-01-31T12:00:00")


class Model:
    """What the code needs of a pydantic model, since pydantic itself is no part of ours."""

    def __init__(self, n: int) -> None:
        self.n = n

    @staticmethod
    def model_json_schema() -> JsonObject:
        inner: JsonObject = {"type": "integer"}
        return {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"], "$defs": {"N": inner}}

    @classmethod
    def model_validate(cls, value: dict[str, int]) -> "Model":
        return cls(**value)

    def model_dump(self, *, mode: str) -> JsonValue:
        return {"n": self.n, "mode": mode}


class Endless(Model):
    @staticmethod
    def model_json_schema() -> JsonObject:
        return {"$ref": "#/$defs/E", "$defs": {"E": {"properties": {"e": {"$ref": "#/$defs/E"}}}}}


def test_pydantic_models_are_understood_when_pydantic_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="no JSON form"):
        shape_of(Model, HERE)
    module = ModuleType("pydantic")
    module.__dict__["BaseModel"] = Model
    monkeypatch.setitem(sys.modules, "pydantic", module)
    shape = shape_of(list[Model], HERE)
    assert shape.schema["items"] == {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert shape.load is not None
    loaded = shape.load([{"n": 3}])
    assert isinstance(loaded, list)
    assert loaded[0].n == 3
    assert dump(loaded) == [{"n": 3, "mode": "json"}]
    with pytest.raises(TypeError, match="contains itself"):
        shape_of(Endless, HERE)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_json_is_dumped_as_it_is(value: JsonValue) -> None:
    assert dump(value) == value


def test_what_json_cannot_say_is_left_for_the_codec_to_refuse() -> None:
    thing = object()
    assert dump({"a": (thing, {1})}) == {"a": [thing, {1}]}


def test_subclasses_of_json_types_become_plain() -> None:
    class Text(str):
        __slots__ = ()

    for value, expected in ((Text("a"), "a"), (Level.LOW, 1), (type("F", (float,), {})(1.5), 1.5)):
        dumped = dump(value)
        assert dumped == expected
        assert type(dumped) is type(expected)


def test_a_naive_result_is_local_time() -> None:
    naive = datetime(2026, 1, 31, 12, 0)  # noqa: DTZ001 -- what users return
    assert dump(naive) == naive.astimezone().isoformat()
