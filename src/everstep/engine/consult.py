"""Whom a call needs leave from. Only calls that somebody may ask about come here."""

from collections.abc import Collection
from dataclasses import replace

from everstep.domain.approval import Asking
from everstep.domain.consent import Asks, asking, steered_by, steers
from everstep.domain.graph import Wired, arguments_in_force
from everstep.domain.ids import PauseId
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.scope import StateScope
from everstep.domain.task import StepState
from everstep.engine import fallback
from everstep.engine.approve import gate
from everstep.engine.catalog import Checked, Entry
from everstep.engine.lap import Lap


def watched(checked: Checked, wired: Wired, step: StepState, scope: StateScope, *, others: Collection[str]) -> Checked:
    """The same call; if it has an effect, with the argument in which data from outside would decide what it reaches.

    `others`: arguments that no person has set.
    """
    kinds = checked.entry.steerable
    if kinds is None or checked.effect is Effect.PURE:
        return checked
    given = step.arguments or {}
    steered = next((name for name in given if name in others and steers(kinds, f"/{name}")), None)
    if steered is None:
        steered = steered_by(arguments_in_force(wired, step), kinds, fallback.scope_of(step, scope), given)
    return replace(checked, steered=steered)


@record
class Leave:
    """The call may be made, by this approval if it needs one."""

    approval: PauseId | None


def consult(lap: Lap, wired: Wired, step: StepState, checked: Checked) -> Leave | None:
    """Leave for this call; None: not yet, or not at all."""
    plan_asks = wired.spec.approve is not None and not fallback.in_force(step)
    asks, because = _scruple(checked)
    who = asking(asks, checked.steered, plan_asks=plan_asks, trusted=lap.state.stands_trusted)
    if who is None:
        return Leave(approval=None)
    grant = gate(lap, wired, step, checked, asking=who if because is None else replace(who, because=because))
    return None if grant is None else Leave(approval=grant)


def _scruple(checked: Checked) -> tuple[Asks, str | None]:
    """Whether the tool asks about this very call, and what it has to say of it; the operator's word stands above."""
    entry = checked.entry
    if not entry.scrupulous or not isinstance(checked.input.value, dict):
        return entry.asks, None
    because = entry.adapter.scruple(entry.call(checked.input.value))
    return ("" if because == "" and entry.asks != "operator" else entry.asks), because or None


def asked_for_all(lap: Lap, wired: Wired, entry: Entry, step: StepState) -> Asking | None:
    """Who wants the calls of all items asked about."""
    steered = None
    assert step.items is not None
    if entry.steerable is not None and lap.kit.catalog.effect_of(wired.spec) is not Effect.PURE:
        steered = steered_by(wired.arguments, entry.steerable, lap.scope_with({"item": None, "index": 0}, step.items))
    return asking(entry.asks, steered, plan_asks=wired.spec.approve is not None, trusted=lap.state.stands_trusted)
