"""Every place of a plan where bindings may stand, and what they may use there. One table for all checks.

Paths are those of the normal form; whoever has the source text finds the short forms again.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from everstep.domain.expression import FUNCTIONS, WORDS
from everstep.domain.plan import ApproveSpec, PlanSpec, StepSpec
from everstep.domain.pointer import child
from everstep.domain.record import record
from everstep.domain.values import JsonValue

ROOTS: Final = frozenset({"inputs", "steps", "task", "secrets", "item", "index", "error"})
RESERVED: Final = ROOTS | FUNCTIONS.keys() | WORDS
"""What no step may be called."""

_ALWAYS: Final = frozenset({"inputs", "task", "steps", "secrets"})
_PER_ITEM: Final = frozenset({"item", "index"})
_ERROR: Final = frozenset({"error"})


class Outputs(Enum):
    """Which steps' outputs a place may use."""

    NONE = auto()
    ANY = auto()
    """Whenever it is looked at: unknown ones print as such, or are null."""
    EARLIER = auto()
    """It waits for them, so they must be able to end first."""


class Wants(Enum):
    """What must come out."""

    ANYTHING = auto()
    CONDITION = auto()
    LIST = auto()


@record
class Slot:
    """One place."""

    path: str
    value: JsonValue
    step: int | None
    """Index of its step, `finally` counted on."""
    names: frozenset[str]
    outputs: Outputs
    wants: Wants = Wants.ANYTHING
    own_output: bool = False


def slots(plan: PlanSpec) -> Iterator[Slot]:
    """All of them, in the order of the plan."""
    yield Slot(path="/title", value=plan.title, step=None, names=frozenset({"inputs", "task"}), outputs=Outputs.NONE)
    yield Slot(path="/guidance", value=plan.guidance, step=None, names=_ALWAYS, outputs=Outputs.ANY)
    yield Slot(
        path="/done_when",
        value=plan.done_when,
        step=None,
        names=_ALWAYS,
        outputs=Outputs.ANY,
        wants=Wants.CONDITION,
    )
    for at, step in enumerate(plan.steps):
        yield from _step_slots(step, at, f"/steps/{at}", _ALWAYS)
    for at, step in enumerate(plan.finally_steps):
        yield from _step_slots(step, len(plan.steps) + at, f"/finally/{at}", _ALWAYS | _ERROR)
    for name, value in plan.outputs.items():
        yield Slot(path=child("/outputs", name), value=value, step=None, names=_ALWAYS, outputs=Outputs.ANY)


def _step_slots(step: StepSpec, at: int, path: str, names: frozenset[str]) -> Iterator[Slot]:
    inner = names | _PER_ITEM if step.for_each is not None else names

    def slot(key: str, value: JsonValue, names: frozenset[str] = inner, outputs: Outputs = Outputs.EARLIER) -> Slot:
        return Slot(path=path + key, value=value, step=at, names=names, outputs=outputs)

    yield slot("/with", step.arguments)
    yield slot("/title", step.title, outputs=Outputs.ANY)
    yield Slot(
        path=f"{path}/when",
        value=step.when,
        step=at,
        names=inner,
        outputs=Outputs.EARLIER,
        wants=Wants.CONDITION,
    )
    yield Slot(
        path=f"{path}/for_each",
        value=step.for_each,
        step=at,
        names=names,
        outputs=Outputs.EARLIER,
        wants=Wants.LIST if step.for_each is not None else Wants.ANYTHING,
    )
    for number, other in enumerate(step.fallback):
        key = "value" if other.tool is None else "with"
        value: JsonValue = other.value if other.tool is None else other.arguments
        yield slot(f"/fallback/{number}/{key}", value, names=inner | _ERROR)
    if step.approve is not None:
        for key, value in _asked(step.approve, "/approve"):
            yield slot(key, value, names=names)
    yield slot("/guidance", step.guidance, outputs=Outputs.ANY)
    yield from _undo_slots(step, at, path, inner)
    for number, resource in enumerate(step.resources):
        for key, value in (("uri", resource.uri), ("vars", resource.vars)):
            yield Slot(
                path=f"{path}/resources/{number}/{key}",
                value=value,
                step=at,
                names=names,
                outputs=Outputs.EARLIER,
                own_output=step.tool is not None,
            )


def _undo_slots(step: StepSpec, at: int, path: str, names: frozenset[str]) -> Iterator[Slot]:
    """Resolved from the journal when someone asks for it, so nothing waits."""
    if step.undo is None:
        return
    parts: list[tuple[str, JsonValue]] = [("/undo/with", step.undo.arguments)]
    if step.undo.approve is not None:
        parts += _asked(step.undo.approve, "/undo/approve")
    for key, value in parts:
        yield Slot(path=path + key, value=value, step=at, names=names, outputs=Outputs.ANY, own_output=True)


def _asked(approve: ApproveSpec, path: str) -> list[tuple[str, JsonValue]]:
    return [(f"{path}/title", approve.title), (f"{path}/show", approve.show)]
