"""Tool calls. Each belongs to a task: one that a client goes on with, a published plan's, or one of its own."""

from typing import Final

from everstep.domain.errors import EverstepError
from everstep.doors.mcp import engine_tools
from everstep.doors.mcp.bridge import task_id_in
from everstep.doors.mcp.carrying import Carrying
from everstep.doors.mcp.channel import Json, ask
from everstep.doors.mcp.continuing import ContinuedCall, alone, go_on, offered_tool, refusal_of
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.engine_work import EngineTools
from everstep.doors.mcp.published import tool_json
from everstep.doors.mcp.refusals import INVALID_PARAMS, METHOD_NOT_FOUND, Refused
from everstep.doors.mcp.talk import SILENT, Talk

KEY: Final = "everstep/idempotency_key"
AT_ONCE: Final = frozenset({"run_plan"})
"""Engine tools whose calls may be tasks."""


class Calls(Carrying):
    """What `tools/list` and `tools/call` do."""

    def __init__(self, desk: DoorDesk) -> None:
        super().__init__(desk)
        self._engine = EngineTools(desk)

    async def offered(self, client: Client) -> list[Json]:
        """Tools of published plans, exposed ones, plans that are tools, and those of the engine."""
        known = await self._desk.known_tools(client.caller)
        offered = self._desk.book.tools(known, engine_tools.ENGINE_TOOLS)
        only = self._desk.book.task_only
        listed = [tool_json(name, tool, "required" if name in only else "optional") for name, tool in offered.items()]
        for name, one in self._desk.book.workflows.items():
            if one.tool:
                schema = {"type": "object", "properties": {i.name: i.schema for i in one.plan.inputs}}
                required = [i.name for i in one.plan.inputs if i.required]
                described = {"description": one.plan.description or name, "execution": {"taskSupport": "optional"}}
                listed.append({"name": name, "inputSchema": {**schema, "required": required}, **described})
        return [*listed, *engine_tools.listed()]

    async def call(self, client: Client, name: str, arguments: Json, meta: Json, *, talk: Talk = SILENT) -> Json:
        """One call; the reply is the tool's own result, a task that gives it later, or a question."""
        try:
            task = task_id_in(meta)
        except ValueError as error:
            raise Refused(INVALID_PARAMS, str(error)) from error
        if name in engine_tools.ENGINE_TOOLS:
            return await self._engine.call(client, name, arguments, task)
        if task is not None:
            key = meta.get(KEY)
            call = ContinuedCall(task=task, tool=name, arguments=arguments, key=None if key is None else str(key))
            return await go_on(self._desk, client, call)
        body, at_once = await self._wanted(client, name, arguments)
        if name in self._desk.book.task_only:
            at_once = need_task(client, name)
        try:
            made = await ask(self._desk.channel, client.caller, "POST /v1/tasks", body)
        except EverstepError as error:
            return refusal_of(error)
        return await self.carried(client, made["id"], at_once=at_once, talk=talk)

    async def make_task(self, client: Client, name: str, arguments: Json, wanted: Json) -> Json:
        """A call that the client wants as a task (2025-11-25)."""
        ttl_ms = self._desk.ttl(wanted.get("ttl"))
        if name in engine_tools.ENGINE_TOOLS and name not in AT_ONCE:
            raise Refused(METHOD_NOT_FOUND, f"Tool {name} cannot be called as a task")
        if name in AT_ONCE:
            task = await self._engine.start_plan(client, arguments)
        else:
            body, _ = await self._wanted(client, name, arguments)
            task = str((await ask(self._desk.channel, client.caller, "POST /v1/tasks", body))["id"])
        return await self._as_task(client, task, ttl_ms)

    async def _wanted(self, client: Client, name: str, arguments: Json) -> tuple[Json, bool]:
        """The task that stands for a call, and whether it is a plan's."""
        published = self._desk.book.workflows.get(name)
        if published is not None and published.tool:
            how = {"continue_by": published.continue_by} if published.task_support else {}
            return {"plan": published.source, "trusted": True, "inputs": arguments, **how}, True
        tool = await offered_tool(self._desk, client, name)
        return {"plan": alone(tool["name"], arguments), "inputs": {}}, False


def need_task(client: Client, name: str) -> bool:
    """A tool whose calls are always tasks, called by somebody who can follow one; raises Refused."""
    if client.legacy:
        raise Refused(METHOD_NOT_FOUND, f"Tool {name} is only called as a task")
    client.need_tasks()
    return True
