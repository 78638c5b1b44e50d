"""What this door offers: plans published as workflows, and tools under the names that clients use."""

from collections.abc import Iterable, Mapping
from typing import Final

from everstep.domain.errors import SettingsError
from everstep.domain.lookup import RESOURCE_TOOL
from everstep.domain.plan import PlanSpec
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.doors.mcp.bridge import NAME
from everstep.doors.mcp.channel import Json
from everstep.doors.mcp.listening import Bells
from everstep.wire.handoff import door_name
from everstep.wire.plan import digest, to_json

READ_ONLY: Final = frozenset({"pure"})


@record
class Published:
    """A plan that clients may ask for."""

    plan: PlanSpec
    task_support: bool = False
    continue_by: str = "client"
    tool: bool = False

    @property
    def source(self) -> JsonObject:
        """The plan as it is sent to the engine."""
        return to_json(self.plan)

    @property
    def digest(self) -> str:
        """What the plan is known by."""
        return digest(self.plan)

    def prompt(self) -> JsonObject:
        """How it is listed; the same with and without task support."""
        plan = self.plan
        found: JsonObject = {"name": plan.name, "description": plan.description or plan.title or plan.name}
        arguments = [{"name": one.name, **_described(one.schema), "required": one.required} for one in plan.inputs]
        return {**found, "arguments": arguments} if arguments else found  # type: ignore[dict-item]


def _described(schema: JsonObject) -> JsonObject:
    said = schema.get("description")
    return {"description": said} if isinstance(said, str) else {}


class Book:
    """Everything on offer. Tools that are registered later are seen: the list is asked for when it is needed."""

    def __init__(
        self, workflows: Iterable[Published], expose: Iterable[str] = (), *, task_only: Iterable[str] = ()
    ) -> None:
        self.workflows: Mapping[str, Published] = {one.plan.name: one for one in workflows}
        self._expose = tuple(expose)
        self.task_only = frozenset(task_only)
        """Tools, by the names that clients use, whose calls are always tasks."""
        self.bells = Bells()

    def publish(self, one: Published) -> None:
        """One workflow more, or another under its name: whoever is connected is told."""
        self.workflows = {**self.workflows, one.plan.name: one}
        self.bells.ring("prompts", "tools", "resources")

    def withdraw(self, name: str) -> None:
        """One less."""
        self.workflows = {known: one for known, one in self.workflows.items() if known != name}
        self.bells.ring("prompts", "tools", "resources")

    def tools(self, known: Iterable[Json], own: Iterable[str] = ()) -> dict[str, Json]:
        """Tools of published plans and those that are exposed, by the name that clients use; raises on a collision."""
        by_name = {tool["name"]: tool for tool in known}
        wanted = dict.fromkeys(self._expose)
        for one in self.workflows.values():
            wanted |= dict.fromkeys(step.tool for step in one.plan.steps if step.tool is not None)
            wanted |= dict.fromkeys(RESOURCE_TOOL for step in one.plan.steps if step.resources)
        offered: dict[str, Json] = {}
        taken = {*own, *(name for name, one in self.workflows.items() if one.tool)}
        for name in wanted:
            outside = door_name(name)
            if outside in offered or outside in taken or not NAME.fullmatch(outside):
                raise SettingsError(
                    f"clients would know two things as '{outside}'", what_to_do=f"rename '{name}', or do not publish it"
                )
            if name in by_name:
                offered[outside] = by_name[name]
        return offered


def tool_json(name: str, tool: Json, support: str = "optional") -> Json:
    """A tool as it is listed."""
    pure = tool.get("effect") in READ_ONLY
    repeatable = pure or tool.get("effect") == "idempotent"
    found: Json = {
        "name": name,
        "description": tool.get("description") or tool.get("title") or name,
        "inputSchema": tool.get("input_schema") or {"type": "object"},
        "annotations": {"readOnlyHint": pure, "idempotentHint": repeatable, "destructiveHint": not pure},
        "execution": {"taskSupport": support},
    }
    output = tool.get("output_schema")
    if isinstance(output, dict) and output.get("type") == "object":
        found["outputSchema"] = output
    return found


def first_lines(known: Iterable[Json]) -> dict[str, str]:
    """What each tool does, in a line."""
    return {tool["name"]: str(tool.get("description") or "").partition("\n")[0] for tool in known}
