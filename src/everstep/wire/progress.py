"""`_workflow.progress` for whoever reads it: what is not known is passed over, so that later versions can say more."""

from everstep.domain.errors import Validation
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue


@record
class WorkflowStepProgress:
    """One step of a workflow; `tool` is None for one that only reads."""

    name: str
    status: str
    tool: str | None = None


@record
class WorkflowProgress:
    """What a workflow is for, and where its steps stand."""

    goal: str
    steps: tuple[WorkflowStepProgress, ...]
    schema_version: int = 1


def read_progress(value: JsonValue) -> WorkflowProgress:
    """From the variable `_workflow.progress`; raises Validation for what is none."""
    said = _object(value)
    steps, version = said.get("steps"), said.get("schemaVersion")
    if not isinstance(steps, list) or not isinstance(version, int):
        raise _no_progress()
    return WorkflowProgress(
        goal=_text(said, "goal"), steps=tuple(_step(_object(one)) for one in steps), schema_version=version
    )


def _step(said: JsonObject) -> WorkflowStepProgress:
    tool = _text(said, "tool") if "tool" in said else None
    return WorkflowStepProgress(name=_text(said, "name"), status=_text(said, "status"), tool=tool)


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
