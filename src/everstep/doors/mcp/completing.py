"""Completion of what somebody is typing: arguments of prompts, and ids in the addresses of tasks."""

from typing import Final

from everstep.doors.mcp.channel import Json, ask
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.prompts import CONTINUE
from everstep.doors.mcp.refusals import INVALID_PARAMS, Refused
from everstep.doors.mcp.resources import TEMPLATES

VALUES_MAX: Final = 100
"""More are not sent; MCP says so."""


class Completion:
    """What `completion/complete` does."""

    def __init__(self, desk: DoorDesk) -> None:
        self._desk = desk

    async def complete(self, client: Client, ref: Json, argument: Json) -> Json:
        """Values that begin like this; raises Refused for what nobody knows."""
        begun = str(argument.get("value") or "")
        values = [one for one in await self._known(client, ref, str(argument.get("name"))) if one.startswith(begun)]
        shown = values[:VALUES_MAX]
        return {"completion": {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}}

    async def _known(self, client: Client, ref: Json, name: str) -> list[str]:
        if ref.get("type") == "ref/resource":
            if ref.get("uri") not in TEMPLATES:
                raise Refused(INVALID_PARAMS, "Unknown resource template")
            return await self._tasks(client, "") if name == "id" else []
        prompt = str(ref.get("name"))
        published = self._desk.book.workflows.get(prompt)
        if published is None:
            if prompt != CONTINUE:
                raise Refused(INVALID_PARAMS, f"Unknown prompt: {prompt}")
            return await self._tasks(client, "&status=paused") if name == "task" else []
        schema = next((one.schema for one in published.plan.inputs if one.name == name), {})
        if schema.get("type") == "boolean":
            return ["true", "false"]
        allowed = schema.get("enum")
        return [str(one) for one in allowed] if isinstance(allowed, list) else []

    async def _tasks(self, client: Client, which: str) -> list[str]:
        found = await ask(self._desk.channel, client.caller, f"GET /v1/tasks?limit={VALUES_MAX}{which}")
        return [str(item["id"]) for item in found["items"]]
