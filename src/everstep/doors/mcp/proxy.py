"""The proxy: the door of `everstep mcp` with another server's face. Every call of a tool is a task of one step.

What is asked of prompts and resources is passed on as it is. Our own tools are not listed, but can be called: whoever
comes back after a crash finds results with `list_tasks` and `get_task`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from everstep.bootstrap import Proxied
from everstep.domain.errors import EverstepError
from everstep.doors.mcp.bridge import PROXIED, task_id_in
from everstep.doors.mcp.calls import KEY, Calls
from everstep.doors.mcp.channel import BRIEF, Ask, Json, good
from everstep.doors.mcp.continuing import alone, refusal_of
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.door import Face, McpDoor
from everstep.doors.mcp.engine_tools import ENGINE_TOOLS
from everstep.doors.mcp.passed_on import RemoteCompletion, RemotePrompts, RemoteResources
from everstep.doors.mcp.refusals import INVALID_PARAMS, Refused
from everstep.doors.mcp.talk import SILENT, Talk

TIMEOUT: Final = "1h"
"""What a call may take: whoever asked is the one who loses patience."""
WITHOUT: Final = {
    "prompts": frozenset({"on_list_prompts", "on_get_prompt"}),
    "resources": frozenset({"on_list_resources", "on_list_resource_templates", "on_read_resource"}),
    "completions": frozenset({"on_completion"}),
}
SUBSCRIBING: Final = frozenset({"on_subscribe_resource", "on_unsubscribe_resource"})
SLOW_S: Final = 5.0
"""Who usually takes longer is a task at once, for whoever can follow one."""


def proxy_door(desk: DoorDesk, remote: Proxied, owner: str) -> McpDoor:
    """A door that looks like the server behind it."""
    door = McpDoor(desk, owner=owner, stdio=True)
    said = remote.greeting.get("serverInfo")
    info: Mapping[str, Any] = said if isinstance(said, dict) else {}
    told = remote.greeting.get("instructions")
    lacks = [names for what, names in WITHOUT.items() if not remote.has(what)]
    lacks += [] if remote.has("resources", "subscribe") else [SUBSCRIBING]
    door.face = Face(
        name=str(info.get("name") or remote.name),
        version=str(info.get("version") or ""),
        instructions=told if isinstance(told, str) else None,
        without=frozenset().union(*lacks),
    )
    door.calls = ProxyCalls(desk, remote)
    door.prompts = RemotePrompts(desk, remote)
    door.resources = RemoteResources(desk, remote)
    door.completion = RemoteCompletion(desk, remote)
    remote.changed = desk.book.bells.ring
    return door


class ProxyCalls(Calls):
    """`tools/list` and `tools/call` of the server behind it."""

    def __init__(self, desk: DoorDesk, remote: Proxied) -> None:
        super().__init__(desk)
        self._remote = remote

    async def offered(self, client: Client) -> list[Json]:  # noqa: ARG002 -- the same for everybody
        """As the server lists them."""
        return list(self._remote.tools)

    async def call(self, client: Client, name: str, arguments: Json, meta: Json, *, talk: Talk = SILENT) -> Json:
        """One call: a task of its own, or, with a key that was used before, the task that has it."""
        if not self._knows(name) and name in ENGINE_TOOLS:
            return await self._engine.call(client, name, arguments, task_id_in(meta))
        body, _ = await self._wanted(client, name, arguments)
        key = meta.get(KEY)
        headers = {} if key is None else {"idempotency-key": str(key)}
        if not client.tasks:  # it waits for the result, however long that takes
            headers |= BRIEF
        stays = not client.tasks and talk.tell is None
        request = Ask(method="POST", path="/v1/tasks", body=body, headers=headers, stays=stays)
        try:
            made = await good(self._desk.channel, client.caller, request)
        except EverstepError as error:
            return refusal_of(error)
        slow = client.tasks and _usually_slow(json.loads(made))
        return await self.lived(client, PROXIED, made, at_once=slow, talk=talk)

    async def _wanted(self, client: Client, name: str, arguments: Json) -> tuple[Json, bool]:  # noqa: ARG002
        if not self._knows(name):
            raise Refused(INVALID_PARAMS, f"Unknown tool: {name}")
        plan: Json = {**alone(f"mcp.{self._remote.name}.{name}", arguments), "name": PROXIED, "title": name}
        plan["steps"][0]["timeout"] = TIMEOUT
        return {"plan": plan, "trusted": True}, False

    def _knows(self, name: str) -> bool:
        return any(tool["name"] == name for tool in self._remote.tools)


def _usually_slow(made: Json) -> bool:
    """What calls of this tool took so far, as a task that was just made expects."""
    said = made.get("estimate")
    middle = said.get("p50") if isinstance(said, dict) else None
    return isinstance(middle, int | float) and middle > SLOW_S
