"""One question for all items of a `for_each`: its digest covers the arguments of every item, in order."""

from everstep.domain import approval
from everstep.domain.bindings import NeedsPayload, Resolved, resolve, test
from everstep.domain.graph import Wired
from everstep.domain.ids import item_path
from everstep.domain.pauses import GatedCall
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState
from everstep.domain.values import JsonObject, JsonValue, Sealed
from everstep.engine.approve import ask
from everstep.engine.consult import asked_for_all
from everstep.engine.lap import Lap
from everstep.ports.tool import Call


def allowed_for_all(lap: Lap, wired: Wired, step: StepState) -> bool:
    """Whether the items may go on; if not, the question is open, or opened here for all that are still to be called."""
    entry = lap.kit.catalog.get(wired.spec.tool)
    assert step.items is not None
    asking = asked_for_all(lap, wired, entry, step)
    if asking is None:
        return True
    if step.status is StepStatus.PAUSED:
        return False
    if not step.items.present:
        lap.needs.add(step.items.digest)
        return False
    spec, policy = entry.spec, lap.kit.limits.policy
    wanted = approval.Wanted(tool=spec.name, tool_version=spec.version, policy=policy)
    if step.grant is not None and approval.stands(step.grant, step, wanted, lap.at):
        return True
    items = step.items.value
    assert isinstance(items, list)
    calls = [_arguments(lap, wired, index, step.items) for index in range(len(items))]
    asked: list[JsonValue] = [*calls]
    effects = [entry.effect_of(Call(tool=spec.name, arguments=one), wired.spec) for one in calls if one is not None]
    if lap.needs or not effects:
        return not lap.needs
    call = GatedCall(
        tool=spec.name,
        tool_version=spec.version,
        effect=max(effects, key=lambda effect: effect.care),
        input=lap.kit.codec.seal(asked, untrusted=step.items.untrusted),
        of_items=True,
        policy=policy,
    )
    ask(lap, wired, step, call, asking=asking)
    return False


def _arguments(lap: Lap, wired: Wired, index: int, items: Sealed) -> JsonObject | None:
    """What an item would be called with; None if it is not, or not yet: then it is asked about by itself."""
    begun = lap.state.steps.get(item_path(wired.path, index))
    if begun is not None and begun.ended:
        return None
    assert isinstance(items.value, list)
    scope = lap.scope_with({"item": items.value[index], "index": index}, items)
    if wired.when_uses_item and test(wired.when, scope) is not True:
        return None
    found = resolve(wired.arguments, scope)
    if isinstance(found, NeedsPayload):
        lap.needs.update(found.digests)
    if not isinstance(found, Resolved) or not isinstance(found.value, dict):
        return None
    arguments = {**found.value, **((begun.arguments if begun is not None else None) or {})}
    entry = lap.kit.catalog.get(wired.spec.tool)
    fitted, _ = entry.fitted(arguments) if entry.problems(entry.call(arguments)) else (arguments, ())
    return None if entry.problems(entry.call(fitted)) else fitted
