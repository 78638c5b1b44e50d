"""A plan as a conversation: what was wanted, the plan, each call and what came of it. Pure functions of the journal.

The plain prompt and the task-backed one use the same functions, so they say the same up to the hand-off.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from everstep.domain import events as e
from everstep.domain.bindings import Absent, Found, compile_value, render
from everstep.domain.ids import CALL, StepPath, item_path
from everstep.domain.pauses import ToolErrorPause
from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.resources import filled, parts_of
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState
from everstep.domain.values import JsonValue
from everstep.doors.mcp.story import Story
from everstep.wire.handoff import door_name

MESSAGE_BYTES_MAX: Final = 32 * 1024
ERROR_CHARS_MAX: Final = 2000
_NOT_TOLD: Final = frozenset({e.SkipReason.TASK_CANCELLED, e.SkipReason.TASK_FAILED, e.SkipReason.COMPLETED_BY_CLIENT})
"""Steps that nobody came to are not spoken of."""

Message: TypeAlias = tuple[str, str]
"""Role and text."""


def transcript(story: Story, given: Mapping[str, str], descriptions: Mapping[str, str]) -> list[Message]:
    """Everything that was done, as a conversation."""
    plan = story.state.plan
    said = [intent(plan, given), outline(plan, descriptions)]
    if plan.guidance is not None:
        said.append(("assistant", _with_inputs(plan.guidance, story)))
    touched = _touched(story.events)
    asked = _asked(story.events)
    inputs = _calls(story.events)
    for spec in plan.steps:
        path = StepPath(spec.id)
        step = story.state.steps[path]
        if step.status is StepStatus.SKIPPED and step.skip_reason not in _NOT_TOLD:
            said.append(("assistant", f"Skipped step '{spec.id}': {step.skip_reason}."))
        elif path in touched and parts_of(spec):
            said += _parts(story, spec, inputs, asked)
        elif path in touched:
            said += _step(story, spec, inputs.get(path), asked.get(path))
    return [(role, cut(text)) for role, text in said]


def intent(plan: PlanSpec, given: Mapping[str, str]) -> Message:
    """What the user wants."""
    text = f"I want to {plan.description or plan.title or plan.name}."
    secret = {one.name for one in plan.inputs if one.schema.get("type") == "secret"}
    lines = [
        f'  - {one.name}: "{"***" if one.name in secret else given[one.name]}"'
        for one in plan.inputs
        if one.name in given
    ]
    return "user", "\n".join([text, "Parameters:", *lines]) if lines else text


def outline(plan: PlanSpec, descriptions: Mapping[str, str]) -> Message:
    """What will be done."""
    lines = [f"{number}. {_line(spec, descriptions)}\n" for number, spec in enumerate(plan.steps, start=1)]
    return "assistant", "Here's my plan:\n" + "".join(lines)


def _line(spec: StepSpec, descriptions: Mapping[str, str]) -> str:
    if spec.tool is None:
        count = len(spec.resources)
        return f"{spec.id} - Fetch {count} resource{'' if count == 1 else 's'}"
    return f"{door_name(spec.tool)} - {descriptions.get(spec.tool) or 'no description'}"


def _parts(
    story: Story, spec: StepSpec, sent: Mapping[StepPath, JsonValue], asked: Mapping[StepPath, e.PauseOpened]
) -> Iterator[Message]:
    """What was read before a call, the call, and what was read after it."""
    if spec.guidance is not None:
        yield "assistant", _with_inputs(spec.guidance, story)
    for name in parts_of(spec):
        path = item_path(spec.id, name)
        step = story.state.steps.get(path)
        if step is None:
            continue
        tell = _call if name == CALL else _resources
        yield from tell(spec, step, sent.get(path), _error(step, asked.get(path)))


def _step(story: Story, spec: StepSpec, sent: JsonValue, asked: e.PauseOpened | None) -> Iterator[Message]:
    step = story.state.steps[StepPath(spec.id)]
    if spec.guidance is not None:
        yield "assistant", _with_inputs(spec.guidance, story)
    if spec.tool is not None:
        yield from _call(spec, step, sent, _error(step, asked))
        return
    yield from _resources(spec, step, sent, _error(step, asked))
    if step.status is StepStatus.COMPLETED:
        yield "assistant", f"I'll fetch the required resources for {spec.id}..."


def _call(spec: StepSpec, step: StepState, sent: JsonValue, error: str | None) -> Iterator[Message]:
    if sent is not None:
        yield (
            "assistant",
            f"Calling tool '{door_name(spec.tool or '')}' with parameters:\n{pretty(_in_order(spec, sent))}",
        )
    if step.status is StepStatus.COMPLETED and step.output is not None:
        shown: JsonValue = step.output.value if step.output.present else {"artifact": step.output.digest}
        yield "user", f"Tool result:\n{pretty(shown)}"
        return
    if error is not None:
        yield "user", f"Error executing tool: {error[:ERROR_CHARS_MAX]}"


def _resources(spec: StepSpec, step: StepState, sent: JsonValue, error: str | None) -> Iterator[Message]:
    """What was read, or why it was not."""
    if error is not None:
        asked = sent.get("uris") if isinstance(sent, dict) else None
        uris = map(_address, asked) if isinstance(asked, list) else (one.uri for one in spec.resources)
        yield "user", f"Error fetching resource {', '.join(uris)}: {error[:ERROR_CHARS_MAX]}"
        return
    value = step.output.value if step.output is not None and step.output.present else None
    found = value.get("contents") if isinstance(value, dict) else None
    if step.status is StepStatus.COMPLETED and isinstance(found, list):
        for one in found:
            if isinstance(one, dict):
                yield "user", f"Resource content from {one['uri']}:\n{one.get('text', one.get('blob', ''))}"


def _address(one: JsonValue) -> str:
    if not isinstance(one, dict):
        return str(one)
    values = one.get("vars")
    return filled(str(one["uri"]), values if isinstance(values, dict) else {})


def _in_order(spec: StepSpec, sent: JsonValue) -> JsonValue:
    """Arguments in the order of the plan: the journal keeps none."""
    if not isinstance(sent, dict):
        return sent
    known = {name: sent[name] for name in spec.arguments if name in sent}
    return {**known, **{name: value for name, value in sent.items() if name not in known}}


def _error(step: StepState, asked: e.PauseOpened | None) -> str | None:
    if step.error is not None:
        return step.error.failure.message
    reason = None if asked is None else asked.pause.reason
    return reason.error if isinstance(reason, ToolErrorPause) else None


def _touched(events: Sequence[e.Recorded]) -> set[StepPath]:
    """Steps that somebody came to."""
    kinds = (e.AttemptStarted, e.PauseOpened, e.StepStarted, e.StepCompleted, e.StepFailed)
    return {event.step for event in events if event.step is not None and isinstance(event.body, kinds)}


def _asked(events: Sequence[e.Recorded]) -> dict[StepPath, e.PauseOpened]:
    found: dict[StepPath, e.PauseOpened] = {}
    for event in events:
        if event.step is not None and isinstance(event.body, e.PauseOpened):
            found[event.step] = event.body
    return found


def _calls(events: Sequence[e.Recorded]) -> dict[StepPath, JsonValue]:
    """What each step was called with last."""
    found: dict[StepPath, JsonValue] = {}
    for event in events:
        if event.step is not None and isinstance(event.body, e.AttemptStarted):
            sent = event.body.input
            found[event.step] = sent.value if sent.present else {"artifact": sent.digest}
    return found


class _Inputs:
    """All that guidance may bind here."""

    def __init__(self, inputs: JsonValue) -> None:
        self._inputs = inputs

    def root(self, name: str) -> Found | Absent:
        return Found(value=self._inputs) if name == "inputs" else Absent(why="unknown")

    def step(self, _id: str) -> None:
        """No step is known to it."""


def _with_inputs(text: str, story: Story) -> str:
    return render(compile_value(text), _Inputs(story.state.inputs.value))


def pretty(value: JsonValue) -> str:
    """JSON for readers: two spaces, keys in their order, nothing escaped."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def cut(text: str) -> str:
    """At most so many bytes of one message."""
    raw = text.encode()
    if len(raw) <= MESSAGE_BYTES_MAX:
        return text
    kept = raw[:MESSAGE_BYTES_MAX].decode(errors="ignore")
    return f"{kept}… ({len(raw) - len(kept.encode())} more bytes)"


def progress_of(story_events: Sequence[e.Recorded], plan: PlanSpec) -> tuple[int, str] | None:
    """How far the latest event has brought it: the number of the step, and its name."""
    order = [spec.id for spec in plan.steps]
    for event in reversed(story_events):
        name = None if event.step is None else event.step.partition("[")[0]
        if name in order:
            return order.index(name) + 1, str(name)
    return None
