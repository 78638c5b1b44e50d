"""Figures of this engine since its start, counted where things become durable: a dictionary look-up per event.

They are for machines that watch (`/v1/metrics`, OpenTelemetry); what people ask about longer times is in the history.
No label names an owner, a task or a step: their number has no bound.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from everstep.domain import events as e
from everstep.domain.consequence import spec_of
from everstep.domain.histogram import Family, Histogram, Labels
from everstep.domain.ids import StepPath
from everstep.domain.states import CHILD
from everstep.domain.task import Intent, TaskState
from everstep.domain.usage import Usage

Drafts: TypeAlias = Sequence[e.Draft]


class Figures:
    """What has happened so far. Used on the engine's loop only."""

    def __init__(self) -> None:
        self.created = 0
        self.task_s: defaultdict[Labels, Histogram] = defaultdict(Histogram)
        """Of each status that ends a task."""
        self.queue_s = Histogram()
        self.call_s: defaultdict[str, Histogram] = defaultdict(Histogram)
        """Of each tool: calls that succeeded."""
        self.failed_s: defaultdict[Labels, Histogram] = defaultdict(Histogram)
        """Of each tool, and how its other calls ended."""
        self.wait_s: defaultdict[Labels, Histogram] = defaultdict(Histogram)
        """Of each tool, and what its steps waited for."""
        self.retries: Counter[Labels] = Counter()
        self.fallbacks: Counter[Labels] = Counter()
        self.used: defaultdict[Labels, float] = defaultdict(float)
        self.memory: Counter[Labels] = Counter()
        """Of each tool: the most that the process of a call has used."""
        self.pauses: Counter[Labels] = Counter()
        self.recoveries: Counter[Labels] = Counter()
        self.regressions: Counter[Labels] = Counter()
        self.delivery_s = Histogram()
        """From when something happened, over its commit, to the queues of whoever watches the task."""
        self.watchers: Counter[Labels] = Counter()
        """Open streams, by what they watch."""
        self.dropped: Counter[Labels] = Counter()
        """Watchers that were let go, by why."""

    def settled(self, state: TaskState, drafts: Drafts, intents: Sequence[Intent] = ()) -> None:
        """These are durable. `state` does not know of the intents yet, so what they waited for can still be seen."""
        for draft in drafts:
            count = _COUNTS.get(type(draft.body))
            if count is not None:
                count(self, draft, state, drafts)
        for intent in intents:
            step = state.steps.get(intent.step)
            if step is not None and step.wait is not None and step.waits_since is not None:
                waited_s = (intent.attempt.started_at - step.waits_since) / 1000
                self.wait_s[intent.attempt.tool, step.wait.kind].observe(waited_s)

    def claimed(self, state: TaskState) -> None:
        """A task was taken out of the queue; the first time counts."""
        if state.started_at is not None and state.claimed_at == state.started_at:
            self.queue_s.observe((state.started_at - state.created_at) / 1000)

    def report(self, tool: str, usage: Usage | None) -> None:
        """What a call used, as its tool says and as it was measured."""
        if usage is None:
            return
        amounts = {"cost": usage.cost, "tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out, **usage.counts}
        if (seen := usage.measured) is not None:
            amounts |= {"cpu_s": seen.cpu_s, "bytes_in": seen.bytes_in, "bytes_out": seen.bytes_out}
            self.memory[(tool,)] = max(self.memory[(tool,)], seen.memory_peak_bytes)
        for what, amount in amounts.items():
            if amount:
                self.used[tool, what] += amount

    def families(self) -> list[Family]:
        """All of it."""
        calls = {(tool, "succeeded"): histogram for tool, histogram in self.call_s.items()} | self.failed_s
        return [
            counter("tasks_created", "Tasks that were made.", (), {(): self.created}),
            histogram("task_seconds", "From creation to end.", ("status",), self.task_s),
            histogram("task_queue_seconds", "From creation to the first claim.", (), {(): self.queue_s}),
            histogram("step_seconds", "Calls of a tool, by how they ended.", ("tool", "result"), calls),
            histogram("step_queue_seconds", "Waits of a step for its turn.", ("tool", "for"), self.wait_s),
            counter("retries", "Retries that were scheduled.", ("tool", "category"), self.retries),
            counter("fallbacks", "Changes to a fallback.", ("tool",), self.fallbacks),
            counter("tool_usage", "What calls used, measured and reported.", ("tool", "what"), self.used),
            gauge("tool_memory_peak_bytes", "The most that a call has used.", ("tool",), self.memory),
            counter("pauses", "Questions and pauses that were opened.", ("type",), self.pauses),
            counter("recoveries", "Interrupted tasks that were found.", ("reason",), self.recoveries),
            counter("regressions", "Steps that became slower.", ("tool",), self.regressions),
            histogram(
                "delivery_seconds",
                "From an event, over its commit, to the watchers' queues.",
                (),
                {(): self.delivery_s},
            ),
            gauge("sockets", "Open streams, of one task or of all.", ("of",), self.watchers),
            counter("drops", "Watchers that were let go.", ("reason",), self.dropped),
        ]


def _completed(figures: Figures, draft: e.Draft, _state: TaskState, _drafts: Drafts) -> None:
    body: Any = draft.body
    if body.tool_used is not None and body.attempt is not None:
        figures.call_s[body.tool_used].observe(body.wall_s)
        if body.usage is not None:
            figures.report(body.tool_used, body.usage)


def _attempt_ended(figures: Figures, draft: e.Draft, state: TaskState, drafts: Drafts) -> None:
    body: Any = draft.body
    tool = _tool_of(state, draft.step, drafts)
    figures.failed_s[tool, body.TYPE.removeprefix("attempt.")].observe(body.duration_s)
    figures.report(tool, body.usage)


def _retried(figures: Figures, draft: e.Draft, state: TaskState, drafts: Drafts) -> None:
    body: Any = draft.body
    figures.retries[_tool_of(state, draft.step, drafts), body.error.failure.category.value] += 1


def _fell_back(figures: Figures, draft: e.Draft, _state: TaskState, _drafts: Drafts) -> None:
    body: Any = draft.body
    figures.fallbacks[(body.tool_requested or "",)] += 1


def _waits(figures: Figures, draft: e.Draft, _state: TaskState, _drafts: Drafts) -> None:
    body: Any = draft.body
    figures.created += body.kind == CHILD


def _paused(figures: Figures, draft: e.Draft, _state: TaskState, _drafts: Drafts) -> None:
    body: Any = draft.body
    figures.pauses[(body.pause.type.value,)] += 1


def _recovered(figures: Figures, draft: e.Draft, _state: TaskState, _drafts: Drafts) -> None:
    body: Any = draft.body
    figures.recoveries[(body.reason,)] += 1


def _ended(figures: Figures, _draft: e.Draft, state: TaskState, _drafts: Drafts) -> None:
    assert state.ended_at is not None
    figures.task_s[(state.status.value,)].observe((state.ended_at - state.created_at) / 1000)


_COUNTS: Final[dict[type, Callable[[Figures, e.Draft, TaskState, Drafts], None]]] = {
    e.StepCompleted: _completed,
    e.AttemptFailed: _attempt_ended,
    e.AttemptTimedOut: _attempt_ended,
    e.AttemptKilled: _attempt_ended,
    e.AttemptAbandoned: _attempt_ended,
    e.StepRetryScheduled: _retried,
    e.StepFallback: _fell_back,
    e.StepWaiting: _waits,
    e.PauseOpened: _paused,
    e.TaskRecovered: _recovered,
    e.TaskCompleted: _ended,
    e.TaskFailed: _ended,
    e.TaskCancelled: _ended,
}


def _tool_of(state: TaskState, path: StepPath | None, drafts: Drafts) -> str:
    """The tool of a call that is over; a step that goes on with a fallback in the same commit had the one before."""
    assert path is not None
    spec, detour = spec_of(state, path), state.steps[path].detour
    tools = [spec.tool, *(other.tool for other in spec.fallback)]
    moved = any(draft.step == path and isinstance(draft.body, e.StepFallback) for draft in drafts)
    return tools[(detour.fallback if detour else 0) - moved] or ""


def counter(name: str, help: str, labels: Labels, samples: Mapping[Labels, float]) -> Family:
    """Something that only grows."""
    return Family(name=f"everstep_{name}_total", kind="counter", help=help, labels=labels, samples={**samples})


def gauge(name: str, help: str, labels: Labels, samples: Mapping[Labels, float]) -> Family:
    """Something as it stands now."""
    return Family(name=f"everstep_{name}", kind="gauge", help=help, labels=labels, samples={**samples})


def histogram(name: str, help: str, labels: Labels, samples: Mapping[Labels, Histogram]) -> Family:
    """Times."""
    return Family(name=f"everstep_{name}", kind="histogram", help=help, labels=labels, samples={**samples})
