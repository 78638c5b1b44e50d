"""What a task can be made of: a plan, its file, or a durable function."""

from pathlib import Path
from typing import TypeAlias

from everstep.authoring.durable import DurableFunction
from everstep.authoring.plan import Plan
from everstep.facade.desk import Desk

Runnable: TypeAlias = Plan | DurableFunction


def as_plan(plan: Runnable | str | Path, desk: Desk | None = None) -> Runnable:
    """A plan as given, or read from its file; a durable function is known to the engine from then on."""
    if isinstance(plan, DurableFunction) and desk is not None:
        desk.learn(plan.script)
    return Plan.load(plan) if isinstance(plan, str | Path) else plan
