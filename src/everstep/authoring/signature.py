"""A function's signature -> what a caller may hand in and gets back."""

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from everstep.authoring.dump import dump
from everstep.authoring.hints import shape_of
from everstep.authoring.shape import Place, Shape, default_of, hints_of, loads_of, object_schema
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.function import Load

CONTEXT: Final = "ctx"
"""The parameter that the engine fills in."""


@record
class Signature:
    """What a function says it does, both its schemas, and how values cross."""

    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    takes_ctx: bool
    loads: tuple[tuple[str, Load], ...]
    dump: Callable[[object], JsonValue] | None


def signature_of(function: Callable[..., object], tool: str) -> Signature:
    """Read the hints of `function`; TypeError names what has no JSON form."""
    parameters = inspect.signature(function).parameters
    plain = inspect.unwrap(function)
    hints = {name: hint for name, hint in inspect.get_annotations(plain).items() if name != CONTEXT}
    holder = SimpleNamespace(__annotations__=hints, __globals__=getattr(plain, "__globals__", {}))
    hints = hints_of(holder, Place(text=f"tool '{tool}'"))
    shapes: dict[str, Shape] = {}
    properties: JsonObject = {}
    for name, parameter in parameters.items():
        if name == CONTEXT:
            continue
        place = Place(text=f"tool '{tool}', parameter '{name}'")
        shapes[name] = shape = _shape(parameter, hints, place)
        properties[name] = {"x-everstep-kind": "opaque"} | shape.schema | _default(parameter)
    required = [name for name in shapes if parameters[name].default is inspect.Parameter.empty]
    returned = shape_of(hints["return"], Place(text=f"tool '{tool}', result")) if "return" in hints else None
    return Signature(
        description=inspect.cleandoc(function.__doc__ or ""),
        input_schema=object_schema(properties, required),
        output_schema=None if returned is None else returned.schema,
        takes_ctx=CONTEXT in parameters,
        loads=loads_of(shapes),
        dump=None if returned is not None and returned.plain else dump,
    )


def _shape(parameter: inspect.Parameter, hints: dict[str, Any], place: Place) -> Shape:
    if parameter.kind in _REFUSED:
        place.refuse(_REFUSED[parameter.kind])
    if parameter.name not in hints:
        place.refuse(f"has no type hint; write {parameter.name}: str, or what it is")
    return shape_of(hints[parameter.name], place)


_REFUSED: Final = {
    inspect.Parameter.VAR_POSITIONAL: "a tool is called with named arguments; write them out instead of *args",
    inspect.Parameter.VAR_KEYWORD: "a tool's arguments are checked by name; write them out instead of **kwargs",
    inspect.Parameter.POSITIONAL_ONLY: "a tool is called with named arguments; remove the / after it",
}


def _default(parameter: inspect.Parameter) -> JsonObject:
    return {} if parameter.default is inspect.Parameter.empty else default_of(parameter.default)
