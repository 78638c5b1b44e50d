"""Tool calls. Each belongs to a task: one that a client goes on with, a published plan's, or one of its own."""

import asyncio
import re
from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.states import TaskStatus
from everstep.doors.mcp import engine_tools, wire25, wire26
from everstep.doors.mcp.bridge import failed_result, task_id_in, task_result
from everstep.doors.mcp.channel import Json, ask, follow
from everstep.doors.mcp.continuing import ContinuedCall, alone, go_on, offered_tool, refusal_of
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.engine_work import EngineTools
from everstep.doors.mcp.published import tool_json
from everstep.doors.mcp.refusals import INVALID_PARAMS, METHOD_NOT_FOUND, Refused
from everstep.doors.mcp.story import STANDS, Story, read_story
from everstep.doors.mcp.talk import SILENT, WHOLE, Talk, telling
from everstep.doors.mcp.tasks import Tasks

KEY: Final = "everstep/idempotency_key"
AT_ONCE: Final = frozenset({"run_plan"})
"""Engine tools whose calls may be tasks."""


REQUEST_STATE: Final = re.compile(r"(?P<handle>mt_[\w-]+)\.[0-9]+", re.ASCII)
"""What a client brings back with its answers: the task that asks, and when."""


class Calls:
    """What `tools/list` and `tools/call` do."""

    def __init__(self, desk: DoorDesk) -> None:
        self._desk = desk
        self._engine = EngineTools(desk)
        self._tasks = Tasks(desk)

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

    async def call(self, client: Client, name: str, arguments: Json, meta: Json, talk: Talk = SILENT) -> Json:
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

    async def resumed(self, client: Client, asked: str, responses: Json, talk: Talk = SILENT) -> Json:
        """The same call again, with answers to what it asked (2026-07-28): no second one is made."""
        found = REQUEST_STATE.fullmatch(asked)
        if found is None:
            raise Refused(INVALID_PARAMS, "requestState is not one of this server")
        story, view = await self._desk.held(client, found["handle"])
        await self._tasks.answered(client, story, view, responses)
        return await self.carried(client, view.handle, at_once=False, talk=talk, after=story.state.seq)

    async def carried(self, client: Client, task: str, *, at_once: bool, talk: Talk = SILENT, after: int = 0) -> Json:
        """What comes of a task: its result, or, for whoever can follow one, the task itself if it takes a while."""
        if client.tasks and at_once:
            return await self._as_task(client, task)
        try:
            async with asyncio.timeout(self._desk.limits.task_after_s if client.tasks else None):
                story = await self._stands(client, task, talk, after)
        except TimeoutError:
            return await self._as_task(client, task)
        return await self._outcome(client, story)

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
        story = await read_story(self._desk.channel, client.caller, task)
        return wire25.created_json(story.state, await self._desk.view(client, story.state, ttl_ms))

    async def _wanted(self, client: Client, name: str, arguments: Json) -> tuple[Json, bool]:
        """The task that stands for a call, and whether it is a plan's."""
        published = self._desk.book.workflows.get(name)
        if published is not None and published.tool:
            how = {"continue_by": published.continue_by} if published.task_support else {}
            return {"plan": published.source, "trusted": True, "inputs": arguments, **how}, True
        tool = await offered_tool(self._desk, client, name)
        return {"plan": alone(tool["name"], arguments), "inputs": {}}, False

    async def _stands(self, client: Client, task: str, talk: Talk, after: int) -> Story:
        """A task that has ended, or waits for somebody who cannot be asked here."""
        async with telling(self._desk.channel, client.caller, task, talk.tell):
            story = await self._standing(client, task, after)
            while talk.elicit is not None:
                view = await self._desk.view(client, story.state)
                if not await self._tasks.ask(client, story, view, talk.elicit):
                    break
                story = await self._standing(client, task, story.state.seq)
        if talk.tell is not None and story.state.status is TaskStatus.COMPLETED:
            await talk.tell(WHOLE, WHOLE, "")
        return story

    async def _standing(self, client: Client, task: str, after: int) -> Story:
        if after:  # another question may have been open all the time
            story = await read_story(self._desk.channel, client.caller, task)
            if story.state.terminal or (story.state.status is TaskStatus.PAUSED and story.state.pauses):
                return story
        async for event in follow(self._desk.channel, client.caller, task, after):
            if event["type"] in STANDS:
                break
        return await read_story(self._desk.channel, client.caller, task)

    async def _as_task(self, client: Client, task: str) -> Json:
        story = await read_story(self._desk.channel, client.caller, task)
        return wire26.created_json(story.state, await self._desk.view(client, story.state))

    async def _outcome(self, client: Client, story: Story) -> Json:
        """The result of a task that has ended; one that waits for somebody asks, or says so."""
        result = task_result(story.state)
        if result is not None:
            return result
        if client.tasks:  # it asks: that is for whoever can follow a task
            return await self._as_task(client, story.state.id)
        view = await self._desk.view(client, story.state)
        questions = {} if client.legacy else wire26.questions_json(story.state, view)
        if questions:
            state = f"{view.handle}.{story.state.seq}"
            return {"resultType": "input_required", "inputRequests": questions, "requestState": state}
        pause = next(iter(story.state.pauses.values()), None)
        title = "the task waits" if pause is None else f"the task waits for an answer: {pause.title}"
        details: Json = {"task_id": view.handle, "pause": None if pause is None else pause.id}
        return failed_result({"code": "answer_needed", "message": title, "details": details})


def need_task(client: Client, name: str) -> bool:
    """A tool whose calls are always tasks, called by somebody who can follow one; raises Refused."""
    if client.legacy:
        raise Refused(METHOD_NOT_FOUND, f"Tool {name} is only called as a task")
    client.need_tasks()
    return True
