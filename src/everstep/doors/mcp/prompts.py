"""Workflow prompts: a task is made, the engine carries it, and its journal is told as a conversation."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.states import TaskStatus
from everstep.doors.mcp.bridge import meta_of
from everstep.doors.mcp.channel import Caller, Json, ask, follow
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.handoff import handoff_text
from everstep.doors.mcp.published import Published, first_lines
from everstep.doors.mcp.refusals import INTERNAL_ERROR, INVALID_PARAMS, Refused
from everstep.doors.mcp.story import ENDS, STANDS, Story, read_story
from everstep.doors.mcp.talk import Tell
from everstep.doors.mcp.workflow import Message, transcript
from everstep.wire.inputs import BadTextError, parse_text_input

CONTINUE: Final = "continue_task"
UNAVAILABLE: Final = frozenset({"too_many_tasks", "store_unavailable", "store_full", "not_ready", "overloaded"})


class Prompts:
    """Published plans as prompts."""

    def __init__(self, desk: DoorDesk) -> None:
        self._desk = desk
        self.left: set[asyncio.Task[object]] = set()

    def offered(self) -> list[Json]:
        """All of them, and the one that goes on."""
        going_on: Json = {
            "name": CONTINUE,
            "description": "Go on with a task that was handed over",
            "arguments": [
                {"name": "task", "description": "Its id; the latest hand-off if left out", "required": False}
            ],
        }
        return [*(one.prompt() for one in self._desk.book.workflows.values()), going_on]

    async def get(self, client: Client, name: str, arguments: Mapping[str, str], tell: Tell) -> Json:
        """The conversation; raises Refused for a name or an argument that nobody knows."""
        if name == CONTINUE and name not in self._desk.book.workflows:
            return await self._again(client, arguments.get("task"))
        published = self._desk.book.workflows.get(name)
        if published is None:
            raise Refused(INVALID_PARAMS, f"Unknown prompt: {name}")
        declared = {one.name: one for one in published.plan.inputs}
        for given in arguments:
            if given not in declared:
                raise Refused(INVALID_PARAMS, f"Unknown argument: {given}")
        await self._desk.check_tools(client.caller, published)
        if not published.task_support:
            return await self._plain(client, published, arguments, tell)
        try:
            task = await self._make(client.caller, published, arguments, {"continue_by": published.continue_by})
        except Refused as refused:
            if (
                self._desk.limits.on_task_unavailable != "plain"
                or refused.code != INTERNAL_ERROR
                or refused.data is None
            ):
                raise
            plain = await self._plain(client, published, arguments, tell)
            return {**plain, "_meta": {"everstep/task_unavailable": refused.data["code"]}}
        return await self._backed(client, published, task, arguments=arguments, tell=tell)

    async def _plain(self, client: Client, published: Published, arguments: Mapping[str, str], tell: Tell) -> Json:
        task = await self._make(client.caller, published, arguments, {"unannounced": True})
        try:
            await self._wait(client.caller, task, order_of(published), ends=ENDS, tell=tell)
        except asyncio.CancelledError:
            self._leave(ask(self._desk.channel, client.caller, f"POST /v1/tasks/{task}/cancel", {}))
            raise
        story = await self._read(client.caller, task, published)
        if story.state.status is TaskStatus.COMPLETED:
            total = len(published.plan.steps)
            await tell(total, total, "Workflow execution complete")
        return prompt_json(published, await self._told(client.caller, story, arguments))

    async def _backed(
        self, client: Client, published: Published, task: str, *, arguments: Mapping[str, str], tell: Tell
    ) -> Json:
        caller = client.caller
        try:
            async with asyncio.timeout(self._desk.limits.prompt_wait_s):
                await self._wait(caller, task, order_of(published), ends=STANDS, tell=tell)
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self._leave(self._stand_still(caller, task))
            raise
        story = await self._read(caller, task, published)
        if story.state.status is TaskStatus.COMPLETED:
            total = len(published.plan.steps)
            await tell(total, total, "Workflow execution complete")
        messages = await self._told(caller, story, arguments)
        messages += last_words(story)
        view = await self._desk.view(client, story.state)
        return {**prompt_json(published, messages), "_meta": meta_of(story.state, view, client.era)}

    async def _stand_still(self, caller: Caller, task: str) -> None:
        """Whoever asked has gone: what ran stands, the rest waits."""
        story = await read_story(self._desk.channel, caller, task)
        under_way = next((path for path, step in story.state.steps.items() if not step.ended), "")
        note = {"note": f"request cancelled at step {under_way}"}
        gone = Caller(owner=caller.owner, name="client")
        await ask(self._desk.channel, gone, f"POST /v1/tasks/{task}/pause", note)

    async def _again(self, client: Client, task: str | None) -> Json:
        """An open task for another client: all that was said, and how to go on."""
        name = task or await self._desk.latest(client.caller)
        story = await self._desk.story(client, name)
        as_written(story, self._desk.book.workflows.get(story.state.plan.name))
        given = {key: value if isinstance(value, str) else str(value) for key, value in _inputs(story).items()}
        messages = await self._told(client.caller, story, given)
        messages += last_words(story)
        view = await self._desk.view(client, story.state)
        published = Published(plan=story.state.plan)
        return {**prompt_json(published, messages), "_meta": meta_of(story.state, view, client.era)}

    async def _read(self, caller: Caller, task: str, published: Published) -> Story:
        story = await read_story(self._desk.channel, caller, task)
        as_written(story, published)
        return story

    async def _make(self, caller: Caller, published: Published, arguments: Mapping[str, str], how: Json) -> str:
        body: Json = {"plan": published.source, "trusted": True, "inputs": values_of(published, arguments), **how}
        try:
            return str((await ask(self._desk.channel, caller, "POST /v1/tasks", body))["id"])
        except EverstepError as error:
            if error.code == "inputs_invalid":
                raise Refused(INVALID_PARAMS, error.message, {"code": error.code}) from error
            if error.code not in UNAVAILABLE:
                raise
            raise Refused(INTERNAL_ERROR, error.message, {"code": error.code}) from error

    async def _wait(self, caller: Caller, task: str, order: list[str], *, ends: frozenset[str], tell: Tell) -> None:
        told = 0
        async for event in follow(self._desk.channel, caller, task, 0):
            name = str(event.get("step") or "").partition("[")[0]
            if name in order and order.index(name) + 1 > told:
                told = order.index(name) + 1
                await tell(told, len(order), f"Step {told}/{len(order)}: {name}")
            if event["type"] in ends:
                return

    async def _told(self, caller: Caller, story: Story, arguments: Mapping[str, str]) -> list[Message]:
        return transcript(story, arguments, first_lines(await self._desk.known_tools(caller)))

    def _leave(self, errand: Awaitable[object]) -> None:
        """Something that is to be done although whoever asked has gone."""
        task = asyncio.ensure_future(errand)
        self.left.add(task)
        task.add_done_callback(self.left.discard)


def as_written(story: Story, published: Published | None) -> None:
    """The same plan with its keys in the order in which somebody wrote them: the journal keeps none."""
    state = story.state
    if published is not None and published.digest == state.plan_digest:
        state.plan = published.plan
        state.specs = {spec.id: spec for spec in (*state.plan.steps, *state.plan.finally_steps)}


def order_of(published: Published) -> list[str]:
    """The steps of a plan by name."""
    return [spec.id for spec in published.plan.steps]


def last_words(story: Story) -> list[Message]:
    """What is said of a task that has not ended."""
    state = story.state
    if state.terminal:
        return []
    text = handoff_text(state) if state.status is TaskStatus.PAUSED else None
    if text is not None:
        return [("assistant", text)]
    total = len(state.plan.steps)
    return [("assistant", f"The workflow is still running on the server ({state.done} of {total} steps done).")]


def values_of(published: Published, arguments: Mapping[str, str]) -> Json:
    """Arguments by the type of their input; one that cannot be read is not there."""
    values: Json = {}
    for one in published.plan.inputs:
        if one.name not in arguments:
            continue
        text = arguments[one.name]
        if one.schema.get("type") not in ("string", "secret") and text != text.strip():
            continue
        try:
            values[one.name] = parse_text_input(one.schema, text)
        except BadTextError:
            continue
    return values


def prompt_json(published: Published, messages: list[Message]) -> Json:
    """The result of `prompts/get`."""
    plan = published.plan
    said = [{"role": role, "content": {"type": "text", "text": text}} for role, text in messages]
    return {"description": plan.description or plan.title or plan.name, "messages": said}


def _inputs(story: Story) -> Json:
    inputs = story.state.inputs.value
    return inputs if isinstance(inputs, dict) else {}
