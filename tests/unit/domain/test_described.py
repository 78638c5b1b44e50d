"""What schemas say about the inside of values, and which kinds of arguments they declare."""

import pytest

from everstep.domain.described import ANYTHING, Described, NoField, field, type_of, types
from everstep.domain.facts import ArgumentKind, kind_at, kinds_of
from everstep.domain.values import JsonObject, JsonValue

TEXT: JsonObject = {"type": "string"}
ITEM: JsonObject = {"type": "object", "properties": {"a": TEXT, "next": {"$ref": "#/$defs/item"}}}
WHOLE: JsonObject = {"$defs": {"item": ITEM, "loop": {"$ref": "#/$defs/loop"}, "a/b": TEXT}}


@pytest.mark.parametrize(
    ("schema", "key", "found"),
    [
        (ITEM, "a", Described(schema=TEXT)),
        (ITEM, "b", NoField(names=("a", "next"))),
        ({"properties": {"a": True}}, "a", Described(schema=ANYTHING)),
        ({**ITEM, "additionalProperties": True}, "b", Described(schema=ANYTHING)),
        ({**ITEM, "additionalProperties": TEXT}, "b", Described(schema=TEXT)),
        ({**ITEM, "patternProperties": {}}, "b", Described(schema=ANYTHING)),
        ({"type": "object"}, "b", Described(schema=ANYTHING)),
        ({"type": "object", "additionalProperties": False}, "b", NoField()),
        ({}, "b", Described(schema=ANYTHING)),
        ({}, 0, Described(schema=ANYTHING)),
        (TEXT, "b", NoField()),
        (TEXT, 0, NoField()),
        ({"type": ["object", "null"], "properties": {"a": TEXT}}, "a", Described(schema=TEXT)),
        ({"type": "array", "items": TEXT}, 3, Described(schema=TEXT)),
        ({"type": "array", "items": TEXT}, -1, Described(schema=TEXT)),
        ({"type": "array", "items": TEXT}, "a", NoField()),
        ({"type": "array", "prefixItems": [TEXT], "items": ITEM}, 0, Described(schema=TEXT)),
        ({"type": "array", "prefixItems": [TEXT], "items": ITEM}, 1, Described(schema=ITEM)),
        ({"type": "array", "prefixItems": [TEXT], "items": ITEM}, -1, Described(schema=ANYTHING)),
        ({"$ref": "#/$defs/item"}, "a", Described(schema=TEXT)),
        ({"$ref": "#/$defs/a~1b"}, "a", NoField()),
        ({"$ref": "#/$defs/none"}, "a", Described(schema=ANYTHING)),
        ({"$ref": "#/$defs/loop"}, "a", Described(schema=ANYTHING)),
        ({"anyOf": [{"type": "null"}, ITEM]}, "a", Described(schema=TEXT)),
        ({"anyOf": [{"type": "null"}, ITEM]}, "b", NoField(names=("a", "next"))),
        ({"allOf": [ITEM, {"properties": {"b": TEXT}}]}, "b", Described(schema=TEXT)),
    ],
)
def test_fields(schema: JsonObject, key: str | int, found: object) -> None:
    assert field(schema, key, WHOLE) == found


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (TEXT, {"string"}),
        ({"type": ["integer", "null"]}, {"integer", "null"}),
        ({"const": 1.5}, {"number"}),
        ({"enum": [1, "a", None]}, {"integer", "string", "null"}),
        ({"properties": {}}, {"object"}),
        ({"anyOf": [TEXT, {"const": True}]}, {"string", "boolean"}),
        ({"anyOf": [TEXT, {}]}, None),
        ({"$ref": "#/$defs/item"}, {"object"}),
        ({"$ref": "#/$defs/loop"}, None),
        ({}, None),
    ],
)
def test_types(schema: JsonObject, found: set[str] | None) -> None:
    assert types(schema, WHOLE) == found


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "null"), (True, "boolean"), (1, "integer"), (1.5, "number"), ("", "string"), ([], "array"), ({}, "object")],
)
def test_type_of(value: JsonValue, name: str) -> None:
    assert type_of(value) == name


ARGUMENTS: JsonObject = {
    "type": "object",
    "properties": {
        "argv": {
            "type": "array",
            "prefixItems": [{"x-everstep-kind": "literal"}],
            "items": {"x-everstep-kind": "checked"},
        },
        "env": {"type": "object", "additionalProperties": {"x-everstep-kind": "secret"}},
        "url": {"type": "string", "x-everstep-kind": "checked"},
        "deep": {"x-everstep-kind": "checked", "properties": {"text": {"x-everstep-kind": "opaque"}}},
        "odd": {"x-everstep-kind": "unheard of"},
        "text": TEXT,
    },
}


@pytest.mark.parametrize(
    ("pointer", "kind"),
    [
        ("/argv/0", "literal"),
        ("/argv/1", "checked"),
        ("/argv/7/x", "checked"),
        ("/env/TOKEN", "secret"),
        ("/url", "checked"),
        ("/deep", "checked"),
        ("/deep/other/0", "checked"),
        ("/deep/text", "opaque"),
        ("/text", "opaque"),
        ("/odd", "opaque"),
        ("/unknown", "opaque"),
        ("", "opaque"),
    ],
)
def test_the_place_decides_the_kind(pointer: str, kind: str) -> None:
    assert kind_at(kinds_of(ARGUMENTS), pointer) == kind


def test_what_is_not_said_can_be_checked_by_default() -> None:
    kinds = kinds_of({"properties": {"a": {"x-everstep-kind": "opaque"}}}, ArgumentKind.CHECKED)
    assert kind_at(kinds, "/a") == "opaque"
    assert kind_at(kinds, "/b/c") == "checked"
    assert kind_at({}, "/b") == "opaque"
