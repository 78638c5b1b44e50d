"""Tools as OpenAI-style function schemas, under the names they have at every door."""

from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.handoff import door_name


def function_schema(name: str, description: str, parameters: JsonValue) -> JsonObject:
    """One tool as a model takes it; what only we understand is left out."""
    said: JsonObject = {"name": door_name(name), "description": description, "parameters": plain(parameters)}
    return {"type": "function", "function": said}


def plain(schema: JsonValue) -> JsonValue:
    """A schema without what only we understand."""
    if isinstance(schema, dict):
        return {key: plain(value) for key, value in schema.items() if not key.startswith("x-everstep")}
    return [plain(one) for one in schema] if isinstance(schema, list) else schema
