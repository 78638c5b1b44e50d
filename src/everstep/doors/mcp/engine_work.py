"""What the engine's own tools do: each translates into `/v1` and back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode

from everstep.domain.errors import EverstepError
from everstep.domain.task import TaskState
from everstep.doors.mcp.bridge import (
    MODERN,
    View,
    call_result,
    failed_result,
    mcp_status,
    poll_ms,
    status_message,
    task_result,
)
from everstep.doors.mcp.channel import Ask, Json, ask, asked, follow
from everstep.doors.mcp.continuing import ContinuedCall, go_on
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.engine_tools import ENGINE_TOOLS, misfit
from everstep.doors.mcp.handoff import handoff_text
from everstep.doors.mcp.refusals import INVALID_PARAMS, OURS, Refused, broken, error_json
from everstep.doors.mcp.story import STANDS, read_story

WAIT_S_MAX: Final = 50.0
Handler: TypeAlias = Callable[["EngineTools", Client, Json], Awaitable[Json]]


class EngineTools:
    """What each of them does."""

    def __init__(self, desk: DoorDesk) -> None:
        self.desk = desk

    async def call(self, client: Client, name: str, arguments: Json, task: str | None) -> Json:
        """One of them; what a model can act on is a result."""
        given = {key: value for key, value in arguments.items() if value is not None}
        wrong = misfit(name, arguments)
        if wrong is not None:
            return failed_result({"code": "bad_request", "message": f"the arguments do not fit {name}: {wrong}"})
        if "task" in ENGINE_TOOLS[name].properties and "task" not in given:
            if task is None and name != "answer_pause":
                return failed_result({"code": "bad_request", "message": "which task? give its id as 'task'"})
            given["task"] = task
        try:
            return await _HANDLERS[name](self, client, given)
        except EverstepError as error:
            if error.code in OURS:
                raise broken(error) from error
            return failed_result(error_json(error))

    async def start_plan(self, client: Client, given: Json) -> str:
        """A task of a plan by name, or of one that came with the call: that one is nobody's whom we trust."""
        plan = given.get("plan")
        published = self.desk.book.workflows.get(plan) if isinstance(plan, str) else None
        body: Json = {"inputs": given.get("inputs") or {}}
        if published is not None:
            body |= {"plan": published.source, "trusted": True}
        else:
            body |= {"plan_name": plan} if isinstance(plan, str) else {"plan": plan}
        headers = {"idempotency-key": str(given["key"])} if given.get("key") else None
        request = Ask(method="POST", path="/v1/tasks", body=body, headers=headers)
        return str((await asked(self.desk.channel, client.caller, request))["id"])

    async def ask(self, client: Client, method: str, path: str, body: Json | None = None) -> Json:
        """A request of `/v1`."""
        return await ask(self.desk.channel, client.caller, f"{method} {path}", body)

    async def wait(self, client: Client, task: str, wait_s: Any) -> None:  # noqa: ANN401 -- whatever a client sends
        """Until the task stands, or the time is up."""
        seconds = self.desk.limits.wait_s if wait_s is None else float(wait_s)
        try:
            async with asyncio.timeout(min(max(0.0, seconds), WAIT_S_MAX)):
                story = await read_story(self.desk.channel, client.caller, task)
                if story.state.terminal or story.state.pauses:
                    return
                async for event in follow(self.desk.channel, client.caller, task, story.state.seq):
                    if event["type"] in STANDS:
                        return
        except TimeoutError:
            return

    async def stands(self, client: Client, task: str) -> Json:
        """The result, if it has ended; else how to follow it."""
        story = await self.desk.story(client, task)
        view = await self.desk.view(client, story.state)
        result = task_result(story.state)
        if result is not None:
            return {**result, "_meta": {"task_id": view.handle}}
        return call_result(self.told(story.state, view))

    def told(self, state: TaskState, view: View) -> Json:
        """Where it stands, in words and figures."""
        return {
            "task_id": view.handle,
            "status": mcp_status(state, view, MODERN),
            "status_message": status_message(state),
            "poll_after_ms": poll_ms(state),
            "how_to_follow": "call get_task with this task_id, or tasks/get",
        }

    async def look(self, client: Client, task: str) -> Json:
        """All that somebody needs to decide what to do."""
        story = await self.desk.story(client, task)
        view = await self.desk.view(client, story.state)
        shown = await self.ask(client, "GET", f"/v1/tasks/{quote(task)}")
        pauses = await self.ask(client, "GET", f"/v1/inbox?{urlencode({'task': story.state.id})}")
        asked = [
            {key: one[key] for key in ("id", "step", "title", "why", "reason", "guidance")}
            | {"answers": [answer["answer"] for answer in one["answers"]]}
            for one in pauses["items"]
        ]
        handoff = handoff_text(story.state)
        return {
            **self.told(story.state, view),
            "task_status": shown["status"],
            "outcome": shown["outcome"],
            "outputs": shown["outputs"],
            "progress": shown["progress"],
            "estimate": shown["estimate"],
            "pauses": asked,
            "handoff": handoff,
        }


