"""Until a call has come to something: its result, a task that gives it later, or a question."""

import asyncio
import re
from typing import Final

from everstep.domain.events import TaskCompleted, TaskFailed
from everstep.domain.states import TaskStatus
from everstep.doors.mcp import wire25, wire26
from everstep.doors.mcp.bridge import completed_result, failed_result, failure_result, task_result
from everstep.doors.mcp.channel import Json
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.refusals import INVALID_PARAMS, Refused
from everstep.doors.mcp.story import Story, read_story, standing
from everstep.doors.mcp.talk import SILENT, WHOLE, Talk, telling
from everstep.doors.mcp.tasks import Tasks
from everstep.wire.event import made_in

REQUEST_STATE: Final = re.compile(r"(?P<handle>mt_[\w-]+)\.[0-9]+", re.ASCII)
"""What a client brings back with its answers: the task that asks, and when."""


class Carrying:
    """What becomes of the task behind a call, for whoever made it."""

    def __init__(self, desk: DoorDesk) -> None:
        self._desk = desk
        self._tasks = Tasks(desk)

    async def resumed(self, client: Client, asked: str, responses: Json, *, talk: Talk = SILENT) -> Json:
        """The same call again, with answers to what it asked (2026-07-28): no second one is made."""
        found = REQUEST_STATE.fullmatch(asked)
        if found is None:
            raise Refused(INVALID_PARAMS, "requestState is not one of this server")
        story, view = await self._desk.held(client, found["handle"])
        await self._tasks.answered(client, story, view, responses)
        return await self.carried(client, view.handle, at_once=False, talk=talk)

    async def carried(self, client: Client, task: str, *, at_once: bool, talk: Talk = SILENT) -> Json:
        """What comes of a task: its result, or, for whoever can follow one, the task itself if it takes a while."""
        if client.tasks and at_once:
            return await self._as_task(client, task)
        try:
            async with asyncio.timeout(self._desk.limits.task_after_s if client.tasks else None):
                story = await self._stands(client, task, talk)
        except TimeoutError:
            return await self._as_task(client, task)
        return await self._outcome(client, story)

    async def lived(self, client: Client, plan: str, made: bytes, *, at_once: bool, talk: Talk) -> Json:
        """The same of a new task of this plan, straight from its last event if that came along."""
        task, last = made_in(made)
        match None if last is None else last.body:
            case TaskCompleted(outputs=outputs) if outputs.present:
                return completed_result(plan, outputs.value)
            case TaskFailed(error=error):
                return failure_result(plan, error.failure)
            case _:
                return await self.carried(client, task, at_once=at_once, talk=talk)

    async def _stands(self, client: Client, task: str, talk: Talk) -> Story:
        """A task that has ended, or waits for somebody who cannot be asked here."""
        async with telling(self._desk.channel, client.caller, task, talk.tell):
            story = await standing(self._desk.channel, client.caller, task)
            while talk.elicit is not None and not story.state.terminal:
                view = await self._desk.view(client, story.state)
                if not await self._tasks.ask(client, story, view, talk.elicit):
                    break
                story = await standing(self._desk.channel, client.caller, task)
        if talk.tell is not None and story.state.status is TaskStatus.COMPLETED:
            await talk.tell(WHOLE, WHOLE, "")
        return story

    async def _as_task(self, client: Client, task: str, ttl_ms: int | None = None) -> Json:
        story = await read_story(self._desk.channel, client.caller, task)
        created = wire25.created_json if client.legacy else wire26.created_json
        return created(story.state, await self._desk.view(client, story.state, ttl_ms))

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
