"""Kinds that are made of other kinds: lists, tables of keys, and short forms.

A table is data: the same rows check the shape of a plan, spell its normal form, order the keys of a formatted file
and describe it to editors.
"""

from collections.abc import Callable, Mapping

from everstep.domain.record import record
from everstep.domain.suggest import suggest
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.shape import REFUSED, Datum, Fields, Kind, Place, Refused


@record
class ListOf:
    """A list of one kind."""

    item: Kind
    label: str | None = None
    """What an item is called; else by its place."""
    most: int | None = None

    def read(self, value: JsonValue, place: Place) -> tuple[Datum, ...] | Refused:
        if not isinstance(value, list):
            return place.wrong("a list", value)
        if self.most is not None and len(value) > self.most:
            return place.refuse("too_large", f"{len(value)} {self.label}s, the limit is {self.most}")
        items = tuple(
            [self.item.read(item, place.at(at, self._name(item, at, place))) for at, item in enumerate(value)]
        )
        return REFUSED if any(item is REFUSED for item in items) else items

    def _name(self, item: JsonValue, at: int, place: Place) -> str:
        if self.label is None:
            return f"{place.label}[{at}]"
        name = item.get("id") if isinstance(item, dict) else None
        return f"{self.label} '{name}'" if isinstance(name, str) else f"{self.label} {at + 1}"

    def write(self, value: tuple[Datum, ...]) -> JsonValue:
        return [self.item.write(item) for item in value]

    def schema(self) -> JsonObject:
        return {"type": "array", "items": self.item.schema()}


@record
class Key:
    """One row of a table."""

    name: str
    kind: Kind
    field: str | None
    """The field of the record; None: read, then forgotten."""
    doc: str
    required: bool = False
    unset: Datum = None
    """The field's value when the key is not there, which the normal form leaves out."""
    same_as: str | None = None
    """The field that stands in for it when the key is not there."""
    takes_null: bool = False
    """`null` is a value here; elsewhere an empty key is a key left out."""


@record
class Table:
    """A map with known keys."""

    keys: tuple[Key, ...]
    make: Callable[[Fields, Place], Datum]
    """The record, from its fields; may note what the keys mean together."""
    synonyms: Mapping[str, str] | None = None
    stand_in: Callable[[Fields], Datum] | None = None
    """What is left of a refused one, so that the rest can be checked all the same."""

    def read(self, value: JsonValue, place: Place) -> Datum:
        noted = len(place.notes)
        fields: Fields = {}
        if isinstance(value, dict):
            self._read_keys(value, place, fields)
        else:
            place.wrong("a map", value)
        if len(place.notes) == noted:
            return self.make(fields, place)
        return self.stand_in(fields) if self.stand_in else REFUSED

    def _read_keys(self, value: JsonObject, place: Place, fields: Fields) -> None:
        known = 0
        for key in self.keys:
            if key.name in value:
                known += 1
                self._read_key(key, value[key.name], place, fields)
            elif key.required:
                self._missing(key, place)
        if known < len(value):
            self._refuse_unknown(value, place)

    def _read_key(self, key: Key, value: JsonValue, place: Place, fields: Fields) -> None:
        if value is None and not key.takes_null:
            if key.required:
                self._missing(key, place)
            return
        read = key.kind.read(value, place.at(key.name))
        if key.field is not None and read is not REFUSED:
            fields[key.field] = read

    def _missing(self, key: Key, place: Place) -> None:
        place.refuse("missing_key", f"{place.label} has no '{key.name}'", hint=key.doc)

    def _refuse_unknown(self, value: JsonObject, place: Place) -> None:
        names = [key.name for key in self.keys]
        for name in value:
            if name not in names:
                guess = suggest(name, names, self.synonyms)
                place.at(name).refuse("unknown_key", f"'{name}' is not a key here", suggestion=guess, on_key=True)

    def write(self, value: Datum) -> JsonObject:
        """The normal form: only what was said."""
        written: JsonObject = {}
        for key in self.keys:
            if key.field is not None:
                said = getattr(value, key.field)
                if said != (getattr(value, key.same_as) if key.same_as else key.unset):
                    written[key.name] = key.kind.write(said)
        return written

    def schema(self) -> JsonObject:
        required: list[JsonValue] = [key.name for key in self.keys if key.required]
        return {
            "type": "object",
            "properties": {key.name: _described(key) for key in self.keys},
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }


def _described(key: Key) -> JsonObject:
    schema = key.kind.schema()
    return {"description": key.doc, **(schema if key.required or key.takes_null else _or_null(schema))}


def _or_null(schema: JsonObject) -> JsonObject:
    """An empty key is a key left out."""
    if "anyOf" in schema and isinstance(options := schema["anyOf"], list):
        return {**schema, "anyOf": [*options, {"type": "null"}]}
    if "type" not in schema:
        return schema
    widened: JsonObject = {**schema, "type": [schema["type"], "null"]}
    if isinstance(options := schema.get("enum"), list):
        widened["enum"] = [*options, None]
    return widened


@record
class Short:
    """A kind with a short form. Which form it is, is decided before the shape, so no message says "none of"."""

    full: Kind
    types: tuple[type, ...]
    expand: Callable[[Datum, Place], Datum]
    """The value of a short form."""
    short: JsonObject
    """Its schema."""

    def read(self, value: JsonValue, place: Place) -> Datum:
        return self.expand(value, place) if type(value) in self.types else self.full.read(value, place)

    def write(self, value: Datum) -> JsonValue:
        return self.full.write(value)

    def schema(self) -> JsonObject:
        return {"anyOf": [self.short, self.full.schema()]}
