"""Resolve, validate, seal: from a step that may start to a proposal, or to the reason why there is none.

Nothing here waits. People and stores see real arguments: what is proposed is exactly what will be called.
"""

from everstep.domain.bindings import NeedsPayload, Resolved, Unresolved, resolve
from everstep.domain.detour import lessened, tool_of
from everstep.domain.graph import Wired, arguments_in_force
from everstep.domain.ids import idempotency_key
from everstep.domain.scope import StateScope
from everstep.domain.states import StepStatus
from everstep.domain.task import Proposal, StepState
from everstep.domain.values import JsonObject, Sealed
from everstep.engine import fallback
from everstep.engine.admit import admit, deny, not_well
from everstep.engine.catalog import Checked
from everstep.engine.consult import consult, watched
from everstep.engine.gate import held_back
from everstep.engine.hinder import give_up, misfit, missing, unresolved
from everstep.engine.lap import Lap


def callable_now(lap: Lap, step: StepState) -> bool:
    """Whether a step under way waits for nothing but its next call; one that waits for a breaker may always ask."""
    if step.status is not StepStatus.RUNNING or step.attempt is not None:
        return False
    producer = lap.state.awaiting.get(step.path)
    if producer is not None and not lap.state.steps[producer].ended:
        return False
    if step.wait is not None and step.wait.kind == "rate" and (step.wait.until or 0) > lap.at:
        return False
    return step.retry_at is None or step.retry_at <= lap.at


def propose_call(lap: Lap, wired: Wired, step: StepState, scope: StateScope) -> None:
    """Resolve, validate, seal: a proposal, or the reason why there is none."""
    spec = wired.spec
    if step.given is not None and not fallback.in_force(step):
        return _propose_given(lap, wired, step, step.given, scope=scope)
    if step.asked is not None and not fallback.in_force(step):
        return _propose_given(lap, wired, step, step.asked, scope=scope)
    constant = wired.arguments.constant and step.arguments is None and step.detour is None
    ready_made = lap.kit.constants.get((lap.state.plan_digest, wired.path)) if constant else None
    if ready_made is not None:
        return _propose(lap, wired, step, ready_made, scope=scope)
    match resolve(arguments_in_force(wired, step), fallback.scope_of(step, scope)):
        case Unresolved() as gap:
            return unresolved(lap, step, gap, gap.argument)
        case NeedsPayload() as needs:
            return lap.needs.update(needs.digests)
        case Resolved(value=value, untrusted=untrusted) if tool_of(spec, step.detour) is None:
            return fallback.complete_by_value(lap, step, lap.kit.codec.seal(value, untrusted=untrusted))
        case Resolved(value=arguments, untrusted=untrusted):
            assert isinstance(arguments, dict)
            if step.arguments:
                arguments = {**arguments, **step.arguments}
                untrusted = untrusted or bool(lap.state.others_set(step.path))
            if step.detour is not None:
                arguments = lessened(arguments, step.detour.degraded)
            checked = _checked(lap, wired, step, arguments, untrusted=untrusted)
            if untrusted and checked is not None and checked.entry.steerable is not None:
                checked = watched(checked, wired, step, scope, others=lap.state.others_set(step.path))
            if checked is None:
                return _refuse(lap, wired, step, arguments, scope=scope)
            if constant:
                lap.kit.constants[lap.state.plan_digest, wired.path] = checked
            return _propose(lap, wired, step, checked, scope=scope)


def _propose_given(lap: Lap, wired: Wired, step: StepState, given: Sealed, *, scope: StateScope) -> None:
    """A client's call: its arguments and nothing else; or that of a durable function, and what an answer changed."""
    if not given.present:
        return lap.needs.add(given.digest)
    arguments = given.value
    assert isinstance(arguments, dict)
    if given is step.asked:
        arguments = lessened(
            {**arguments, **(step.arguments or {})}, None if step.detour is None else step.detour.degraded
        )
    checked = _checked(lap, wired, step, arguments, untrusted=given.untrusted)
    if checked is None:
        return _refuse(lap, wired, step, arguments, scope=scope)
    return _propose(lap, wired, step, checked, scope=scope)


def _checked(lap: Lap, wired: Wired, step: StepState, arguments: JsonObject, *, untrusted: bool) -> Checked | None:
    """The call, sealed; None if its arguments may not be sent, or its tool is gone and the plan can do without."""
    entry = lap.kit.catalog.find(tool_of(wired.spec, step.detour) or "")
    if entry is None:
        return None
    coerced: tuple[str, ...] = ()
    call = entry.call(arguments)
    if entry.problems(call):
        arguments, coerced = entry.fitted(arguments)
        call = entry.call(arguments)
        if not coerced or entry.problems(call):
            return None
    allowance = lap.kit.passage.allowance(entry.spec, entry.target(call), entry.further(call))
    return Checked(
        input=lap.kit.codec.seal(arguments, untrusted=untrusted),
        coerced=coerced,
        effect=entry.effect_of(call, wired.spec),
        entry=entry,
        gated=bool(wired.spec.pool or entry.spec.pool or allowance),
        allowance=allowance,
    )


def _refuse(lap: Lap, wired: Wired, step: StepState, arguments: JsonObject, *, scope: StateScope) -> None:
    """Arguments that may not be sent: the step asks for better ones, falls back, or fails."""
    tool = tool_of(wired.spec, step.detour) or ""
    entry = lap.kit.catalog.find(tool)
    failure = missing(tool) if entry is None else misfit(lap, step, entry, arguments)
    if failure is None:
        return None
    if fallback.instead(lap, step, failure):
        return propose_call(lap, wired, step, scope)
    return give_up(lap, step, failure)


def _propose(lap: Lap, wired: Wired, step: StepState, checked: Checked, *, scope: StateScope) -> None:
    if lap.kit.limits.consent.permissions and (denied := deny(lap, step, checked)) is not None:
        again = fallback.instead(lap, step, denied)
        return propose_call(lap, wired, step, scope) if again else give_up(lap, step, denied)
    if lap.kit.passage.wellness.unwell and (ill := not_well(lap, checked)) and fallback.instead(lap, step, ill):
        return propose_call(lap, wired, step, scope)
    approval = None
    if wired.spec.approve is not None or checked.entry.asks or checked.steered is not None:
        leave = consult(lap, wired, step, checked)
        if leave is None:
            return None
        approval = leave.approval
    if lap.kit.breakers.troubled:
        held = admit(lap, step, checked)
        if held is not None:
            again = fallback.hold_back(lap, step, held)
            return propose_call(lap, wired, step, scope) if again else None
    if checked.gated and (waits := held_back(lap, wired, step, checked)):
        lap.ask_no_more(step.path)
        return propose_call(lap, wired, step, scope) if waits == "instead" else None
    budget = lap.state.budget
    if (lap.spent or budget.calls + len(lap.proposals) >= budget.calls_max) and not lap.in_final:
        lap.held_back = True
        return lap.ask_no_more(step.path)
    return lap.propose(
        Proposal(
            step.path,
            step.attempts + 1,
            checked.entry.spec.name,
            checked.entry.spec.version,
            checked.effect,
            idempotency_key(lap.state.id, step.path, step.tries),
            checked.input,
            checked.coerced,
            approval,
            None if step.detour is None else step.detour.degraded,
        ),
        begins=step.status is StepStatus.PENDING and step.path[-1] != "]",
    )
