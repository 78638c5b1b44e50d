"""Our tools for somebody else's model."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from everstep.authoring.tool import FunctionTool
from everstep.domain.values import JsonObject
from everstep.ports.tool import ToolSpec
from everstep.wire.functions import function_schema
from everstep.wire.handoff import door_name


def to_openai(tools: Iterable[FunctionTool[..., Any] | ToolSpec]) -> list[JsonObject]:
    """One function schema per tool, under the name it has at every door; ValueError if two would share one."""
    specs = [one.spec if isinstance(one, FunctionTool) else one for one in tools]
    for name, many in Counter(door_name(spec.name) for spec in specs).items():
        if many > 1:
            raise ValueError(f"{many} tools would be called '{name}'")
    return [function_schema(spec.name, spec.description, spec.input_schema) for spec in specs]
