"""What the core scenarios of the conformance suite ask for by name: tools, prompts and resources, in the suite's words.

Every tool here is carried by the engine as a task, like any tool; questions are pauses of that task.
"""

import asyncio
from typing import Any

from everstep import Ctx, NeedsInput, tool

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQAAAAA="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}


def embedded(uri: str, text: str, kind: str = "text/plain") -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def question(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


NAME, COLOR, OK = (
    question(name={"type": "string"}),
    question(color={"type": "string"}),
    question(ok={"type": "boolean"}),
)
CONTACT = question(username={"type": "string"}, email={"type": "string"})
DEFAULTS = question(
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)


def titled(*values: str) -> list[dict[str, str]]:
    return [{"const": value, "title": value.title()} for value in values]


ENUMS = question(
    untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
    titledSingle={"type": "string", "oneOf": titled("value1", "value2", "value3")},
    legacyEnum={"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    untitledMulti={"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    titledMulti={"type": "array", "items": {"anyOf": titled("value1", "value2", "value3")}},
)


@tool.pure("test_image_content")
async def image_content() -> dict[str, Any]:
    """Give a picture"""
    return {"content": [IMAGE]}


@tool.pure("test_audio_content")
async def audio_content() -> dict[str, Any]:
    """Give a sound"""
    return {"content": [AUDIO]}


@tool.pure("test_embedded_resource")
async def embedded_resource() -> dict[str, Any]:
    """Give a resource"""
    return {"content": [embedded("test://embedded-resource", "This is an embedded resource content.")]}


@tool.pure("test_multiple_content_types")
async def multiple_content_types() -> dict[str, Any]:
    """Give several things"""
    mixed = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return {"content": [text("Multiple content types test:"), IMAGE, mixed]}


@tool.pure("test_tool_with_progress")
async def tool_with_progress(*, ctx: Ctx) -> str:
    """Say how far it is"""
    for percent in (0.25, 0.5, 0.75):
        ctx.progress(percent, f"{percent:.0%}")
        await asyncio.sleep(1.2)  # a watcher is told about once a second
    return "done"


@tool.pure("test_elicitation")
async def elicitation(message: str, *, ctx: Ctx) -> str:
    """Ask for a contact"""
    return f"User response: {asked(ctx, message, CONTACT)}"


@tool.pure("test_logging_tool")
async def logging_tool(*, ctx: Ctx) -> str:
    """Write into the log"""
    ctx.log.info("said to the operator")
    return "logged"


@tool.pure("test_missing_capability")
async def missing_capability() -> str:
    """Need a client that has a model: refused before it is called"""
    raise AssertionError("called without a model")


@tool.pure("json_schema_2020_12_tool")
async def json_schema(name: str = "", address: dict[str, Any] | None = None) -> str:
    """Take what a large schema describes"""
    return f"{name} {address}"


@tool.pure("test_header_parameter")
async def header_parameter(region: str = "") -> str:
    """Take an argument that is in a header too"""
    return region


def asked(ctx: Ctx, words: str, schema: dict[str, Any]) -> Any:
    """What somebody answered; raises as long as nobody has."""
    if ctx.answer is None:
        raise NeedsInput(words, schema=schema)
    return ctx.answer


def asking(name: str, about: str, words: str, schema: dict[str, Any], said: str) -> Any:
    """A tool that asks once, and says what was answered."""

    async def ask(*, ctx: Ctx) -> str:
        return said.format(asked(ctx, words, schema))

    ask.__doc__ = about
    return tool.pure(name)(ask)


COMPLETED, REQUIRED = "Elicitation completed: {}", "test_input_required_result"
ASKING = [
    asking("test_elicitation_sep1034_defaults", "Ask with defaults", "Please look through it", DEFAULTS, COMPLETED),
    asking("test_elicitation_sep1330_enums", "Ask with choices", "Please choose", ENUMS, COMPLETED),
    asking(f"{REQUIRED}_elicitation", "Ask for a name", "What is your name?", NAME, "Hello, {}!"),
    asking(f"{REQUIRED}_request_state", "Ask to confirm", "Please confirm", OK, "state-ok: {}"),
    asking(f"{REQUIRED}_tampered_state", "Ask to confirm", "Please confirm", OK, "confirmed: {}"),
    asking("test_streaming_elicitation", "Ask, on a stream", "Please confirm", OK, "answered: {}"),
]
TOOLS: list[Any] = [
    image_content, audio_content, embedded_resource, multiple_content_types, tool_with_progress, elicitation, *ASKING,
    logging_tool, missing_capability, json_schema, header_parameter,
]  # fmt: skip
ROUNDS: dict[str, Any] = {
    "name": "test-input-required-result-multi-round",
    "description": "Ask one thing after another",
    "steps": [
        {"id": "step1", "tool": "ask", "with": {"question": "Step 1: What is your name?", "schema": NAME}},
        {"id": "step2", "tool": "ask", "with": {"question": "Step 2: Which color?", "schema": COLOR}},
    ],
    "outputs": {"name": "${step1}", "color": "${step2}"},
}
LISTED: dict[str, dict[str, Any]] = {
    "json_schema_2020_12_tool": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
    "test_header_parameter": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
}
"""Schemas as they are listed, where a signature cannot say them."""
SIMPLE: list[dict[str, Any]] = [
    {
        "name": "test-simple-prompt",
        "description": "greet",
        "steps": [{"id": "hello", "tool": "greet", "with": {"name": "you"}}],
    },
    {
        "name": "test-prompt-with-arguments",
        "description": "greet two",
        "inputs": {"arg1": "string", "arg2": "string"},
        "steps": [{"id": "hello", "tool": "greet", "with": {"name": "${inputs.arg1} ${inputs.arg2}"}}],
    },
]
"""Prompts that are workflows."""
SHOWN: dict[str, list[dict[str, Any]]] = {
    "test_prompt_with_image": [IMAGE, text("Please analyze the image above.")],
    "test_prompt_with_embedded_resource": [
        embedded("test://example-resource", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
    ],
}
"""Prompts that show what no workflow shows."""
RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://template/123/data": {"mimeType": "application/json", "text": '{"id":"123","templateTest":true}'},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}
