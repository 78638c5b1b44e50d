"""Patches and their changes as JSON: what somebody asks for, and what the journal keeps of it (plan-and-python, 8)."""

from typing import Any, Final, cast

from msgspec import Struct

from everstep.domain.changes import Change
from everstep.domain.patch import Op
from everstep.domain.plan import StepSpec
from everstep.domain.problem import Problem
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.keys import STEP
from everstep.wire.payload import Payload, maybe_read, maybe_write
from everstep.wire.shape import Place

_KEYS: Final[dict[str, frozenset[str]]] = {
    "append": frozenset({"op", "after", "step", "note"}),
    "replace": frozenset({"op", "id", "step", "note"}),
    "set": frozenset({"op", "id", "with", "note"}),
    "skip": frozenset({"op", "id", "note"}),
}
"""The keys of each kind of change."""


class ChangeData(Struct, omit_defaults=True):
    """One change, with the whole step as it is afterwards."""

    op: str
    id: str
    step: dict[str, Any] | None = None  # any JSON: msgspec has no recursive type for it
    after: str | None = None
    note: str | None = None
    untrusted: bool = False
    asked: Payload | None = None

    @classmethod
    def of(cls, change: Change) -> "ChangeData":
        step = None if change.step is None else cast("dict[str, Any]", STEP.write(change.step))
        return cls(change.op, change.id, step, change.after, change.note, change.untrusted, maybe_write(change.asked))

    def body(self) -> Change:
        notes: list[Problem] = []
        step = None if self.step is None else STEP.read(self.step, Place(notes, label="the step"))
        if notes:
            raise ValueError("; ".join(note.message for note in notes))
        return Change(
            op=cast("Any", self.op),
            id=self.id,
            step=step,
            after=self.after,
            note=self.note,
            untrusted=self.untrusted,
            asked=maybe_read(self.asked),
        )


def change_json(change: Change) -> JsonObject:
    """The same for a door: every field."""
    written = ChangeData.of(change)
    return {"op": written.op, "id": written.id, "step": written.step, "after": written.after, "note": written.note}


def read_ops(value: JsonValue) -> tuple[tuple[Op, ...], tuple[Problem, ...]]:
    """A list of changes as somebody asks for them; with problems the list is empty."""
    notes: list[Problem] = []
    place = Place(notes, "ops")
    if not isinstance(value, list) or not value:
        place.refuse("bad_type", "'ops' must be a list of changes, and not an empty one")
        return (), tuple(notes)
    ops = [_read_op(one, Place(notes, index, "the change", place)) for index, one in enumerate(value)]
    return (() if notes else tuple(op for op in ops if op is not None)), tuple(notes)


def _read_op(value: JsonValue, place: Place) -> Op | None:
    if not isinstance(value, dict):
        place.wrong("a map", value)
        return None
    op = value.get("op")
    if not isinstance(op, str) or op not in _KEYS:
        place.at("op").refuse("bad_value", f"'op' must be one of {', '.join(_KEYS)}")
        return None
    for name in sorted(value.keys() - _KEYS[op]):
        place.at(name).refuse("unknown_key", f"'{name}' is not a key of '{op}'")
    given = _texts(value, place, ("after",) if op == "append" else ("id",))
    step = _step(value, place) if op in ("append", "replace") else None
    arguments = _arguments(value, place) if op == "set" else None
    name = given.get("id") or (step.id if step is not None else "")
    return Op(op=cast("Any", op), id=name, step=step, after=given.get("after"), arguments=arguments, note=given["note"])


def _texts(value: JsonObject, place: Place, names: tuple[str, ...]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in (*names, "note"):
        said = value.get(name)
        if said is not None and not isinstance(said, str):
            place.at(name).wrong("text", said)
        elif said is None and name == "id":
            place.refuse("missing_key", "the change needs 'id'")
        found[name] = said if isinstance(said, str) else None
    return found


def _step(value: JsonObject, place: Place) -> StepSpec | None:
    if "step" not in value:
        place.refuse("missing_key", "the change needs 'step'")
        return None
    step = STEP.read(value["step"], place.at("step"))
    return step if isinstance(step, StepSpec) else None


def _arguments(value: JsonObject, place: Place) -> JsonObject:
    given = value.get("with")
    if not isinstance(given, dict):
        place.at("with").wrong("a map", given)
        return {}
    return given
