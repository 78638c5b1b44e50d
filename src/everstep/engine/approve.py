"""The gate before a call that somebody must allow: the grant it may use, or the question.

Nothing is asked before the call is resolved and validated, so what people see is exactly what will be called.
"""

from typing import Final

from everstep.domain import approval, expiry
from everstep.domain import events as e
from everstep.domain.bindings import NeedsPayload, Resolved, Unresolved, compile_value, render, resolve
from everstep.domain.graph import Wired
from everstep.domain.ids import PauseId, split_path
from everstep.domain.pauses import ApprovalRequired, GatedCall, Pause
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState
from everstep.domain.values import JsonValue
from everstep.engine.catalog import Checked
from everstep.engine.lap import Lap

SHOW_BYTES_MAX: Final = 8 * 1024
"""Of what a plan wants shown; the call itself is always there."""
TITLE_CHARS_MAX: Final = 500


def gate(lap: Lap, wired: Wired, step: StepState, checked: Checked, *, asking: approval.Asking) -> PauseId | None:
    """The approval that this call uses up. None: there is none, and it was asked for, or the step has failed."""
    if lap.in_final:
        _not_in_final(lap, wired, step)
        return None
    spec = checked.entry.spec
    wanted = approval.Wanted(tool=spec.name, tool_version=spec.version, policy=lap.kit.limits.policy)
    grant = approval.grant_of(lap.state, step)
    if grant is not None and approval.stands(grant, step, wanted, lap.at):
        if grant.items is not None and not grant.items.present:
            lap.needs.add(grant.items.digest)
            return None
        digest = grant.digest
        if grant.items is not None:
            shown = approval.argument_of(grant, split_path(step.path)[1])
            digest = lap.kit.codec.seal(shown).digest
        if digest == checked.input.digest:
            return grant.approval
    call = GatedCall(
        tool=spec.name,
        tool_version=spec.version,
        effect=checked.effect,
        input=checked.input,
        editable=approval.editable(approval.question(wired.spec, spec.name), spec.input_schema),
        policy=wanted.policy,
    )
    ask(lap, wired, step, call, asking=asking)
    return None


def ask(lap: Lap, wired: Wired, step: StepState, call: GatedCall, *, asking: approval.Asking) -> None:
    """Open the question; the step waits. A plan's patience and its LLM do not answer for the operator."""
    asks = approval.question(wired.spec, call.tool)
    show = _shown(lap, asks.show)
    if lap.needs:
        return
    if step.status is StepStatus.PENDING:
        lap.say(e.StepStarted(title=render(wired.title, lap.scope) or step.path), step.path)
    pause_id = PauseId(lap.kit.entropy.new_id("p"))
    patience = None
    silent = asks.on_timeout == "approve" and asking.above_plan
    if asks.within_ms is not None and asks.on_timeout is not None and not silent:
        patience = expiry.Patience(length_ms=asks.within_ms, then=asks.on_timeout)
        lap.kit.expect(patience.warns_at(lap.at))
    llms = lap.kit.limits.consent.llm_approvals if asking.by != "data" else ()
    pause = Pause(
        id=pause_id,
        step=step.path,
        reason=ApprovalRequired(
            blocked_step=step.path, approval_id=pause_id, digest=call.input.digest, suggested_tool=call.tool
        ),
        title=_cut(render(compile_value(asks.title), lap.scope)),
        why=approval.why(call, asking),
        guidance=wired.spec.guidance or lap.state.plan.guidance,
        call=call,
        show=show,
        may_answer=approval.approvers(asks, trusted=lap.state.trusted and call.tool in llms),
    )
    opened = expiry.timed(e.Draft(body=e.PauseOpened(pause=pause), step=step.path), patience, lap.at)
    lap.say(lap.kit.timed(opened, lap.state, lap.at).body, step.path)


def _cut(title: str) -> str:
    """A question of one screen, whatever was bound into it."""
    return title if len(title) <= TITLE_CHARS_MAX else f"{title[: TITLE_CHARS_MAX - 1]}…"


def _shown(lap: Lap, show: JsonValue) -> tuple[JsonValue, ...]:
    """The values the plan wants shown, if it names any; a missing one is told in words."""
    if show is None:
        return ()
    match resolve(compile_value(show), lap.scope):
        case NeedsPayload(digests=digests):
            lap.needs.update(digests)
            return ()
        case Unresolved() as gap:
            return (f"({gap.message})",)
        case Resolved(value=value):
            if len(lap.kit.codec.payload(value)) > SHOW_BYTES_MAX:
                return ("(too large to be shown; look at the call)",)
            return tuple(value) if isinstance(value, list) else (value,)


def _not_in_final(lap: Lap, wired: Wired, step: StepState) -> None:
    """Nothing in `finally` pauses, so a call that needs a person is not made."""
    failure = approval.refusal(wired.spec, "a step in `finally` cannot ask for approval")
    error = e.ErrorRecord(id=lap.kit.entropy.new_id("e"), failure=failure)
    lap.say(e.StepFailed(attempt=None, error=error, duration_s=0.0), step.path)
