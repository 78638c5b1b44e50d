"""Resources: published plans, and the inside of tasks as templates."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final
from urllib.parse import quote, unquote

from everstep.domain.errors import EverstepError
from everstep.domain.task import TaskState
from everstep.doors.mcp.bridge import LEGACY
from everstep.doors.mcp.channel import Ask, Json
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.listening import SUBSCRIPTIONS_MAX
from everstep.doors.mcp.refusals import INVALID_PARAMS, RESOURCE_NOT_FOUND, Refused
from everstep.doors.mcp.tasks import Tasks

TEMPLATES: Final = {
    "task://{id}": ("task", "A task"),
    "task://{id}/journal": ("task journal", "Every event of a task"),
    "task://{id}/variables": ("task variables", "What whoever takes over reads"),
    "task://{id}/steps/{step}/output": ("step output", "What a step gave"),
    "task://{id}/artifacts/{digest}": ("artifact", "A large value, by its digest"),
    "task://{id}/handoff": ("hand-off packet", "Everything that another client needs to go on"),
}


class Resources:
    """What `resources/*` do."""

    def __init__(self, desk: DoorDesk) -> None:
        self._desk = desk
        self._tasks = Tasks(desk)

    def plans(self) -> list[Json]:
        """The plans."""
        return [
            {"uri": f"plan://{name}", "name": name, "mimeType": "application/json"}
            for name in self._desk.book.workflows
        ]

    def templates(self) -> list[Json]:
        """The tasks."""
        return [
            {"uriTemplate": uri, "name": name, "description": text, "mimeType": "application/json"}
            for uri, (name, text) in TEMPLATES.items()
        ]

    async def read(self, client: Client, uri: str) -> Json:
        """One of them, as JSON; unknown and foreign are the same."""
        value = await self._value(client, uri)
        return {
            "contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(value, ensure_ascii=False)}]
        }

    async def watched(self, client: Client, uris: list[str]) -> dict[str, AsyncIterator[None]]:
        """The changes of those of them that this client can read, from now on."""
        found = {}
        for uri in uris[:SUBSCRIPTIONS_MAX]:
            with suppress(Refused):
                await self.read(client, uri)
                found[uri] = await self.updates(client, uri)
        return found

    async def updates(self, client: Client, uri: str) -> AsyncIterator[None]:
        """Once for every change of what can be read, from now on, as long as there can be another.

        What is told begins here, not when somebody first listens: a change in between must not be lost.
        """
        if not uri.startswith("task://"):
            return self._of_plans()
        task = await self._desk.story(client, uri.removeprefix("task://").partition("/")[0])
        return self._of_task(client, task.state)

    async def _of_task(self, client: Client, seen: TaskState) -> AsyncIterator[None]:
        if not seen.terminal:
            async for _ in self._tasks.later(client, seen.id, seen.seq):
                yield

    async def _of_plans(self) -> AsyncIterator[None]:
        with self._desk.book.bells.listening() as ear:
            while True:
                if "resources" in await ear.changed():
                    yield

    async def _value(self, client: Client, uri: str) -> object:
        scheme, _, rest = uri.partition("://")
        published = self._desk.book.workflows.get(rest) if scheme == "plan" else None
        if published is not None:
            return published.source
        path = _path(rest) if scheme == "task" else None
        if path is None:
            raise self._missing(client, uri)
        try:
            if rest.startswith("mt_"):
                await self._desk.held(client, rest.partition("/")[0])
            status, body = await self._desk.channel.request(client.caller, Ask(method="GET", path=path))
        except (EverstepError, Refused) as error:
            raise self._missing(client, uri) from error
        if status >= 400:
            raise self._missing(client, uri)
        shown = json.loads(body)
        return (shown["output"] or {}).get("value", shown["output"]) if "/steps/" in path else shown

    def _missing(self, client: Client, uri: str) -> Refused:
        code = RESOURCE_NOT_FOUND if client.era == LEGACY else INVALID_PARAMS
        return Refused(code, "Resource not found", {"uri": uri})


def _path(rest: str) -> str | None:
    """The route that gives it."""
    task, *inside = [unquote(part) for part in rest.split("/")]
    base = f"/v1/tasks/{quote(task, safe='')}"
    match inside:
        case []:
            return base
        case ["journal"]:
            return f"{base}/events?limit=500"
        case ["variables" | "handoff" as part]:
            return f"{base}/{part}"
        case ["steps", step, "output"]:
            return f"{base}/steps/{quote(step, safe='')}"
        case ["artifacts", digest]:
            return f"{base}/artifacts/{quote(digest, safe='')}"
        case _:
            return None
