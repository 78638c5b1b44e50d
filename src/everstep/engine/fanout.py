"""`for_each`: one step, many items. Items are sub-steps with their own attempts, keys and outcomes."""

from everstep.domain import events as e
from everstep.domain.bindings import NeedsPayload, Resolved, Unresolved, render, resolve, test
from everstep.domain.graph import Wired
from everstep.domain.ids import StepPath, item_path, split_path
from everstep.domain.moves import step_of
from everstep.domain.pauses import UnresolvableParams
from everstep.domain.plan import OnError
from everstep.domain.scope import StateScope
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState
from everstep.domain.values import JsonValue, NotJson
from everstep.engine import hinder, propose
from everstep.engine.lap import Lap


def open_items(lap: Lap, wired: Wired, step: StepState) -> None:
    """Write down what the step goes over."""
    assert wired.for_each is not None
    if step.items is not None:  # some of them stand since an earlier generation
        title = render(wired.title, lap.scope) or step.path
        return lap.say(e.StepStarted(title=title, items=step.items), step.path)
    match resolve(wired.for_each, lap.scope):
        case Unresolved() as gap:
            return hinder.unresolved(lap, step, gap, "for_each")
        case NeedsPayload() as needs:
            return lap.needs.update(needs.digests)
        case Resolved(value=list() as items, untrusted=untrusted) if len(items) <= lap.kit.limits.items_max:
            sealed = lap.kit.codec.seal(items, untrusted=untrusted)
            title = render(wired.title, lap.scope) or step.path
            return lap.say(e.StepStarted(title=title, items=sealed), step.path)
        case Resolved(value=value):
            reason = UnresolvableParams(
                blocked_step=step.path, missing_param="for_each", suggested_tool=wired.spec.tool
            )
            return hinder.hold(lap, step, reason, _why_not(value, lap.kit.limits.items_max))


def _why_not(value: JsonValue, most: int) -> str:
    if isinstance(value, list):
        return f"for_each has {len(value)} items, the limit is {most}"
    return f"for_each needs a list, not {type(value).__name__}"


def start_items(lap: Lap, wired: Wired, step: StepState) -> None:
    """Go on with items under way, then begin new ones, in order, as far as the step's `parallel` allows."""
    items = _items(lap, step)
    if items is None:
        return
    for index in sorted(index for index in step.items_open if isinstance(index, int)):
        _go_on(lap, wired, lap.state.steps[item_path(step.path, index)], items)
    fatal = lap.state.on_error(wired.spec) is OnError.FAIL
    while (
        step.items_next < len(items)
        and len(step.items_open) < (wired.spec.parallel or 1)
        and not (fatal and step.items_failed)
    ):
        _begin_item(lap, wired, step_of(lap.state, item_path(step.path, step.items_next)), items)
    if not step.items_open:
        _end(lap, wired, step, items)


def _items(lap: Lap, step: StepState) -> list[JsonValue] | None:
    assert step.items is not None
    if not step.items.present:
        lap.needs.add(step.items.digest)
        return None
    assert isinstance(step.items.value, list)
    return step.items.value


def _go_on(lap: Lap, wired: Wired, item: StepState, items: list[JsonValue]) -> None:
    if item.path in lap.proposed:
        return
    if item.status is StepStatus.PENDING:
        _begin_item(lap, wired, item, items)
    elif propose.callable_now(lap, item):
        propose.propose_call(lap, wired, item, _scope(lap, item, items))


def _begin_item(lap: Lap, wired: Wired, item: StepState, items: list[JsonValue]) -> None:
    scope = _scope(lap, item, items)
    if wired.when_uses_item:
        match test(wired.when, scope):
            case Unresolved() as gap:
                return hinder.unresolved(lap, item, gap, "when")
            case NeedsPayload() as needs:
                return lap.needs.update(needs.digests)
            case False:
                return lap.say(e.StepSkipped(reason=e.SkipReason.CONDITION), item.path)
            case True:
                pass
    return propose.propose_call(lap, wired, item, scope)


def _scope(lap: Lap, item: StepState, items: list[JsonValue]) -> StateScope:
    name, index = split_path(item.path)
    sealed = lap.state.steps[StepPath(name)].items
    assert isinstance(index, int) and sealed is not None
    return lap.scope_with({"item": items[index], "index": index}, sealed)


def _end(lap: Lap, wired: Wired, step: StepState, items: list[JsonValue]) -> None:
    """All items ended: a list of the same length and order, or the step's failure."""
    duration_s = (lap.at - (step.started_at or lap.at)) / 1000
    fatal = lap.state.on_error(wired.spec) is OnError.FAIL
    if step.items_failed and (fatal or step.items_failed == len(items)):
        return hinder.fail_of_items(lap, step, len(items))
    ended = [lap.state.steps[item_path(step.path, index)].output for index in range(len(items))]
    absent = {sealed.digest for sealed in ended if sealed is not None and not sealed.present}
    if absent:
        return lap.needs.update(absent)
    try:
        output = lap.kit.codec.seal(
            [None if sealed is None else sealed.value for sealed in ended],
            untrusted=any(sealed is not None and sealed.untrusted for sealed in ended),
        )
    except NotJson as error:
        return hinder.give_up(lap, step, hinder.too_large(str(error)))
    body = e.StepCompleted(
        attempt=None,
        output=output,
        summary=f"{len(items) - step.items_failed} of {len(items)}",
        via="tool",
        tool_used=wired.spec.tool,
        duration_s=duration_s,
    )
    return lap.say(body, step.path)
