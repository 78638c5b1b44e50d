"""Tools: what this engine can call, and what each promises."""

from everstep.domain.ids import Instant
from everstep.domain.values import JsonObject, JsonValue
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import Response, reply
from everstep.ports.tool import Health, ToolSpec
from everstep.wire.times import to_text


async def list_all(back: Backing, asked: Asked) -> Response:  # noqa: ARG001 -- every handler is called alike
    """All of them, by name."""
    items: list[JsonValue] = [tool_json(entry.spec, *back.desk.last_health(entry)) for entry in back.desk.tools]
    return reply({"items": items, "next_cursor": None})


async def get(back: Backing, asked: Asked) -> Response:
    """One of them."""
    entry = back.desk.tool(asked.params["name"])
    return reply(tool_json(entry.spec, *back.desk.last_health(entry)))


async def health(back: Backing, asked: Asked) -> Response:
    """Whether it can be used: asked now, and nothing else is done."""
    entry = back.desk.tool(asked.params["name"])
    return reply(tool_json(entry.spec, *await back.desk.tool_health(entry)))


def tool_json(spec: ToolSpec, health: Health, at: Instant | None) -> JsonObject:
    """One tool, and what it said of itself when it was last asked."""
    return {
        "name": spec.name,
        "version": spec.version,
        "title": spec.title,
        "description": spec.description,
        "input_schema": spec.input_schema,
        "output_schema": spec.output_schema,
        "effect": spec.effect.value,
        "isolation": spec.isolation,
        "timeout_s": None if spec.timeout_ms is None else spec.timeout_ms / 1000,
        "retries": spec.retries,
        "probeable": spec.probeable,
        "trusted_output": spec.trusted_output,
        "pool": spec.pool,
        "fallback": None,
        "breaker": None,
        "health": {
            "status": health.status,
            "latency_s": health.latency_s,
            "checked_at": None if at is None else to_text(at),
            "detail": health.detail,
        },
    }
