"""The last message of a task that cannot go on by itself: what happened, and which calls remain. Pure."""

import json
from typing import Final, assert_never

from everstep.domain import pauses as p
from everstep.domain.continuation import HANDED
from everstep.domain.continued import SERVER
from everstep.domain.remaining import Remaining, open_question, remaining
from everstep.domain.task import TaskState
from everstep.domain.values import JsonValue
from everstep.wire.handoff import door_name

READ: Final = "resource_read"


def handoff_text(state: TaskState) -> str | None:
    """The message; None while there is nothing to hand over."""
    question = open_question(state)
    if question is None:
        return None
    said = f"{happened(question.reason)}\n\nTo continue the workflow, make these tool calls:\n\n"
    if question.type not in HANDED:
        answers = "|".join(question.answers)
        note = "   Note: The server goes on by itself after the answer.\n"
        return f"{said}1. Call answer_pause with {compact({'answer': answers})}\n{note}"
    left = remaining(state)
    server = state.handover is not None and state.handover.continue_by == SERVER
    shown = left[:1] if server else left
    text = said + "".join(_entry(number, one) for number, one in enumerate(shown, start=1))
    rest = ", ".join(tool_name(one) for one in left[1:])
    return f"{text}\nAfter that the server continues by itself with: {rest}.\n" if server and rest else text


def tool_name(one: Remaining) -> str:
    """What the client calls it."""
    return READ if one.tool is None else door_name(one.tool)


def _entry(number: int, one: Remaining) -> str:
    note = "" if one.guidance is None else f"   Note: {one.guidance}\n"
    return f"{number}. Call {tool_name(one)} with {compact(one.arguments)}\n{note}"


def happened(reason: p.Reason) -> str:
    """Why it stands still, in one sentence."""
    match reason:
        case p.ToolErrorPause():
            more = " This step is retryable." if reason.retryable else ""
            return f"Step '{reason.failed_step}' failed: {reason.error}.{more}"
        case p.UnresolvableParams():
            return f"Could not resolve parameter '{reason.missing_param}' for step '{reason.blocked_step}'."
        case p.SchemaMismatch():
            return f"Step '{reason.blocked_step}' has missing required fields: {', '.join(reason.missing_fields)}."
        case p.UnresolvedDependency():
            needs = f"depends on output '{reason.missing_output}' from step '{reason.producing_step}'"
            return f"Step '{reason.blocked_step}' {needs}, which did not complete."
        case p.ApprovalRequired():
            return f"Step '{reason.blocked_step}' needs approval before it runs."
        case p.InputRequired():
            return f"Step '{reason.blocked_step}' needs an answer: {reason.question}"
        case p.UncertainOutcome():
            check = "Check before anything is repeated."
            return f"Step '{reason.blocked_step}' was interrupted and may already have happened. {check}"
        case p.LimitReached():
            return f"The task reached its limit '{reason.limit}' ({reason.used:g} of {reason.max:g})."
        case p.UserRequested():
            return f"The task was paused by {reason.by}."
        case p.ResourcePressure():
            return f"The task waits because of pressure on {reason.what}."
        case _:
            assert_never(reason)


def compact(value: JsonValue) -> str:
    """JSON on one line, keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
