"""Tools: what this engine can call, and what each promises."""

from collections.abc import Iterable

from everstep.domain.errors import NotFound
from everstep.domain.suggest import did_you_mean, suggest
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import Response, reply
from everstep.ports.tool import ToolSpec
from everstep.wire.times import to_text


async def list_all(back: Backing, asked: Asked) -> Response:  # noqa: ARG001 -- every handler is called alike
    """All of them, by name."""
    return reply({"items": [tool_json(entry.spec) for entry in back.desk.tools], "next_cursor": None})


async def get(back: Backing, asked: Asked) -> Response:
    """One of them."""
    name = asked.params["name"]
    specs = {entry.spec.name: entry.spec for entry in back.desk.tools}
    if name not in specs:
        raise _unknown(name, specs)
    return reply(tool_json(specs[name]))


async def health(back: Backing, asked: Asked) -> Response:
    """Whether it can be used: asked now, and nothing else is done."""
    name = asked.params["name"]
    entry = next((one for one in back.desk.tools if one.spec.name == name), None)
    if entry is None:
        raise _unknown(name, [one.spec.name for one in back.desk.tools])
    found = await back.desk.tool_health(entry)
    return reply({
        **tool_json(entry.spec),
        "health": {
            "status": found.status,
            "latency_s": found.latency_s,
            "checked_at": to_text(back.desk.now),
            "detail": found.detail,
        },
    })  # fmt: skip


def _unknown(name: str, known: Iterable[str]) -> NotFound:
    return NotFound(did_you_mean(f"no tool '{name}'", suggest(name, known)), what_to_do="everstep tools")


def tool_json(spec: ToolSpec) -> JsonObject:
    """One tool; what this version does not have (pools, breakers, health checks) is null or unknown."""
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
        "pool": None,
        "fallback": None,
        "breaker": None,
        "health": {"status": "unknown", "latency_s": None, "checked_at": None, "detail": ""},
    }
