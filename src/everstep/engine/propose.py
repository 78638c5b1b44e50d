"""Resolve, validate, seal: from a step that may start to a proposal, or to the reason why there is none.

Nothing here waits. People and stores see real arguments: what is proposed is exactly what will be called.
"""

from everstep.domain import events as e
from everstep.domain.bindings import Compiled, NeedsPayload, Resolved, Scope, Unresolved, compile_value, resolve
from everstep.domain.decide import spec_of
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.graph import Wired
from everstep.domain.ids import StepPath, idempotency_key
from everstep.domain.pauses import Reason, SchemaMismatch, ToolErrorPause, UnresolvableParams, UnresolvedDependency
from everstep.domain.plan import OnError
from everstep.domain.states import StepStatus
from everstep.domain.task import Proposal, StepState
from everstep.domain.values import JsonObject
from everstep.engine.catalog import Checked
from everstep.engine.gate import admitted
from everstep.engine.lap import Lap


def callable_now(lap: Lap, step: StepState) -> bool:
    """Whether a step under way waits for nothing but its next call."""
    if step.status is not StepStatus.RUNNING or step.attempt is not None:
        return False
    producer = lap.state.awaiting.get(step.path)
    if producer is not None and not lap.state.steps[producer].ended:
        return False
    if step.wait is not None and step.wait.until is not None and step.wait.until > lap.at:
        return False
    return step.retry_at is None or step.retry_at <= lap.at


def propose_call(lap: Lap, wired: Wired, step: StepState, scope: Scope) -> None:
    """Resolve, validate, seal: a proposal, or the reason why there is none."""
    spec = wired.spec
    entry = lap.kit.catalog.get(spec.tool)
    constant = wired.arguments.constant and step.arguments is None
    ready_made = lap.kit.constants.get((lap.state.plan_digest, spec.id)) if constant else None
    if ready_made is not None:
        return _propose(lap, wired, step, ready_made)
    match resolve(_still_open(wired, step), scope):
        case Unresolved() as gap:
            return unresolved(lap, step, gap, gap.argument)
        case NeedsPayload() as needs:
            return lap.needs.update(needs.digests)
        case Resolved(value=arguments, untrusted=untrusted):
            assert isinstance(arguments, dict)
            if step.arguments:
                arguments = {**arguments, **step.arguments}
            if not acceptable(lap, wired, step, arguments):
                return None
            checked = Checked(
                input=lap.kit.codec.seal(arguments, untrusted=untrusted),
                effect=entry.effect_of(entry.call(arguments), spec),
                entry=entry,
                gated=bool(spec.pool or entry.spec.pool or entry.spec.rate),
                rate=lap.kit.passage.rate_of(entry.spec),
            )
            if constant:
                lap.kit.constants[lap.state.plan_digest, spec.id] = checked
            return _propose(lap, wired, step, checked)


def _still_open(wired: Wired, step: StepState) -> Compiled:
    """The arguments that no answer has given."""
    if not step.arguments:
        return wired.arguments
    left = {name: value for name, value in wired.spec.arguments.items() if name not in step.arguments}
    return compile_value(left)


def _propose(lap: Lap, wired: Wired, step: StepState, checked: Checked) -> None:
    if checked.gated and not admitted(lap, wired, step, checked):
        return
    budget = lap.state.budget
    if (lap.spent or budget.calls + len(lap.proposals) >= budget.calls_max) and not lap.in_final:
        lap.held_back = True
        return
    lap.propose(
        Proposal(
            step=step.path,
            attempt=step.attempts + 1,
            tool=checked.entry.spec.name,
            tool_version=checked.entry.spec.version,
            effect=checked.effect,
            idempotency_key=idempotency_key(lap.state.id, step.path, step.tries),
            input=checked.input,
        ),
        begins=step.status is StepStatus.PENDING and step.path[-1] != "]",
    )


def acceptable(lap: Lap, wired: Wired, step: StepState, arguments: JsonObject) -> bool:
    """Whether the resolved arguments may be sent; if not, the step asks for better ones or fails."""
    entry = lap.kit.catalog.get(wired.spec.tool)
    problems = entry.problems(entry.call(arguments))
    if not problems:
        return True
    missing = entry.missing(arguments)
    if missing:
        reason = SchemaMismatch(blocked_step=step.path, missing_fields=missing, suggested_tool=entry.spec.name)
        hold(lap, step, reason, f"{entry.spec.name} needs {', '.join(missing)}")
    else:
        text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems)
        refuse(lap, step, f"the arguments do not fit {entry.spec.name}: {text}")
    return False


def unresolved(lap: Lap, step: StepState, gap: Unresolved, argument: str) -> None:
    """A binding without a value: blame the producer if it gave nothing, else the field."""
    tool = spec_of(lap.state, step.path).tool
    if gap.producer is not None and gap.why in _PRODUCER_GAVE_NOTHING:
        reason: Reason = UnresolvedDependency(
            blocked_step=step.path,
            missing_output=gap.reference,
            producing_step=StepPath(gap.producer),
            suggested_tool=tool,
        )
    else:
        reason = UnresolvableParams(blocked_step=step.path, missing_param=argument, suggested_tool=tool)
    hold(lap, step, reason, gap.message)


_PRODUCER_GAVE_NOTHING = frozenset({"failed", "skipped", "uncertain", "not_ended"})


def hold(lap: Lap, step: StepState, reason: Reason, why: str) -> None:
    """Ask about a step; in `finally` nothing asks, so there it fails."""
    if lap.in_final:
        return refuse(lap, step, why)
    return lap.pause(step.path, reason, title=f"{step.path} cannot go on", why=why)


def refuse(lap: Lap, step: StepState, message: str) -> None:
    """A step that fails before any call."""
    state = lap.state
    failure = Failure(
        code="invalid_arguments",
        category=Category.CONFIGURATION,
        message=message,
        what_to_do="correct the arguments",
        effect_state=EffectState.NONE,
    )
    spec = spec_of(state, step.path)
    if state.plan.on_error(spec) is OnError.PAUSE and not lap.in_final:
        reason = ToolErrorPause(
            failed_step=step.path, error=message, retryable=spec.retryable, suggested_tool=spec.tool
        )
        return lap.pause(step.path, reason, title=f"{step.path} failed", why=message)
    error = e.ErrorRecord(id=lap.kit.entropy.new_id("e"), failure=failure, attempt=None)
    return lap.say(e.StepFailed(attempt=None, error=error, duration_s=0.0), step.path)
