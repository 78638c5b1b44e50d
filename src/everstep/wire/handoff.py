"""A task for whoever takes it over: its variables, and the packet that says all at once. The same at every door."""

from collections.abc import Iterator
from typing import Final

from everstep.domain.continued import is_shown
from everstep.domain.errors import Validation
from everstep.domain.ids import CALL, StepPath, idempotency_key, item_path
from everstep.domain.pauses import Pause
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.remaining import error_of, open_question, remaining, shown_status
from everstep.domain.states import StepStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, JsonValue, Sealed
from everstep.wire.pause import write_reason
from everstep.wire.step import plain_object

PROGRESS: Final = "_workflow.progress"
RESULT: Final = "_workflow.result."
PAUSE_REASON: Final = "_workflow.pause_reason"
EXTRA: Final = "_workflow.extra."
SCHEMA: Final = "everstep.handoff/1"


def door_name(tool: str) -> str:
    """A tool as clients outside call it."""
    return tool.replace(".", "_")


def goal_of(state: TaskState) -> str:
    """What the task is for."""
    plan = state.plan
    return f"{plan.name}: {plan.description or plan.title or plan.name}"


def reason_json(pause: Pause) -> JsonObject:
    """Why it stands still, with the names that clients know."""
    reason = plain_object(write_reason(pause.reason))
    tool = reason.get("suggestedTool")
    return {**reason, "suggestedTool": door_name(tool)} if isinstance(tool, str) else reason


def progress_json(state: TaskState) -> JsonObject:
    """Every step of the plan, and where it stands."""
    steps: list[JsonValue] = []
    for spec in state.plan.steps:
        tool: JsonObject = {} if spec.tool is None else {"tool": door_name(spec.tool)}
        steps.append({"name": spec.id, **tool, "status": shown_status(state, state.steps[StepPath(spec.id)])})
    return {"goal": goal_of(state), "schemaVersion": 1, "steps": steps}


def variables_json(state: TaskState, name: str, *, bytes_max: int = 1024 * 1024) -> JsonObject:
    """All variables; a value that is over the limits is replaced, alone, by where it is kept."""
    found: JsonObject = {PROGRESS: progress_json(state)}
    question = open_question(state)
    if question is not None:
        found[PAUSE_REASON] = reason_json(question)
    room = bytes_max
    for key, step, value in _results(state):
        size = value.size_bytes if isinstance(value, Sealed) else 0
        if isinstance(value, Sealed):
            fits = value.present and size <= room and is_shown(value.value)
            found[key] = value.value if fits else _elsewhere(value, f"task://{name}/steps/{step}/output")
            room -= size if fits else 0
        else:
            found[key] = value
    return {**found, **(state.handover.variables if state.handover is not None else {})}


def _results(state: TaskState) -> Iterator[tuple[str, str, Sealed | JsonObject]]:
    for spec in state.plan.steps:
        step = state.steps[StepPath(spec.id)]
        if step.status is StepStatus.COMPLETED and step.output is not None:
            yield RESULT + spec.id, spec.id, step.output
        elif shown_status(state, step) == "failed" and (error := error_of(state, step)) is not None:
            yield RESULT + spec.id, spec.id, {"error": error}
    for tool, said in (state.handover.extra if state.handover is not None else {}).items():
        failed: JsonObject = {"error": "" if said.failure is None else said.failure.message}
        yield EXTRA + door_name(tool), "", failed if said.output is None else said.output


def _elsewhere(sealed: Sealed, uri: str) -> JsonObject:
    return {"truncated": True, "bytes": sealed.size_bytes, "digest": sealed.digest, "uri": uri}


def packet_json(state: TaskState, name: str) -> JsonObject:
    """Everything that another client needs to go on: what is done, which effects are made, what remains."""
    question = open_question(state)
    completed: list[JsonValue] = []
    effects: list[JsonValue] = []
    for spec in state.plan.steps:
        step = state.steps[StepPath(spec.id)]
        if step.status is not StepStatus.COMPLETED or step.output is None:
            continue
        tool = door_name(step.tool_used or spec.tool or "resource.read")
        uri = f"task://{name}/steps/{spec.id}/output"
        completed.append({"step": spec.id, "tool": tool, "digest": step.output.digest, "uri": uri})
        call = state.steps.get(item_path(spec.id, CALL), step)
        if call.last_effect not in (None, Effect.PURE):
            key = idempotency_key(state.id, call.path, call.tries)
            effects.append({"step": spec.id, "tool": tool, "effect": str(call.last_effect), "key": key})
    left: list[JsonValue] = [
        {
            "step": one.step,
            "tool": door_name(one.tool or "resource.read"),
            "arguments": one.arguments,
            "guidance": one.guidance,
        }
        for one in remaining(state)
    ]
    levels = state.budget.levels(state.updated_at)
    return {
        "schema": SCHEMA,
        "goal": goal_of(state),
        "completed": completed,
        "effects_made": effects,
        "pause_reason": None if question is None else reason_json(question),
        "answers": [] if question is None else [*question.answers],
        "remaining": left,
        "limits_left": {one.limit: max(0, one.max - one.used) for one in levels},
        "estimate": None,
        "seq": state.seq,
    }


@record
class StepProgress:
    """One step of a plan; `tool` is None for one that only reads."""

    name: str
    status: str
    tool: str | None = None


@record
class PlanProgress:
    """What a task is for, and where its steps stand."""

    goal: str
    steps: tuple[StepProgress, ...]
    schema_version: int = 1


def read_progress(value: JsonValue) -> PlanProgress:
    """From the variable `_workflow.progress`; what is not known is passed over, so that later versions can say more.

    Raises Validation for what is none.
    """
    said = _object(value)
    steps, version = said.get("steps"), said.get("schemaVersion")
    if not isinstance(steps, list) or not isinstance(version, int):
        raise _no_progress()
    return PlanProgress(
        goal=_text(said, "goal"), steps=tuple(_step_progress(_object(one)) for one in steps), schema_version=version
    )


def _step_progress(said: JsonObject) -> StepProgress:
    tool = _text(said, "tool") if "tool" in said else None
    return StepProgress(name=_text(said, "name"), status=_text(said, "status"), tool=tool)


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise _no_progress()
    return value


def _text(said: JsonObject, name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str):
        raise _no_progress()
    return value


def _no_progress() -> Validation:
    return Validation("this is no _workflow.progress", what_to_do="read the variable of this name of a task")
