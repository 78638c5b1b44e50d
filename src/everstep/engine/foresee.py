"""One look at one task: which steps are left, what each may take, what is under way and for how long already."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from everstep.domain.bindings import Resolved, resolve
from everstep.domain.estimate import ENOUGH, UNKNOWN, Calls, Span, after, exactly, pace_of, span_of
from everstep.domain.explain import explain
from everstep.domain.graph import Graph, Wired, places
from everstep.domain.ids import StepPath, item_path
from everstep.domain.scope import StateScope
from everstep.domain.simulate import Left, Outlook, outlook
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonValue
from everstep.engine.kit import Kit

Known: TypeAlias = dict[tuple[str, str], Calls]
"""What calls came to, by tool and size class."""
ANY: Final = "*"
"""Of whatever size."""


class View:
    """One look at one task."""

    def __init__(
        self, state: TaskState, kit: Kit, known: Known, spans: dict[tuple[str, str, str], Span | None]
    ) -> None:
        self._state, self._kit, self._known, self._at = state, kit, known, kit.clock.now()
        self._graph: Graph = kit.graph(state)
        self._scope = StateScope(state, self._graph)
        self._spans = spans
        self._pace = pace_of([*self._ended()])

    def outlook(self) -> Outlook:
        """Of the task and of each step; numbers only where every step that is left is known."""
        steps = [*self._left()]
        waiting = explain(self._state).waiting_on
        on = None if waiting is None else waiting.kind
        found = outlook([step for step in steps if isinstance(step, Left)], places(self._state.plan))
        whole = found.task if all(isinstance(step, Left) for step in steps) else UNKNOWN
        each = {**found.steps, **{step: UNKNOWN for step in steps if not isinstance(step, Left)}}
        said = {path: replace(one, as_of=self._at) for path, one in each.items()}
        return Outlook(task=replace(whole, waiting_on=on, as_of=self._at), steps=said)

    def weights(self) -> dict[StepPath, float]:
        """What each step of the plan is expected to take, ended or not; nothing of those that nobody knows."""
        found = {}
        for wired in (*self._graph.steps, *self._graph.final):
            step = self._state.steps[wired.path]
            span, _ = self._span(wired, step)
            calls = self._calls(wired, step)
            if span is not None and calls is not None:
                found[wired.path] = span.median_s * (calls + step.items_ended)
        return found

    def _left(self) -> Iterator[Left | StepPath]:
        """Steps that have not ended, in the order of the plan; only the path of one that nobody knows anything of."""
        state, ending = self._state, self._state.failing is not None or self._state.cancelled_at is not None
        remaining = () if ending else self._graph.steps
        for wired in remaining:
            if not state.steps[wired.path].ended:
                yield self._step(wired, wired.waits_for)
        before = tuple(wired.path for wired in remaining if not state.steps[wired.path].ended)
        for wired in self._graph.final:
            if not state.steps[wired.path].ended:
                yield self._step(wired, before)
                before = (wired.path,)

    def _step(self, wired: Wired, waits_for: tuple[StepPath, ...]) -> Left | StepPath:
        step, spec = self._state.steps[wired.path], wired.spec
        waits_s = self._waits_s(step)
        if waits_s is not None:
            return Left(path=wired.path, span=exactly(waits_s), kind="", waits_for=waits_for, holds_place=True)
        span, kind = self._span(wired, step)
        calls = self._calls(wired, step)
        if span is None or calls is None:
            return wired.path
        begun = step.status is not StepStatus.PENDING
        return Left(
            path=wired.path,
            span=span,
            kind=kind,
            calls=calls,
            at_once=spec.parallel or 1,
            under_way=tuple(self._under_way(step, span)),
            waits_for=waits_for,
            holds_place=begun,
        )

    def _waits_s(self, step: StepState) -> float | None:
        """What is left of a wait that is the step itself: by the clock as long as it says; what somebody else has to
        send is no work of ours.
        """
        if step.wait is None or step.wait.kind not in ("time", "event"):
            return None
        until = step.wait.until if step.wait.kind == "time" else None
        return 0.0 if until is None else (until - self._at) / 1000

    def _span(self, wired: Wired, step: StepState) -> tuple[Span | None, str]:
        tool = step.attempt.tool if step.attempt is not None else wired.spec.tool or ""
        sized = tool in self._kit.catalog.sized
        prior = self._kit.catalog.prior(tool, self._arguments(wired, step) if sized else {})
        size = ANY if prior is None else prior.size_class
        kind = f"{tool} {size}"
        calls = self._known.get((tool, size))
        if prior is not None and (calls is None or calls.n < ENOUGH):
            return span_of(prior, calls, self._pace), kind
        place = (self._state.owner, tool, size)
        if place not in self._spans:
            self._spans[place] = span_of(prior, calls)
        return self._spans[place], kind

    def _arguments(self, wired: Wired, step: StepState) -> JsonValue:
        """As they are recorded, or would be now; what cannot be known yet is left out."""
        if step.attempt is not None and step.attempt.input.present:
            return step.attempt.input.value
        found = resolve(wired.arguments, self._scope)
        if isinstance(found, Resolved):
            return found.value
        return {}

    def _calls(self, wired: Wired, step: StepState) -> int | None:
        """How many calls are left; None if that is not known yet."""
        if wired.for_each is None:
            return 1
        if step.ended:
            return 0
        if step.items is not None:
            items = step.items.value if step.items.present else None
            return None if not isinstance(items, list) else max(0, len(items) - step.items_ended)
        found = resolve(wired.for_each, self._scope)
        return len(found.value) if isinstance(found, Resolved) and isinstance(found.value, list) else None

    def _under_way(self, step: StepState, span: Span) -> Iterator[Span]:
        paths = [item_path(step.path, index) for index in step.items_open] if step.items is not None else [step.path]
        for path in paths:
            one = self._state.steps[path]
            if one.attempt is not None:
                yield after(span, max(0, self._at - one.attempt.started_at) / 1000)
            elif one.retry_at is not None and one.retry_at > self._at:
                wait_s = (one.retry_at - self._at) / 1000
                yield replace(span, times_s=tuple(time_s + wait_s for time_s in span.times_s))

    def _ended(self) -> Iterator[tuple[float, float]]:
        """Calls of this task that were guessed about: what they took, and the guess."""
        for wired in self._graph.steps:
            step = self._state.steps[wired.path]
            tool = wired.spec.tool or ""
            if step.status is not StepStatus.COMPLETED or step.attempts != 1:
                continue
            prior = self._kit.catalog.prior(tool, self._arguments(wired, step))
            if prior is not None and step.started_at is not None and step.ended_at is not None and step.items is None:
                yield (step.ended_at - step.started_at) / 1000, prior.p50_s
