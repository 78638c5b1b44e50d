"""Inputs: the schemas a plan declares, and the values a task is started with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from everstep.domain.facts import Violation
from everstep.domain.findings import Findings
from everstep.domain.lookup import input_schema
from everstep.domain.plan import InputSpec, PlanSpec
from everstep.domain.pointer import child
from everstep.domain.problem import Problem
from everstep.domain.suggest import suggest
from everstep.domain.values import JsonObject, JsonValue

CompileSchema: TypeAlias = Callable[[JsonObject], Callable[[JsonValue], Sequence[Violation]]]
"""A check for values of a schema; raises ValueError if the schema is no schema."""

PATTERN_CHARS_MAX: Final = 256
_REFUSED: Final = frozenset({
    "$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions", "$id", "$schema",
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas",
})  # fmt: skip
_VALUES: Final = frozenset({"default", "const", "enum", "examples"})
"""Words behind which stand values, not schemas."""
_NAMED: Final = frozenset({"properties", "patternProperties"})


def check_inputs(plan: PlanSpec, compile_schema: CompileSchema, found: Findings) -> None:
    """The declared schemas, and their defaults."""
    for declared in plan.inputs:
        path = child("/inputs", declared.name)
        refused = list(_refused(declared.schema, path))
        for where, message in refused:
            found.add("bad_value", where, message)
        if not refused:
            _check_schema(declared, path, compile_schema, found)


def input_problems(
    plan: PlanSpec, inputs: Mapping[str, JsonValue], compile_schema: CompileSchema
) -> tuple[Problem, ...]:
    """Everything wrong with the inputs of a new task, at once."""
    problems: list[Problem] = []
    names = [declared.name for declared in plan.inputs]
    for name in inputs:
        if name not in names:
            guess = suggest(name, names)
            problems.append(_problem("unknown", name, f"this plan has no input '{name}'", guess))
    for declared in plan.inputs:
        if declared.name in inputs:
            problems += _invalid(declared, inputs[declared.name], compile_schema)
        elif declared.required:
            problems.append(_problem("missing", declared.name, f"input '{declared.name}' is missing"))
    return tuple(problems)


def _invalid(declared: InputSpec, value: JsonValue, compile_schema: CompileSchema) -> Iterator[Problem]:
    for pointer, message in compile_schema(input_schema(declared.schema))(value):
        label = declared.name + pointer.replace("/", ".")
        yield _problem("invalid", declared.name, f"'{label}' {message}", inside=pointer)


def _problem(code: str, name: str, message: str, guess: str | None = None, *, inside: str = "") -> Problem:
    return Problem(code=f"input.{code}", path=child("/inputs", name) + inside, message=message, suggestion=guess)


def _check_schema(declared: InputSpec, path: str, compile_schema: CompileSchema, found: Findings) -> None:
    schema = input_schema(declared.schema)
    try:
        check = compile_schema(schema)
    except ValueError as error:
        first = str(error).partition("\n")[0]
        found.add("bad_value", path, f"this is not a schema: {first}")
        return
    if "default" in schema:
        for pointer, message in check(schema["default"]):
            found.add("bad_value", f"{path}/default{pointer}", f"the default of '{declared.name}' {message}")


def _refused(schema: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    """What an input's schema may not say: references and combinators, which nobody could fill in a form for."""
    if isinstance(schema, list):
        for at, inner in enumerate(schema):
            yield from _refused(inner, child(path, at))
    if not isinstance(schema, dict):
        return
    for word, value in schema.items():
        here = child(path, word)
        if word in _REFUSED:
            yield here, f"an input takes no '{word}'"
        elif word == "pattern" and isinstance(value, str) and len(value) > PATTERN_CHARS_MAX:
            yield here, f"a pattern has at most {PATTERN_CHARS_MAX} characters"
        elif word in _NAMED and isinstance(value, dict):
            for name, inner in value.items():
                yield from _refused(inner, child(here, name))
        elif word not in _VALUES:
            yield from _refused(value, here)
