"""A client's call for a task that was handed over: an ordinary tool call with the task's id beside it."""

from everstep.domain.errors import EverstepError
from everstep.domain.one_call import one_call
from everstep.domain.record import record
from everstep.doors.mcp.bridge import call_result, failed_result, meta_of
from everstep.doors.mcp.channel import Ask, Json, asked
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.engine_tools import ENGINE_TOOLS
from everstep.doors.mcp.refusals import INVALID_PARAMS, OURS, Refused, broken, error_json, no_such_task
from everstep.wire.plan import to_json


@record
class ContinuedCall:
    """The call, and the task it is for."""

    task: str
    tool: str
    arguments: Json
    key: str | None = None


async def go_on(desk: DoorDesk, client: Client, call: ContinuedCall) -> Json:
    """Make it; refused before its tool runs if it could not be recorded."""
    tool = await offered_tool(desk, client, call.tool)
    if call.task.startswith("mt_"):
        await desk.held(client, call.task)
    headers = None if call.key is None else {"idempotency-key": call.key}
    body = {"tool": tool["name"], "arguments": call.arguments}
    request = Ask(method="POST", path=f"/v1/tasks/{call.task}/continue", body=body, headers=headers)
    try:
        made = await asked(desk.channel, client.caller, request)
    except EverstepError as error:
        if error.code == "not_found":
            raise no_such_task() from error
        return refusal_of(error)
    story = await desk.story(client, call.task)
    meta = meta_of(story.state, await desk.view(client, story.state), client.era)
    failed = made["error"]
    result = call_result(made["output"]) if failed is None else failed_result(failed)
    return {**result, "_meta": meta}


def alone(tool: str, arguments: Json) -> Json:
    """The plan of a call that belongs to no task yet."""
    return to_json(one_call(tool, arguments))


async def offered_tool(desk: DoorDesk, client: Client, name: str) -> Json:
    """A tool by the name that clients use; raises Refused."""
    tool = desk.book.tools(await desk.known_tools(client.caller), ENGINE_TOOLS).get(name)
    if tool is None:
        raise Refused(INVALID_PARAMS, f"Unknown tool: {name}")
    return tool


def refusal_of(error: EverstepError) -> Json:
    """What a model can act on is a result; the rest is an error of the protocol."""
    if error.code in OURS:
        raise broken(error)
    return failed_result(error_json(error))
