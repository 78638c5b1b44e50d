"""Why a step cannot be called: its arguments, its producers. It asks, or it gives up."""

from everstep.domain import events as e
from everstep.domain.bindings import Unresolved
from everstep.domain.consequence import final_error, goes_without, handed_over, tool_now
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import StepPath
from everstep.domain.pauses import Reason, SchemaMismatch, UnresolvableParams, UnresolvedDependency
from everstep.domain.task import StepState
from everstep.domain.values import JsonObject
from everstep.engine.catalog import Entry
from everstep.engine.judge import dependants
from everstep.engine.lap import Lap


def misfit(lap: Lap, step: StepState, entry: Entry, arguments: JsonObject) -> Failure | None:
    """What is wrong with resolved arguments, if it cannot be asked for; None if the step now asks."""
    missing = entry.missing(arguments)
    if missing:
        reason = SchemaMismatch(blocked_step=step.path, missing_fields=missing, suggested_tool=entry.spec.name)
        hold(lap, step, reason, f"{entry.spec.name} needs {', '.join(missing)}")
        return None
    problems = entry.problems(entry.call(entry.fitted(arguments)[0]))
    text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems)
    return invalid(f"the arguments do not fit {entry.spec.name}: {text}")


def unresolved(lap: Lap, step: StepState, gap: Unresolved, argument: str) -> None:
    """A binding without a value: blame the producer if it gave nothing, else the field."""
    tool = tool_now(lap.state, step.path)
    if gap.producer is not None and gap.why in _PRODUCER_GAVE_NOTHING:
        reason: Reason = lacks(lap, step.path, StepPath(gap.producer))
    else:
        reason = UnresolvableParams(blocked_step=step.path, missing_param=argument, suggested_tool=tool)
    hold(lap, step, reason, gap.message)


def lacks(lap: Lap, path: StepPath, producer: StepPath) -> UnresolvedDependency:
    """What a step lacks, and whose tool would give it."""
    spec = lap.graph.by_id[producer.partition("[")[0]].spec
    return UnresolvedDependency(
        blocked_step=path, missing_output=spec.bind, producing_step=producer, suggested_tool=spec.tool
    )


_PRODUCER_GAVE_NOTHING = frozenset({"failed", "skipped", "uncertain", "not_ended"})


def hold(lap: Lap, step: StepState, reason: Reason, why: str) -> None:
    """Ask about a step; in `finally` nothing asks, so there it fails."""
    if lap.in_final:
        return give_up(lap, step, invalid(why))
    return lap.pause(step.path, reason, title=f"{step.path} cannot go on", why=why)


def invalid(message: str) -> Failure:
    """Arguments that are not worth a call."""
    return Failure(
        code="invalid_arguments",
        category=Category.CONFIGURATION,
        message=message,
        what_to_do="correct the arguments",
        effect_state=EffectState.NONE,
    )


def missing(tool: str) -> Failure:
    """Nothing of that name is installed here any more."""
    return Failure(
        code="tool_missing",
        category=Category.CONFIGURATION,
        message=f"there is no tool '{tool}' here",
        what_to_do="install it, or name it in `tools`",
        effect_state=EffectState.NONE,
    )


def too_large(why: str) -> Failure:
    """Outputs that are too much together; each of them is kept."""
    return Failure(
        code="limit_output",
        category=Category.RESOURCE,
        message=f"the outputs of all items are too large together: {why}",
        what_to_do="go over fewer items, or let each give less",
        effect_state=EffectState.MADE,
    )


def give_up(lap: Lap, step: StepState, failure: Failure) -> None:
    """A step that fails without a call."""
    state = lap.state
    reason = handed_over(state, step.path, failure)
    if reason is not None:
        return lap.pause(step.path, reason, title=f"{step.path} failed", why=failure.message)
    if goes_without(state, step.path, failure):
        return lap.say(e.StepSkipped(reason=e.SkipReason.TOOL_UNAVAILABLE), step.path)
    error = e.ErrorRecord(id=lap.kit.entropy.new_id("e"), failure=failure)
    error = final_error(state, step.path, error, dependants(lap.graph, step.path))
    return lap.say(e.StepFailed(attempt=None, error=error, duration_s=0.0), step.path)


def fail_of_items(lap: Lap, step: StepState, count: int) -> None:
    """A step whose items failed, whatever its plan says to a failure of its own: each item was asked about."""
    failure = Failure(
        code="items_failed",
        category=Category.LOGIC,
        message=f"{step.items_failed} of {count} items failed",
        what_to_do="look at the failed items",
        effect_state=EffectState.MADE,
    )
    error = e.ErrorRecord(id=lap.kit.entropy.new_id("e"), failure=failure)
    error = final_error(lap.state, step.path, error, dependants(lap.graph, step.path))
    duration_s = (lap.at - (step.started_at or lap.at)) / 1000
    lap.say(e.StepFailed(attempt=None, error=error, duration_s=duration_s), step.path)
