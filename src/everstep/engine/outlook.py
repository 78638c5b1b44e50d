"""What is left of a task and how long it will take: what the state says, guesses of adapters, history; then the play.

Only when somebody asks. History is read once and kept until there is more of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from everstep.domain.bindings import Resolved, resolve
from everstep.domain.estimate import UNKNOWN, Calls, Estimate, Span, after, exactly, pace_of, span_of
from everstep.domain.explain import explain
from everstep.domain.graph import Graph, Wired, places
from everstep.domain.history import STANDING, Kind
from everstep.domain.ids import Instant, StepPath, item_path
from everstep.domain.scope import StateScope
from everstep.domain.simulate import Left, Outlook, outlook
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonValue
from everstep.engine.kit import Kit
from everstep.ports.history import HistoryFilter
from everstep.ports.tool import Prior

ANY: Final = "*"
"""Of whatever size."""


class Outlooks:
    """One engine's view of what is to come."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._known: dict[str, dict[tuple[str, str], Calls]] = {}
        self._fresh = -1

    async def of(self, state: TaskState) -> Outlook | None:
        """What is left of a task; None if nothing is."""
        if state.terminal:
            return None
        self._kit.stir()
        return look(state, self._kit, await self.known(state.owner))

    async def known(self, owner: str) -> Mapping[tuple[str, str], Calls]:
        """What calls of this owner came to, by tool and size class."""
        if self._fresh != self._kit.kept:
            self._fresh = self._kit.kept
            self._known.clear()
        found = self._known.get(owner)
        if found is None:
            which = HistoryFilter(owner=owner, kind=Kind.TOOL, since=STANDING, until=STANDING)
            found = {}
            for row in await self._kit.store.history.rows(which):
                for size in (row.key.size, ANY):
                    found.setdefault((row.key.name, size), Calls()).add(row.key.outcome, row.sketch)
            self._known[owner] = found
        return found


def look(state: TaskState, kit: Kit, known: Mapping[tuple[str, str], Calls]) -> Outlook:
    """A task as it stands now; the same state and history give the same outlook."""
    at = kit.clock.now()
    view = _View(state, kit, known, at)
    steps = [*view.left()]
    waiting = explain(state).waiting_on
    on = None if waiting is None else waiting.kind
    found = outlook([step for step in steps if isinstance(step, Left)], places(state.plan))
    whole = found.task if all(isinstance(step, Left) for step in steps) else UNKNOWN
    nothing: dict[StepPath, Estimate] = {step: UNKNOWN for step in steps if not isinstance(step, Left)}
    said = {path: replace(one, as_of=at) for path, one in {**found.steps, **nothing}.items()}
    return Outlook(task=replace(whole, waiting_on=on, as_of=at), steps=said)


class _View:
    """One look at one task."""

    def __init__(self, state: TaskState, kit: Kit, known: Mapping[tuple[str, str], Calls], at: Instant) -> None:
        self._state, self._kit, self._known, self._at = state, kit, known, at
        self._graph: Graph = kit.graph(state)
        self._scope = StateScope(state, self._graph)
        self._spans: dict[tuple[str, str], Span | None] = {}
        self._pace = 1.0
        self._pace = pace_of([*self._ended()])

    def left(self) -> Iterator[Left | StepPath]:
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
        if step.wait is not None and step.wait.until is not None:
            left_s = (step.wait.until - self._at) / 1000
            return Left(path=wired.path, span=exactly(left_s), kind="", waits_for=waits_for, holds_place=True)
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

    def _span(self, wired: Wired, step: StepState) -> tuple[Span | None, str]:
        tool = step.attempt.tool if step.attempt is not None else wired.spec.tool or ""
        prior = self._kit.catalog.prior(tool, self._arguments(wired, step)) if tool in self._kit.catalog.sized else None
        size = ANY if prior is None else prior.size_class
        kind = f"{tool} {size}"
        calls = self._known.get((tool, size)) or (self._known.get((tool, ANY)) if prior is None else None)
        if prior is not None:
            return span_of(prior, calls, self._pace), kind
        if (tool, size) not in self._spans:
            self._spans[tool, size] = span_of(None, calls)
        return self._spans[tool, size], kind

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
            if step.status is not StepStatus.COMPLETED or step.attempts != 1 or tool not in self._kit.catalog.sized:
                continue
            prior: Prior | None = self._kit.catalog.prior(tool, self._arguments(wired, step))
            if prior is not None and step.started_at is not None and step.ended_at is not None and step.items is None:
                yield (step.ended_at - step.started_at) / 1000, prior.p50_s
