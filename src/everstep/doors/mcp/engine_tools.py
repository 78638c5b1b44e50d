"""The engine's own tools, for clients that know nothing of Tasks: what each takes, as a table."""

from typing import Final

from everstep.domain.record import record
from everstep.doors.mcp.channel import Json

_STRING: Final[Json] = {"type": "string"}
_OBJECT: Final[Json] = {"type": "object"}
_TASK: Final[Json] = {"type": "string", "description": "Id of the task; left out if _meta names it"}


@record
class EngineTool:
    """One of them: what it takes, and what a token must allow."""

    description: str
    properties: Json
    required: tuple[str, ...] = ()
    scope: str = "write"


ENGINE_TOOLS: Final[dict[str, EngineTool]] = {
    "list_plans": EngineTool(
        description="List the plans that can be started by name", properties={"query": _STRING}, scope="read"
    ),
    "check_plan": EngineTool(
        description="Check a plan and name every problem", properties={"plan": {}}, required=("plan",), scope="read"
    ),
    "run_plan": EngineTool(
        description="Start a task: a plan by name, or one that is written out",
        properties={"plan": {}, "inputs": _OBJECT, "key": _STRING, "wait_s": {"type": "number"}},
        required=("plan",),
    ),
    "get_task": EngineTool(
        description="Where a task stands: status, questions with their answers, hand-off",
        properties={"task": _TASK, "wait_s": {"type": "number"}},
        scope="read",
    ),
    "list_tasks": EngineTool(
        description="List your tasks, newest first",
        properties={"status": _STRING, "plan": _STRING, "cursor": _STRING},
        scope="read",
    ),
    "continue_task": EngineTool(
        description="Make the next tool call of a task that was handed over",
        properties={"task": _TASK, "tool": _STRING, "arguments": _OBJECT},
        required=("tool",),
    ),
    "answer_pause": EngineTool(
        description="Answer the question that a task waits for",
        properties={
            "task": _TASK, "pause": _STRING, "answer": _STRING, "note": _STRING, "arguments": _OBJECT, "output": {},
            "value": {}, "digest": _STRING, "max": {"type": "number"},
        },
        required=("answer",),
        scope="answer",
    ),
    "retry_step": EngineTool(
        description="Carry a failed or completed task out again, from a step",
        properties={"task": _TASK, "step": _STRING, "arguments": _OBJECT},
    ),
    "fork_task": EngineTool(
        description="A new task that keeps the results up to a step",
        properties={"task": _TASK, "step": _STRING, "inputs": _OBJECT},
        required=("step",),
    ),
    "pause_task": EngineTool(description="Pause a task", properties={"task": _TASK, "note": _STRING}),
    "resume_task": EngineTool(description="Let a paused task go on", properties={"task": _TASK, "note": _STRING}),
    "cancel_task": EngineTool(description="Cancel a task", properties={"task": _TASK, "note": _STRING}),
    "complete_task": EngineTool(
        description="Say that a task which was handed over is done, and with what",
        properties={"task": _TASK, "result": {}, "note": _STRING},
        required=("result",),
    ),
    "patch_plan": EngineTool(
        description="Change the steps of a task that have not begun",
        properties={"task": _TASK, "base_revision": {"type": "integer"}, "ops": {"type": "array"}, "note": _STRING},
        required=("base_revision", "ops"),
    ),
    "get_events": EngineTool(
        description="The journal of a task",
        properties={"task": _TASK, "after": {"type": "integer"}, "limit": {"type": "integer"}},
        scope="read",
    ),
}  # fmt: skip
"""Names are the client's; every method of the wire has its tool here."""


def scope_of(name: str) -> str:
    """What a token must allow whoever calls a tool of this door."""
    tool = ENGINE_TOOLS.get(name)
    return "write" if tool is None else tool.scope


def listed() -> list[Json]:
    """As they are listed."""
    return [
        {
            "name": name,
            "description": tool.description,
            "inputSchema": {"type": "object", "properties": tool.properties, "required": [*tool.required]},
            "annotations": {"readOnlyHint": tool.scope == "read", "destructiveHint": False, "openWorldHint": False},
            "execution": {"taskSupport": "optional" if name == "run_plan" else "forbidden"},
        }
        for name, tool in ENGINE_TOOLS.items()
    ]


def misfit(name: str, arguments: Json) -> str | None:
    """What is wrong with the names of the arguments."""
    unknown = [key for key in arguments if key not in ENGINE_TOOLS[name].properties]
    missing = [key for key in ENGINE_TOOLS[name].required if key not in arguments]
    if not unknown and not missing:
        return None
    return f"unknown: {', '.join(unknown)}" if unknown else f"missing: {', '.join(missing)}"
