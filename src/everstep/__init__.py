"""Durable tasks for AI agents: plans of tool calls that survive crashes, ask before they act, and hand over.

    from everstep import Engine, Plan, run, tool

Names are resolved when they are first used, so that `import everstep` costs nothing; a test pins them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everstep.authoring.durable import durable
    from everstep.authoring.plan import Plan
    from everstep.authoring.shape import Arg
    from everstep.authoring.tool import tool
    from everstep.blocking import run
    from everstep.domain.errors import EverstepError, PlanError
    from everstep.domain.estimate import Estimate
    from everstep.domain.handles import Artifact, Secret
    from everstep.facade.engine import Engine
    from everstep.facade.task import Task
    from everstep.facade.views import Event, Pause, Result
    from everstep.ports.adapter import ToolAdapter
    from everstep.ports.tool import (
        Ctx,
        Denied,
        Impossible,
        Misconfigured,
        NeedsInput,
        ResourceExceeded,
        ToolError,
        Transient,
        Uncertain,
    )

__all__ = [
    "Arg",
    "Artifact",
    "Ctx",
    "Denied",
    "Engine",
    "Estimate",
    "Event",
    "EverstepError",
    "Impossible",
    "Misconfigured",
    "NeedsInput",
    "Pause",
    "Plan",
    "PlanError",
    "ResourceExceeded",
    "Result",
    "Secret",
    "Task",
    "ToolAdapter",
    "ToolError",
    "Transient",
    "Uncertain",
    "durable",
    "run",
    "tool",
]

_TOOL: Final = "everstep.ports.tool"
_HOMES: Final[dict[str, str]] = {
    "Engine": "everstep.facade.engine",
    "Task": "everstep.facade.task",
    **dict.fromkeys(("Event", "Pause", "Result"), "everstep.facade.views"),
    "Plan": "everstep.authoring.plan",
    "Estimate": "everstep.domain.estimate",
    "Arg": "everstep.authoring.shape",
    "durable": "everstep.authoring.durable",
    "tool": "everstep.authoring.tool",
    "run": "everstep.blocking",
    **dict.fromkeys(("Artifact", "Secret"), "everstep.domain.handles"),
    **dict.fromkeys(("EverstepError", "PlanError"), "everstep.domain.errors"),
    "ToolAdapter": "everstep.ports.adapter",
    **dict.fromkeys(("Ctx", "Denied", "Impossible", "Misconfigured", "NeedsInput", "ResourceExceeded"), _TOOL),
    **dict.fromkeys(("ToolError", "Transient", "Uncertain"), _TOOL),
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- the type checker reads the imports above
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'everstep' has no attribute '{name}'")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
