"""What a plan lacks before it can become a task (2026-07-28): asked for by a form, and put in when it comes."""

from typing import Final

from everstep.doors.mcp.channel import Json
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.forms import form

INPUTS: Final = "inputs"
"""What the question is called."""


def ask_first(desk: DoorDesk, client: Client, name: str, *, arguments: Json, responses: Json) -> Json | None:
    """The question for missing inputs of a plan that is called as a tool; what was answered goes into the arguments."""
    published = desk.book.workflows.get(name)
    if published is None or not published.tool or client.legacy or not client.elicits:
        return None
    given = responses.get(INPUTS)
    if isinstance(given, dict) and given.get("action") == "accept":
        arguments |= {key: value for key, value in (given.get("content") or {}).items() if key not in arguments}
    lacking: Json = {
        one.name: one.schema for one in published.plan.inputs if one.required and one.name not in arguments
    }
    if not lacking or given is not None:
        return None
    return {INPUTS: form(f"{name} needs {', '.join(lacking)}", lacking)}
