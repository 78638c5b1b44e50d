"""Tasks on the wire: poll, list, answer, cancel, complete, wait for the result, be told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from everstep.domain.errors import EverstepError
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.doors.mcp import wire25, wire26
from everstep.doors.mcp.bridge import View, askable
from everstep.doors.mcp.channel import Json, ask, follow
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.forms import answer_of, form_of
from everstep.doors.mcp.refusals import INVALID_PARAMS, Refused, broken, no_such_task
from everstep.doors.mcp.story import STANDS, Story, read_story

CANCEL_S: Final = 5.0
ASKED_MAX: Final = 64
Elicit: TypeAlias = Callable[[str, Json], Awaitable[Json]]
"""Ask the person behind the client: message and schema in, `{action, content}` out."""


class Tasks:
    """The methods of both revisions."""

    def __init__(self, desk: DoorDesk) -> None:
        self._desk = desk

    async def get(self, client: Client, handle: Any) -> Json:  # noqa: ANN401 -- whatever a client sends
        """Where it stands."""
        story, view = await self._desk.held(client, handle)
        shown = wire25.task_json if client.legacy else wire26.task_json
        return shown(story.state, view)

    async def page(self, client: Client, cursor: str | None) -> Json:
        """All of this owner, newest first (2025-11-25)."""
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
            asked = [one for one in askable(story.state, view) if elicit is not None]
            if asked and elicit is not None:
                form = form_of(asked[0], wire26.problem_of(asked[0].id, view))["params"]
                reply = await elicit(form["message"], form["requestedSchema"])  # type: ignore[index, call-overload, arg-type]
                await self._answered(client, story, view, {wire26.key_of(asked[0].id, view): reply})
                continue
            async for _ in follow(self._desk.channel, client.caller, str(handle), story.state.seq):
                break

    async def update(self, client: Client, handle: Any, responses: Any) -> Json:  # noqa: ANN401 -- whatever a client sends
        """Answers to what was asked (2026-07-28); unknown and answered keys are passed over."""
        if not isinstance(responses, dict) or len(responses) > self._desk.limits.input_responses:
            raise Refused(INVALID_PARAMS, "inputResponses must be an object of answers")
        story, view = await self._desk.held(client, handle)
        await self._answered(client, story, view, responses)
        return {}

    async def _answered(self, client: Client, story: Story, view: View, responses: Json) -> None:
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
            await self._wait_for_end(client, view.handle)
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

    async def _wait_for_end(self, client: Client, handle: str) -> None:
        try:
            async with asyncio.timeout(CANCEL_S):
                async for event in follow(self._desk.channel, client.caller, handle, 0):
                    if event["type"] in STANDS - {"task.paused"}:
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
            async for _ in follow(self._desk.channel, client.caller, handle, story.state.seq):
                break
