"""What a row of history is called: from an event to its key. Shared by every store; knows none."""

from typing import Final

from everstep.domain import events as e
from everstep.domain.history import EXPIRED, RETRY, SUCCEEDED, HistoryKey, Kind
from everstep.domain.pauses import PauseType
from everstep.domain.values import Sealed
from everstep.wire.event import decode

CALLS: Final = {
    e.StepCompleted.TYPE: SUCCEEDED,
    e.AttemptFailed.TYPE: "failed",
    e.AttemptTimedOut.TYPE: "timed_out",
    e.AttemptKilled.TYPE: "killed",
    e.AttemptAbandoned.TYPE: "abandoned",
}
"""Events that end a call, and what it came to."""
CALLED: Final = frozenset({"tool", "fallback"})
"""How a step completes if a tool was called for it."""
BEGUN: Final = e.TaskStarted.TYPE
_ENDS: Final = {e.TaskFailed.TYPE: "failed", e.TaskCancelled.TYPE: "cancelled"}


def call_key(owner: str, plan: str, step: str, *, tool: str, type: str) -> HistoryKey:
    """A call that ended."""
    return HistoryKey(owner, Kind.TOOL, tool, CALLS[type], "", plan, step)


def retry_key(owner: str, plan: str, step: str, *, tool: str) -> HistoryKey:
    """A wait before one more call."""
    return HistoryKey(owner, Kind.TOOL, tool, RETRY, "", plan, step)


def plan_key(owner: str, plan: str, type: str, outcome: str | None) -> HistoryKey:
    """A task that ended."""
    return HistoryKey(owner, Kind.PLAN, plan, _ENDS.get(type) or outcome or "", "", plan)


def queued_key(owner: str, plan: str) -> HistoryKey:
    """A task that waited for somebody to carry it."""
    return HistoryKey(owner, Kind.PHASE, "queued", plan=plan)


def pause_key(owner: str, plan: str, step: str, *, type: str, answer: str | None) -> HistoryKey:
    """A step that waited for somebody; without an answer it ran out."""
    name = "awaiting_approval" if type == PauseType.APPROVAL_REQUIRED else "awaiting_person"
    return HistoryKey(owner, Kind.PHASE, name, answer or EXPIRED, plan=plan, step=step)


def input_of(intent: str) -> Sealed:
    """The arguments of a call."""
    event = decode(intent)
    assert isinstance(event.body, e.AttemptStarted)
    return event.body.input
