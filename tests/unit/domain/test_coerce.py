"""Arguments in another JSON type: changed where nothing is lost, else left for the schema to refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain.coerce import coerce
from everstep.domain.values import JsonValue


@pytest.mark.req("6.3")
@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        ("integer", "3", 3),
        ("integer", "-12", -12),
        ("number", "2.5", 2.5),
        ("number", "7", 7),
        ("boolean", "true", True),
        ("string", 2026, "2026"),
    ],
)
def test_what_loses_nothing_is_changed(kind: str, written: JsonValue, meant: JsonValue) -> None:
    schema: JsonValue = {"properties": {"a": {"type": kind}, "b": {"items": {"type": kind}}}}
    assert coerce(schema, {"a": written, "b": [written]}) == ({"a": meant, "b": [meant]}, ("/a", "/b/0"))


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("integer", "03"),
        ("integer", "3.0"),
        ("integer", " 3"),
        ("integer", "-0"),
        ("integer", "9" * 17),
        ("integer", "٣"),
        ("number", "1e3"),
        ("number", "1.50"),
        ("number", "nan"),
        ("boolean", "yes"),
        ("boolean", "True"),
        ("boolean", 1),
        ("string", 1.5),
        ("string", True),
        ("array", "a"),
    ],
)
def test_what_could_mean_two_things_is_left(kind: str, written: JsonValue) -> None:
    assert coerce({"properties": {"a": {"type": kind}}}, {"a": written}) == ({"a": written}, ())


@given(st.text(max_size=12), st.sampled_from(["integer", "number", "boolean"]))
def test_it_reads_back_as_it_was_written(text: str, kind: str) -> None:
    value, places = coerce({"type": kind}, text)
    if places:
        assert str(value).lower() == text
    else:
        assert value == text
