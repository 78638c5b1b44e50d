"""Tasks on the wire: poll, list, answer, cancel, complete, wait for the result, be told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from everstep.domain.errors import EverstepError
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.doors.mcp import wire25, wire26
from everstep.doors.mcp.bridge import View, askable
from everstep.doors.mcp.channel import Json, ask, follow
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.forms import answer_of, form_of
from everstep.doors.mcp.refusals import INVALID_PARAMS, Refused, broken, no_such_task
from everstep.doors.mcp.story import ENDS, STANDS, Story, read_story
from everstep.doors.mcp.talk import Elicit

CANCEL_S: Final = 5.0
ASKED_MAX: Final = 64
SOON_S: Final = 1.0
"""A change is told at most so often; a question and an end at once."""
AT_ONCE: Final = STANDS | {"pause.opened"}


class Tasks:
    """The methods of both revisions."""

    def __init__(self, desk: DoorDesk) -> None:
        self._desk = desk

    async def get(self, client: Client, handle: Any) -> Json:  # noqa: ANN401 -- whatever a client sends
        """Where it stands."""
        story, view = await self._desk.held(client, handle)
        shown = wire25.task_json if client.legacy else wire26.task_json
        return shown(story.state, view)

    async def page(self, client: Client, cursor: Any) -> Json:  # noqa: ANN401 -- whatever a client sends
        """All of this owner, newest first (2025-11-25)."""
        if not isinstance(cursor, str | None):
            raise Refused(INVALID_PARAMS, "Invalid cursor")
        after = "" if cursor is None else f"&cursor={quote(cursor)}"
        try:
            found = await ask(self._desk.channel, client.caller, f"GET /v1/tasks?limit={self._desk.limits.page}{after}")
        except EverstepError as error:
            raise Refused(INVALID_PARAMS, "Invalid cursor") from error
        listed = []
        for item in found["items"]:
            story = await read_story(self._desk.channel, client.caller, item["id"])
            listed.append(wire25.flat_json(story.state, await self._desk.view(client, story.state)))
        more = found["next_cursor"]
        return {"tasks": listed, **({"nextCursor": more} if more else {})}

    async def result(self, client: Client, handle: Any, elicit: Elicit | None) -> Json:  # noqa: ANN401 -- whatever a client sends
        """The result of the call, when there is one; meanwhile its questions are asked (2025-11-25)."""
        while True:
            story, view = await self._desk.held(client, handle)
            if story.state.status in TERMINAL:
                return wire25.result_json(story.state, view)
            if elicit is None or not await self.ask(client, story, view, elicit):
                await self._news(client, str(handle), story.state.seq)

    async def ask(self, client: Client, story: Story, view: View, elicit: Elicit) -> bool:
        """One question of a task to whoever sits at the client; whether there was one."""
        questions = askable(story.state, view)
        if not questions:
            return False
        form: Any = form_of(questions[0], wire26.problem_of(questions[0].id, view))["params"]
        reply = await elicit(form["message"], form["requestedSchema"])
        await self.answered(client, story, view, {wire26.key_of(questions[0].id, view): reply})
        return True

    async def update(self, client: Client, handle: Any, responses: Any) -> Json:  # noqa: ANN401 -- whatever a client sends
        """Answers to what was asked (2026-07-28); unknown and answered keys are passed over."""
        if not isinstance(responses, dict) or len(responses) > self._desk.limits.input_responses:
            raise Refused(INVALID_PARAMS, "inputResponses must be an object of answers")
        story, view = await self._desk.held(client, handle)
        await self.answered(client, story, view, responses)
        return {}

    async def answered(self, client: Client, story: Story, view: View, responses: Json) -> None:
        """What came back, to the questions that are open; what cannot be read is asked again."""
        for pause in askable(story.state, view):
            reply = responses.get(wire26.key_of(pause.id, view))
            if not isinstance(reply, dict):
                continue
            action = reply.get("action")
            if action == "decline" and "reject" in pause.answers:
                body: Json = {"answer": "reject", "note": "declined"}
                if pause.call is not None:
                    body["digest"] = pause.call.input.digest
            elif action == "accept":
                try:
                    body = dict(answer_of(pause, reply.get("content") or {}))
                except EverstepError as error:
                    await self._ask_again(client, view, pause.id, error.message)
                    continue
            else:
                await self._desk.note(client, view.handle, {pause.id: "declined"})
                continue
            caller = replace(client.caller, kind=view.actor_kind)
            try:
                await ask(self._desk.channel, caller, f"POST /v1/inbox/{pause.id}/answer", body)
            except EverstepError as error:
                if error.code in ("answer_invalid", "bad_request", "answer_not_allowed", "stale_digest"):
                    await self._ask_again(client, view, pause.id, error.message)
                elif error.code != "already_answered":
                    raise broken(error) from error

    async def _ask_again(self, client: Client, view: View, pause: str, problem: str) -> None:
        """The question stays open, under another key, and says what was wrong."""
        asked = view.aside.get(f"{pause}.asked")
        count = asked + 1 if isinstance(asked, int) else 2
        if count <= ASKED_MAX:
            await self._desk.note(client, view.handle, {f"{pause}.asked": count, f"{pause}.problem": problem})

    async def cancel(self, client: Client, params: Json) -> Json:
        """End it; with a result: it is done."""
        handle = params.get("taskId")
        story, view = await self._desk.held(client, handle)
        ended = story.state.status in TERMINAL
        if ended and (client.legacy or "result" in params):
            raise Refused(INVALID_PARAMS, f"The task is {story.state.status.value}")
        if not ended:
            await self._end(client, view.handle, params)
        if not client.legacy:
            return {}
        if "result" not in params:
            await self._wait_for_end(client, view.handle, story.state.seq)
        story, view = await self._desk.held(client, handle)
        if story.state.status is TaskStatus.CANCELLING:
            view = await self._desk.note(client, view.handle, {"cancelled": True})
        return wire25.task_json(story.state, view)

    async def _end(self, client: Client, handle: str, params: Json) -> None:
        completes = "result" in params
        path = f"/v1/tasks/{handle}/{'complete' if completes else 'cancel'}"
        try:
            await ask(
                self._desk.channel, client.caller, f"POST {path}", {"result": params["result"]} if completes else {}
            )
        except EverstepError as error:
            if error.code == "not_found":
                raise no_such_task() from error
            raise Refused(INVALID_PARAMS, error.message, {"code": error.code}) from error

    async def _wait_for_end(self, client: Client, handle: str, after: int) -> None:
        try:
            async with asyncio.timeout(CANCEL_S):
                async for event in follow(self._desk.channel, client.caller, handle, after):
                    if event["type"] in ENDS:
                        return
        except TimeoutError:
            return

    async def known(self, client: Client, handles: list[Any]) -> list[str]:
        """Those of these tasks that are this owner's, and exist."""
        found = []
        for handle in handles[:100]:
            try:
                await self._desk.held(client, handle)
            except Refused:
                continue
            found.append(str(handle))
        return found

    async def changes(self, client: Client, handle: str) -> AsyncIterator[Json]:
        """The task now, then whole after every change, until it has ended."""
        while True:
            story, view = await self._desk.held(client, handle)
            yield wire25.flat_json(story.state, view) if client.legacy else wire26.detail_json(story.state, view)
            if story.state.status in TERMINAL:
                return
            await self._news(client, handle, story.state.seq, SOON_S)

    async def later(self, client: Client, task: str, after: int) -> AsyncIterator[int]:
        """The `seq` up to which a task has changed, each time it has, until it has ended."""
        ended = False
        while not ended:
            after, ended = await self._news(client, task, after, SOON_S)
            yield after

    async def _news(self, client: Client, task: str, after: int, soon_s: float = 0.0) -> tuple[int, bool]:
        """Until something has happened, gathered a while if it is not urgent: up to which event, was it the end."""
        events = follow(self._desk.channel, client.caller, task, after)
        async with aclosing(events):
            event = await anext(events)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(soon_s or None):
                    while soon_s and event["type"] not in AT_ONCE:
                        event = await anext(events)
        return int(event["seq"]), event["type"] in ENDS
