"""Arguments as they are offered to whoever takes over: values where they are known, placeholders where not yet.

A placeholder that comes back as the whole argument stands for the recorded value. Pure.
"""

from typing import Final, assert_never

from everstep.domain.bindings import (
    Compiled,
    Fields,
    Fixed,
    Items,
    NeedsPayload,
    Resolved,
    Scope,
    Shape,
    Unresolved,
    Whole,
    Woven,
    compile_value,
    resolve,
)
from everstep.domain.canonical import canonical_text
from everstep.domain.evaluation import text_of
from everstep.domain.expression import Expression, Ref, refs
from everstep.domain.plan import ResourceSpec
from everstep.domain.record import record
from everstep.domain.resources import filled, wanted
from everstep.domain.values import JsonObject, JsonValue

OFFERED_BYTES_MAX: Final = 4096
"""A longer value is offered by its placeholder."""


def placeholder_of(expression: Expression) -> str:
    """How a value is named that is not there yet, or is too long to be shown."""
    ref = next(refs(expression), None)
    return "<no value>" if ref is None else _named(ref)


def _named(ref: Ref) -> str:
    if ref.root == "inputs":
        return f"<prompt arg {ref.path[0]}>" if ref.path else "<prompt args>"
    root, path = ref.root, ref.path
    if root == "steps" and path:
        root, path = str(path[0]), path[1:]
    if not path:
        return f"<output from {root}>"
    return f"<field '{'.'.join(str(part) for part in path)}' from {root}>"


def offered(arguments: JsonObject, scope: Scope) -> JsonObject:
    """Each argument on its own."""
    return {name: _offer(compile_value(value).shape, scope) for name, value in arguments.items()}


def _offer(shape: Shape, scope: Scope) -> JsonValue:
    match shape:
        case Fixed():
            return shape.value
        case Whole():
            found = _resolved(shape, scope)
            return placeholder_of(shape.expression) if found is None else found.value
        case Woven():
            return "".join(part if isinstance(part, str) else _as_text(part, scope) for part in shape.parts)
        case Items():
            return [_offer(item, scope) for item in shape.items]
        case Fields():
            return {key: _offer(field, scope) for key, field in shape.fields.items()}
        case _:
            assert_never(shape)


def _as_text(expression: Expression, scope: Scope) -> str:
    found = _resolved(Whole(expression=expression), scope)
    return placeholder_of(expression) if found is None else text_of(found.value)


def _resolved(shape: Whole, scope: Scope) -> Resolved | None:
    """The value, if it is at hand and short."""
    found = resolve(Compiled(shape=shape, texts=(), errors=()), scope)
    if not isinstance(found, Resolved):
        return None
    return found if len(canonical_text(found.value).encode()) <= OFFERED_BYTES_MAX else None


@record
class TakenBack:
    """Arguments of a client's call, with every placeholder replaced by what it stands for."""

    arguments: JsonObject
    untrusted: bool = True


def taken_back(planned: JsonObject, given: JsonObject, scope: Scope) -> TakenBack | Unresolved | NeedsPayload:
    """A text that is its argument's own placeholder becomes the recorded value; anything else stays as it came."""
    arguments = dict(given)
    for name, value in given.items():
        compiled = compile_value(planned.get(name))
        shape = compiled.shape
        if not isinstance(value, str) or not isinstance(shape, Whole) or value != placeholder_of(shape.expression):
            continue
        found = resolve(compile_value({name: planned.get(name)}), scope)
        if not isinstance(found, Resolved):
            return found
        assert isinstance(found.value, dict)
        arguments[name] = found.value[name]
    return TakenBack(arguments=arguments)


def offered_address(resource: ResourceSpec, scope: Scope) -> str:
    """Where a resource is; its template as long as a value in it is not known."""
    asked = wanted(resource)
    if not isinstance(asked, dict):
        return resource.uri
    template, values = str(asked["uri"]), asked["vars"]
    assert isinstance(values, dict)
    known = offered(values, scope)
    return template if any(str(value).startswith("<") for value in known.values()) else filled(template, known)
