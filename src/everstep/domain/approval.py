"""Approvals: what a grant covers, and what a refusal means. Pure.

A grant is a fact of the task's state, so comparing `last_seq` guards it like everything else that can forbid a call.
"""

from typing import Final, Literal, TypeAlias

from everstep.domain import events as e
from everstep.domain.consequence import spec_of
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, Item, PauseId, StepPath, item_path, split_path
from everstep.domain.pauses import MAY_ANSWER, GatedCall, Grant, Pause, ToolErrorPause
from everstep.domain.plan import ApproveSpec, Effect, OnError, StepSpec
from everstep.domain.record import record
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject, JsonValue


@record
class Wanted:
    """What a call needs a grant for."""

    tool: str
    tool_version: str
    policy: str


@record
class Names:
    """Ids that the consequences of an answer may need; drawn outside, so that they stay functions."""

    error: str
    pause: PauseId


def question(spec: StepSpec, tool: str) -> ApproveSpec:
    """What the plan asks before this call; if only the tool does, the usual."""
    own = spec.approve if tool == spec.tool else None
    return own or ApproveSpec(title=f"Run {tool}?")


def editable(asks: ApproveSpec, input_schema: JsonObject) -> tuple[str, ...]:
    """The arguments that an approver may change."""
    known = input_schema.get("properties")
    if isinstance(asks.edit, bool):
        return tuple(sorted(known)) if asks.edit and isinstance(known, dict) else ()
    return asks.edit


def approvers(asks: ApproveSpec, *, trusted: bool) -> tuple[str, ...]:
    """Only people, unless the plan says otherwise and is `trusted` to, for this tool."""
    return MAY_ANSWER[asks.by if trusted else "human"]


Asker: TypeAlias = Literal["data", "operator", "plan", "tool"]


@record
class Asking:
    """Who wants a call asked about, and for data from outside which argument it would decide."""

    by: Asker
    argument: str | None = None
    because: str | None = None
    """What the tool has to say about this very call."""

    @property
    def above_plan(self) -> bool:
        """Whether the plan has no say in how it is answered."""
        return self.by in ("data", "operator")


_ASKING: Final[dict[Asker, str]] = {
    "data": "data from outside decides '{argument}' of",
    "operator": "the operator's rules ask before",
    "plan": "the plan asks before",
    "tool": "the tool asks before",
}


def why(call: GatedCall, asking: Asking) -> str:
    """Who asks, and what is at stake."""
    words = _ASKING[asking.by].format(argument=asking.argument)
    items = call.input.value if call.of_items else None
    count = f", {sum(one is not None for one in items)} times" if isinstance(items, list) else ""
    tail = "; cannot be undone" if call.effect in (Effect.VERIFIABLE, Effect.ONCE) else ""
    because = f": {asking.because}" if asking.because else ""
    return f"{words} {call.tool}{count}{because}{tail}"


def grant_of(state: TaskState, step: StepState) -> Grant | None:
    """The grant that a path could use: its own, or of an item that of its step."""
    if step.grant is not None:
        return step.grant
    name, index = split_path(step.path)
    given = state.steps[StepPath(name)].grant if index is not None else None
    return None if given is None or given.approval == step.spent else given


def stands(grant: Grant, step: StepState, wanted: Wanted, at: Instant) -> bool:
    """Whether it is still for this tool under these rules. Once used it carries the repeats of its one effect."""
    in_use = step.approval == grant.approval
    in_time = in_use or grant.expires_at is None or at < grant.expires_at
    bound = (grant.tool, grant.tool_version, grant.policy)
    return in_time and bound == (wanted.tool, wanted.tool_version, wanted.policy)


def changes(before: JsonObject, edited: JsonObject) -> tuple[JsonObject, ...]:
    """What an edit changes, argument by argument."""
    return tuple(
        {"argument": name, "from": before.get(name), "to": value}
        for name, value in edited.items()
        if name not in before or before[name] != value
    )


def rejected(state: TaskState, pause: Pause, why: str, new: Names) -> tuple[e.Draft, ...]:
    """Somebody said no, or nobody yes in time: fail, skip or hand over, as the plan says. Never tried by itself."""
    path = pause.step
    assert path is not None
    spec = spec_of(state, path)
    rule = spec.approve.on_reject if spec.approve is not None else "fail"
    begun = tuple(
        e.Draft(body=e.StepSkipped(reason=e.SkipReason.REQUESTED), step=item_path(path, index))
        for index in state.steps[path].items_open
    )
    if rule == "skip":
        return (*begun, e.Draft(body=e.StepSkipped(reason=e.SkipReason.REQUESTED), step=path))
    failure = refusal(spec, why)
    if rule == "pause" or state.on_error(spec) is OnError.PAUSE:
        reason = ToolErrorPause(
            failed_step=path, error=failure.message, retryable=spec.retryable, suggested_tool=spec.tool
        )
        opened = Pause(
            id=new.pause,
            step=path,
            reason=reason,
            title=f"{path} was not approved",
            why=failure.message,
            guidance=spec.guidance or state.plan.guidance,
        )
        return (e.Draft(body=e.PauseOpened(pause=opened), step=path),)
    error = e.ErrorRecord(id=new.error, failure=failure)
    return (*begun, e.Draft(body=e.StepFailed(attempt=None, error=error, duration_s=0.0), step=path))


def refusal(spec: StepSpec, why: str) -> Failure:
    """The failure of a step whose call was not allowed."""
    return Failure(
        code="approval_rejected",
        category=Category.LOGIC,
        message=f"{spec.tool} was not approved: {why}",
        what_to_do="change what it would do, then retry the task",
        effect_state=EffectState.NONE,
    )


def argument_of(grant: Grant, index: Item | None) -> JsonValue:
    """What was shown for one item; None if it was not part of the question."""
    items = None if grant.items is None else grant.items.value
    return items[index] if isinstance(items, list) and isinstance(index, int) and index < len(items) else None
