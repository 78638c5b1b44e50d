"""The editor's schema and the checker agree: what the checker takes, the schema takes; it knows the same keys."""

import json

import pytest

from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.keys import PLAN, STEP
from everstep.wire.normal import from_json, to_json
from everstep.wire.planschema import DRAFT, downgraded, plan_schema
from everstep.wire.schema import compile_schema
from tests.unit.domain.test_check import CASES, GOOD
from tests.unit.known_tools import TOOLS, plan, spec, step
from tests.unit.wire.test_normal import FULL, HELLO, SAME, SHAPES

CORPUS: list[JsonValue] = [
    *GOOD, HELLO, FULL, *(case[1] for case in CASES), *(plan(one) for one, _ in SAME), *(shape[0] for shape in SHAPES),
]  # fmt: skip
PLAIN = compile_schema(plan_schema())
WITH_TOOLS = compile_schema(plan_schema({name: facts.input_schema for name, facts in TOOLS.items()}))

# Wrong shapes that a schema cannot tell, or need not.
CHECKER_ONLY = frozenset({"missing_key", "key_conflict", "binding_not_allowed", "too_large", "bad_value", "bad_type"})


@pytest.mark.parametrize("value", CORPUS)
def test_what_the_checker_takes_the_schema_takes(value: JsonValue) -> None:
    read = from_json(value)
    if read.plan is not None:
        assert PLAIN(value) == []
        assert PLAIN(to_json(read.plan)) == []
    else:
        assert PLAIN(value) or {problem.code[5:] for problem in read.problems} <= CHECKER_ONLY


@pytest.mark.parametrize("value", GOOD)
def test_good_plans_fit_the_tools_too(value: JsonObject) -> None:
    assert WITH_TOOLS(value) == []


@pytest.mark.parametrize(
    "value",
    [
        plan(step("a", retries=3)),
        plan(step("a", timeout="soon")),
        plan(step("a", retry=21)),
        plan(step("a", on_error="ignore")),
        plan(step("a", approve={"by": "llm"})),
        plan(step("a"), inputs={"x": "int"}),
        plan(step("a"), limits={"memory": "5"}),
        plan(step("a", when="yes")),
        {"name": "p"},
        {"name": "p", "steps": [{"tool": "x"}]},
    ],
)
def test_mistakes_that_an_editor_shows(value: JsonObject) -> None:
    assert PLAIN(value)


@pytest.mark.parametrize(
    "value",
    [
        plan(step("a", "search.locl")),
        plan(step("a", with_={"query": 3})),
        plan(step("a", with_={"qery": "x"})),
        plan(step("a", fallback=[{"tool": "http.get", "with": {"url": 3}}])),
        plan(step("a", undo={"tool": "nope"})),
        plan(step("a", "shell.run", with_={"argv": [3]})),
    ],
)
def test_with_tools_names_and_arguments_are_known(value: JsonObject) -> None:
    assert PLAIN(value) == []
    assert WITH_TOOLS(value)


def test_the_schema_knows_every_key() -> None:
    schema = plan_schema()
    definitions = schema["definitions"]
    assert isinstance(definitions, dict)
    assert schema["$schema"] == DRAFT
    for table, described in ((PLAN, schema), (STEP, definitions["step"])):
        assert isinstance(described, dict)
        assert isinstance(described["properties"], dict)
        assert [*described["properties"]] == [key.name for key in table.keys]
    assert json.loads(json.dumps(schema)) == schema


def test_schemas_of_2020_become_draft_07() -> None:
    node: JsonObject = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Item"}},
        "additionalProperties": False,
    }
    tool: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "pair": {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": {"type": "null"},
            },
            "item": {"$ref": "#/$defs/Item"},
            "either": {"oneOf": [{"type": "integer"}, {"type": "boolean"}], "description": "one of two"},
            "free": {},
        },
        "additionalProperties": False,
        "dependentRequired": {"pair": ["item"]},
        "unevaluatedProperties": False,
        "$defs": {"Item": node},
    }
    written = downgraded(tool)
    assert "$defs" not in written
    assert "unevaluatedProperties" not in written
    assert written["dependencies"] == {"pair": ["item"]}
    check = compile_schema(plan_schema({"own.tool": tool}))

    def problems(**arguments: JsonValue) -> list[tuple[str, str]]:
        return check(plan(step("a", "own.tool", with_={"item": {}, **arguments})))

    assert problems(pair=[1, "x", None], item={"next": {"next": "${a}"}}, either="${b}", free=[1]) == []
    assert problems(pair=["${a}", "${b}"]) == []
    assert problems(pair=["x"])
    assert problems(pair=[1, "x", 3])
    assert problems(item={"next": {"other": 1}})
    assert problems(either="x")
    assert problems(other=1)


def test_hello_fits() -> None:
    assert PLAIN(HELLO) == []
    assert PLAIN(to_json(spec(HELLO))) == []
