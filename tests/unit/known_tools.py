"""Tools as a plan check sees them, and one-line checks of plans; shared by the tests of plans."""

from everstep.domain.check import ArgumentKind, ToolFacts, problems
from everstep.domain.plan import Effect, PlanSpec
from everstep.domain.problem import Problem
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.normal import from_json
from everstep.wire.plan import read_plan
from everstep.wire.schema import compile_schema

TEXT: JsonObject = {"type": "string"}
WHOLE: JsonObject = {"type": "integer"}


def closed(required: str = "", **properties: JsonObject) -> JsonObject:
    """An object schema with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*required.split()],
        "additionalProperties": False,
    }


def kind(name: str) -> JsonObject:
    return {"type": "string", "x-everstep-kind": name}


def tool(name: str, arguments: JsonObject, output: JsonObject | None, effect: Effect = Effect.PURE) -> ToolFacts:
    return ToolFacts(
        name=name,
        input_schema=arguments,
        output_schema=output,
        effect=effect,
        validate=compile_schema(arguments),
        probeable=name == "ticket.open",
        killable=name == "shell.run",
    )


_RESULT = closed(url=TEXT, title=TEXT)
_LISTED: list[ToolFacts] = [
    tool("search.local", closed("query", query=TEXT, glob=TEXT, limit=WHOLE), closed(
        results={"type": "array", "items": _RESULT}, indexed=WHOLE,
    )),
    tool("search.web", closed("query", query=TEXT, limit=WHOLE), closed(results={"type": "array", "items": _RESULT})),
    tool("browser.read", closed("url", url=kind("checked")), closed(text=TEXT, title=TEXT, status=WHOLE)),
    tool("http.get", closed("url", url=kind("checked")), closed(text=TEXT, status=WHOLE)),
    tool("text.summarize", closed("texts", texts={"type": "array"}, sentences=WHOLE), closed(text=TEXT, markdown=TEXT)),
    tool("file.write", closed("path text", path=kind("checked"), text=TEXT), closed(path=TEXT), Effect.IDEMPOTENT),
    tool("file.append", closed("path text", path=kind("checked"), text=TEXT), closed(path=TEXT), Effect.IDEMPOTENT),
    tool(
        "mail.send",
        closed("to subject text", to=TEXT, subject=TEXT, text=TEXT, password=kind("secret")),
        closed(message_id=TEXT),
        Effect.VERIFIABLE,
    ),
    tool("ticket.open", closed("title", title=TEXT), closed(id=TEXT), Effect.VERIFIABLE),
    tool("shell.run", closed("argv", argv={
        "type": "array", "prefixItems": [kind("literal")], "items": TEXT,
    }), None, Effect.ONCE),
    tool("mcp.gh.find", closed(query=TEXT), None),
    tool("resource.read", closed("uris", uris={"type": "array"}), closed(contents={"type": "array"})),
]  # fmt: skip
TOOLS = {facts.name: facts for facts in _LISTED}
KINDS = ArgumentKind


def step(id: str, tool: str = "search.local", /, **keys: JsonValue) -> JsonObject:
    """A step that is right unless the keys make it wrong; `with_` is `with`."""
    arguments = keys.pop("with_", {"query": "q"} if tool in ("search.local", "search.web") else {})
    return {"id": id, "tool": tool, "with": arguments, **keys}


def plan(*steps: JsonObject, finally_: list[JsonObject] | None = None, **keys: JsonValue) -> JsonObject:
    last: JsonObject = {"finally": [*finally_]} if finally_ else {}
    return {"name": "p", "steps": [*steps], **last, **keys}


def spec(value: JsonObject) -> PlanSpec:
    """The plan of a value that must be well-shaped."""
    read = from_json(value)
    assert read.plan is not None, read.problems
    return read.plan


def check(value: JsonValue, *, trusted: bool = True) -> tuple[Problem, ...]:
    """All problems of a plan as JSON: of its shape and of its content."""
    return from_json(value).checked(lambda plan: problems(plan, TOOLS, compile_schema, trusted=trusted))


def check_text(text: str | bytes, file: str = "p.plan.yaml") -> tuple[Problem, ...]:
    """All problems of the text of a file."""
    return read_plan(text, file=file).checked(lambda plan: problems(plan, TOOLS, compile_schema))
