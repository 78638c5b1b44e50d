"""JSON Schema: checks that are compiled once.

A schema may come from a plan or from somebody else's server: it never makes us fetch anything, and its patterns
are matched in linear time. Messages name the rule, never the value, which may be huge or secret.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NoReturn, TypeAlias

import jsonschema_rs
from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from everstep.domain.canonical import canonical_text
from everstep.domain.pointer import child
from everstep.domain.values import JsonObject, JsonValue

Violation: TypeAlias = tuple[str, str]
"""JSON Pointer and message."""

OPTIONS_SHOWN: Final = 10
CHECKS_KEPT: Final = 256


def compile_schema(schema: JsonObject) -> "SchemaCheck":
    """A check for values; raises ValueError if the schema itself is wrong, or refers to another document."""
    return _compiled(json.dumps(schema))


@lru_cache(CHECKS_KEPT)
def _compiled(schema: str) -> "SchemaCheck":
    """By its text, whoever asks: a plan's is the same for all its tasks, and a tool's for all engines."""
    return SchemaCheck(schema)


class SchemaCheck:
    """Called with a value, lists every place where it breaks the schema."""

    def __init__(self, schema: str) -> None:
        self._validator = jsonschema_rs.validator_for(
            schema,
            retriever=_refuse,
            pattern_options=jsonschema_rs.RegexOptions(),
            validate_formats=True,
            mask="the value",
        )

    def __call__(self, value: JsonValue) -> list[Violation]:
        if self._validator.is_valid(value):
            return []
        return [violation for error in self._validator.iter_errors(value) for violation in _violations(error)]

    def missing(self, value: JsonValue) -> tuple[str, ...]:
        """Every required field that is not there, as JSON Pointers."""
        return tuple(
            child(_pointer(error), error.kind.property)
            for error in self._validator.iter_errors(value)
            if isinstance(error.kind, Kind.Required)
        )


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"a schema may not refer to '{uri}'")


def _pointer(error: ValidationError) -> str:
    pointer = ""
    for key in error.instance_path:
        pointer = child(pointer, key)
    return pointer


_NOUNS: Final = {
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a map",
    "null": "null",
}


def _violations(error: ValidationError) -> Iterator[Violation]:
    if isinstance(error.kind, Kind.AdditionalProperties | Kind.UnevaluatedProperties):
        for key in error.kind.unexpected:
            yield child(_pointer(error), key), "is not known here"
    else:
        yield _pointer(error), _sentence(error)


def _sentence(error: ValidationError) -> str:
    """The broken rule, in the words of our other messages."""
    match error.kind:
        case Kind.Type(types=types):
            return f"must be {_either(_NOUNS[name] for name in types)}"
        case Kind.Required(property=name):
            return f"needs '{name}'"
        case Kind.AnyOf(context=tries) if names := _lacking(tries):
            return f"needs {_either(iter(names))}"
        case Kind.Enum(options=options):
            more = ", …" if len(options) > OPTIONS_SHOWN else ""
            return f"must be one of {', '.join(map(_shown, options[:OPTIONS_SHOWN]))}{more}"
        case Kind.Minimum(limit=limit):
            return f"must be at least {limit}"
        case Kind.Maximum(limit=limit):
            return f"must be at most {limit}"
        case Kind.MinLength(limit=limit):
            return f"must have at least {limit} characters"
        case Kind.MaxLength(limit=limit):
            return f"must have at most {limit} characters"
        case Kind.MinItems(limit=limit):
            return f"must have at least {limit} items"
        case Kind.MaxItems(limit=limit):
            return f"must have at most {limit} items"
        case Kind.Pattern(pattern=pattern):
            return f"does not match the pattern {pattern}"
        case Kind.Format(format=name):
            return f"is not a valid {name}"
        case _:
            return error.message


def _lacking(tries: Sequence[Sequence[ValidationError]]) -> list[str]:
    """What each of several ways lacks, if that is all that is wrong with any of them."""
    first = [errors[0].kind for errors in tries if len(errors) == 1]
    names = [f"'{kind.property}'" for kind in first if isinstance(kind, Kind.Required)]
    return names if len(names) == len(tries) else []


def _shown(option: object) -> str:
    return canonical_text(option) if isinstance(option, str | int | float) else str(option)


def _either(nouns: Iterator[str]) -> str:
    *most, last = nouns
    return f"{', '.join(most)} or {last}" if most else last
