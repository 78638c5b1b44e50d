"""Tools of other frameworks, as they look; and ours as a model wants to see them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from everstep import Engine, Plan, PlanError, tool
from everstep.domain.values import JsonObject
from everstep.tools import from_function, from_langchain, from_openai, from_pydantic_ai, to_openai

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Model:
    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"title": "double", **SCHEMA}


@dataclass
class Chained:
    name: str = "double"
    description: str = "Twice as much."
    args_schema: Any = Model

    def invoke(self, arguments: dict[str, int]) -> int:
        return arguments["n"] * 2


class Awaited(Chained):
    async def ainvoke(self, arguments: dict[str, int]) -> int:
        return arguments["n"] * 20


async def on_invoke_tool(_context: object, text: str) -> str:
    return f"got {json.loads(text)['n']}"


def double(n: int) -> int:
    """Twice as much."""
    return n * 2


SHOWN = SimpleNamespace(
    name="double",
    description="Twice.",
    function=double,
    takes_ctx=False,
    function_schema=SimpleNamespace(json_schema=SCHEMA),
)
AGENTS = SimpleNamespace(name="double", description="", params_json_schema=SCHEMA, on_invoke_tool=on_invoke_tool)
CASES = {
    "langchain": (from_langchain(Chained()), 6),
    "langchain, async": (from_langchain(Awaited(), effect="pure"), 60),
    "openai": (from_openai({"type": "function", "function": {"name": "double", "parameters": SCHEMA}}, double), 6),
    "openai, bare": (from_openai({"name": "double", "description": "Twice.", "parameters": SCHEMA}, double), 6),
    "openai agents": (from_openai(AGENTS), "got 3"),
    "pydantic ai": (from_pydantic_ai(SHOWN)[0], 6),
    "pydantic ai, a set": (from_pydantic_ai(SimpleNamespace(tools={"double": SHOWN}))[0], 6),
    "function": (from_function(double, "double"), 6),
}


def plan(**arguments: int) -> Plan:
    step: JsonObject = {"id": "a", "tool": "double", "with": {**arguments}}
    return Plan.from_dict({"name": "p", "steps": [step], "outputs": {"a": "${a}"}})


@pytest.mark.parametrize("name", CASES)
async def test_it_is_called_as_a_step_with_checked_arguments(tmp_path: Path, name: str) -> None:
    made, answer = CASES[name]
    async with Engine(tmp_path / "everstep.db", tools=[made]) as engine:
        assert (await engine.run(plan(n=3))).outputs == {"a": answer}
        with pytest.raises(PlanError):
            await engine.run(plan(m=3))


def test_a_tool_is_once_unless_said() -> None:
    assert from_langchain(Chained()).spec.effect == "once"
    assert from_langchain(Chained(), effect="pure").spec.effect == "pure"


REFUSED: dict[str, Callable[[], object]] = {
    "nothing like it": lambda: from_langchain(object()),
    "no object": lambda: from_langchain(Chained(args_schema={"type": "array"})),
    "no schema": lambda: from_openai({}, double),
    "no function": lambda: from_openai({"name": "x"}),
    "nothing like that": lambda: from_pydantic_ai(object()),
    "a context of their own": lambda: from_pydantic_ai(SimpleNamespace(**{**vars(SHOWN), "takes_ctx": True})),
    "no option": lambda: from_langchain(Chained(), efect="pure"),  # type: ignore[call-arg]
    "no name": lambda: from_langchain(Chained(name="no name")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_tool_is_refused_when_it_is_made(name: str) -> None:
    with pytest.raises(TypeError):
        REFUSED[name]()


def test_ours_as_function_schemas() -> None:
    @tool.pure("shop.price")
    def price(item: str, n: int = 1) -> float:
        """What it costs."""
        return 1.0 * n

    (schema,) = to_openai([price])
    assert schema["function"] == {
        "name": "shop_price",
        "description": "What it costs.",
        "parameters": {
            "type": "object",
            "properties": {"item": {"type": "string"}, "n": {"type": "integer", "default": 1}},
            "required": ["item"],
            "additionalProperties": False,
        },
    }
    with pytest.raises(ValueError, match="shop_price"):
        to_openai([price, price])


async def test_a_function_tool_that_asks_about_its_caller() -> None:
    """As those of OpenAI Agents do: there is no caller of theirs, so no configuration, agent or usage."""

    async def invoke(ctx: Any, text: str) -> str:
        assert (ctx.tool_name, ctx.tool_arguments, ctx.run_config) == ("shout", text, None)
        ctx._function_tool_arguments = None
        return str(json.loads(text)["text"]).upper()

    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    theirs = SimpleNamespace(name="shout", description="", params_json_schema=schema, on_invoke_tool=invoke)
    assert await from_openai(theirs)(text="solar") == "SOLAR"