async def _list_plans(tools: EngineTools, client: Client, given: Json) -> Json:
    """What `run_plan` takes by name: plans of the operator's folders, durable functions, and published workflows."""
    known: dict[str, Json] = {
        one["name"]: {"description": one["description"] or one["title"], "inputs": [i["name"] for i in one["inputs"]]}
        for one in (await tools.ask(client, "GET", "/v1/plans"))["items"]
    }
    for name, published in tools.desk.book.workflows.items():
        known[name] = {"description": published.plan.description, "inputs": [i.name for i in published.plan.inputs]}
    query = str(given.get("query") or "")
    plans: list[Any] = [
        {**one, "name": name, "description": one["description"] or name} for name, one in known.items() if query in name
    ]
    return call_result({"plans": plans})


async def _check_plan(tools: EngineTools, client: Client, given: Json) -> Json:
    return call_result(await tools.ask(client, "POST", "/v1/plans/check", {"plan": given["plan"]}))


async def _run_plan(tools: EngineTools, client: Client, given: Json) -> Json:
    task = await tools.start_plan(client, given)
    await tools.wait(client, task, given.get("wait_s"))
    return await tools.stands(client, task)


async def _get_task(tools: EngineTools, client: Client, given: Json) -> Json:
    if given.get("wait_s"):
        await tools.wait(client, given["task"], given["wait_s"])
    return call_result(await tools.look(client, given["task"]))


async def _list_tasks(tools: EngineTools, client: Client, given: Json) -> Json:
    found = await tools.ask(client, "GET", f"/v1/tasks?{urlencode(given)}")
    items: list[Any] = [{key: one[key] for key in ("id", "title", "status", "created_at")} for one in found["items"]]
    return call_result({"tasks": items, "next_cursor": found["next_cursor"]})


async def _answer(tools: EngineTools, client: Client, given: Json) -> Json:
    pause = given.pop("pause", None)
    task = given.pop("task", None)
    if pause is None:
        found = await tools.ask(client, "GET", f"/v1/inbox?{urlencode({'task': task})}") if task else {"items": []}
        if not found["items"]:
            raise Refused(INVALID_PARAMS, "There is no open question")
        first = found["items"][0]
        pause = first["id"]
        if first.get("call") and "digest" not in given:
            given["digest"] = first["call"]["input"].get("digest")
    said = await tools.ask(client, "POST", f"/v1/inbox/{quote(pause)}/answer", given)
    return call_result({"pause": said["id"], "status": said["status"]})


async def _retry(tools: EngineTools, client: Client, given: Json) -> Json:
    body: Json = {"from_step": given["step"]} if "step" in given else {}
    if "arguments" in given and "step" in given:
        body["arguments"] = {given["step"]: given["arguments"]}
    await tools.ask(client, "POST", f"/v1/tasks/{quote(given['task'])}/retry", body)
    return await tools.stands(client, given["task"])


async def _fork(tools: EngineTools, client: Client, given: Json) -> Json:
    body = {"from_step": given["step"], "inputs": given.get("inputs") or {}}
    made = await tools.ask(client, "POST", f"/v1/tasks/{quote(given['task'])}/fork", body)
    return await tools.stands(client, made["id"])


def _command(word: str) -> Handler:
    async def command(tools: EngineTools, client: Client, given: Json) -> Json:
        task = given.pop("task")
        await tools.ask(client, "POST", f"/v1/tasks/{quote(task)}/{word}", given)
        return call_result(await tools.look(client, task))

    return command


async def _patch(tools: EngineTools, client: Client, given: Json) -> Json:
    task = given.pop("task")
    return call_result(await tools.ask(client, "PATCH", f"/v1/tasks/{quote(task)}/plan", given))


async def _events(tools: EngineTools, client: Client, given: Json) -> Json:
    query = {"after": given.get("after", 0), "limit": min(int(given.get("limit", 100)), 500)}
    return call_result(await tools.ask(client, "GET", f"/v1/tasks/{quote(given['task'])}/events?{urlencode(query)}"))


async def _continue(tools: EngineTools, client: Client, given: Json) -> Json:
    call = ContinuedCall(task=given["task"], tool=given["tool"], arguments=given.get("arguments") or {})
    return await go_on(tools.desk, client, call)


_HANDLERS: Final[dict[str, Handler]] = {
    "list_plans": _list_plans,
    "check_plan": _check_plan,
    "run_plan": _run_plan,
    "get_task": _get_task,
    "list_tasks": _list_tasks,
    "continue_task": _continue,
    "answer_pause": _answer,
    "retry_step": _retry,
    "fork_task": _fork,
    "pause_task": _command("pause"),
    "resume_task": _command("resume"),
    "cancel_task": _command("cancel"),
    "complete_task": _command("complete"),
    "patch_plan": _patch,
    "get_events": _events,
}
