"""C9: no gated call without a grant for exactly that call, and one grant for one effect.

Standard library only. A grant is what an answer, or a time that ran out, gave to the call that a pause showed.
"""

import hashlib
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from everstep.torture.effects import answers, plan_step
from everstep.torture.history import Violation
from everstep.torture.state import Attempt, Grant, State, Step, base


def check_approvals(state: State) -> Iterator[Violation]:
    """All of C9, by the journal of one task."""
    used: set[str] = set()
    begun = [(attempt, step) for step in state.steps.values() for attempt in step.attempts]
    for attempt, step in sorted(begun, key=lambda pair: pair[0].begun.seq):
        name = attempt.begun.data.get("approval")
        for what in _unfounded(state, step, attempt, fresh=name not in used):
            yield Violation("C9", state.task, attempt.begun.seq, f"attempt {attempt.number} of {step.path} {what}")
        used.add(str(name))
    for step in state.steps.values():
        for first, second in pairwise(step.attempts):
            name = second.begun.data.get("approval")
            if (
                name is not None
                and first.begun.data.get("approval") == name
                and _another_effect(state, step, first, second)
            ):
                what = f"attempts {first.number} and {second.number} of {step.path} are two effects of the grant {name}"
                yield Violation("C9", state.task, second.begun.seq, what)


def _unfounded(state: State, step: Step, attempt: Attempt, *, fresh: bool) -> Iterator[str]:
    said = plan_step(state, step)
    data = attempt.begun.data
    name = data.get("approval")
    if name is None:
        if said.get("approve") and data.get("tool") == said.get("tool"):
            yield "starts without the approval that the plan asks for"
        return
    grant = state.grants.get(name)
    if grant is None or grant.given.seq > attempt.begun.seq:
        yield f"names the approval {name}, which nobody had given"
        return
    if grant.step not in (step.path, base(step.path)):
        yield f"uses the approval of {grant.step}"
    if (grant.tool, grant.version) != (data.get("tool"), data.get("tool_version")):
        yield f"calls {data.get('tool')} {data.get('tool_version')}, approved was {grant.tool} {grant.version}"
    digest = _granted(grant, step.path)
    if digest is not None and digest != _digest(data.get("input") or {}):
        yield "has other arguments than were approved"
    if fresh and grant.expires_at is not None and attempt.begun.at >= grant.expires_at:
        yield "uses an approval that has expired"


def _granted(grant: Grant, path: str) -> str | None:
    """The digest that was approved for this path; None if the journal does not show it."""
    if not grant.of_items:
        return grant.digest
    if not isinstance(grant.shown, list):
        return None
    shown = grant.shown[int(path.rpartition("[")[2][:-1])]
    text = json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "none of these" if shown is None else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _digest(payload: dict[str, Any]) -> str | None:
    found = payload.get("digest") or payload.get("artifact")
    return None if found is None else str(found)


def _another_effect(state: State, step: Step, first: Attempt, second: Attempt) -> bool:
    """Whether the second call is more than a repeat of the one effect that was allowed."""
    if first.end is None or first.end.data.get("effect_state") not in {"none", "unknown"}:
        return True
    said = (event.data.get("answer", "retry") for event in answers(state, step, first, second))
    return any(answer in {"retry", "retry_with"} for answer in said)
