"""Taking back: which outcomes can be, by which call, and the plan that does so. Pure.

Compensations come in reverse order of what they take back. Their arguments are resolved here, from the journal: the
plan that is made holds values, not bindings.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from everstep.domain.attempts import Attempt, History
from everstep.domain.bindings import Absent, Found, NeedsPayload, Scope, Unresolved, compile_value, render, resolve
from everstep.domain.graph import Graph, items_of
from everstep.domain.ids import CALL, Digest, StepPath, item_path, split_path
from everstep.domain.plan import Effect, OnError, PlanSpec, StepSpec, UndoSpec
from everstep.domain.record import record
from everstep.domain.scope import StateScope
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject, JsonValue

ID_CHARS_MAX: Final = 63
TAKE_BACK: Final = "undo"
"""The tool that asks the family of another tool to take a call back."""


@record
class Abilities:
    """What the engine knows of tools."""

    effect_of: Callable[[StepSpec], Effect]
    undoes: Callable[[str], bool]
    """Whether the family of this tool can take a call of it back."""


@record
class NotUndoable:
    """An outcome that stays, and why."""

    step: StepPath
    why: str
    effect: Effect


@record
class Outlook:
    """What an undo would do."""

    steps: tuple[StepSpec, ...]
    undo: Mapping[StepPath, str]
    """Step -> the step of the new task that takes it back; the last one first."""
    stays: tuple[NotUndoable, ...]
    needs: frozenset[Digest]
    """Values that must be fetched before anything can be said."""

    @property
    def point_of_no_return(self) -> StepPath | None:
        """The last outcome with an effect that cannot be taken back."""
        return next((one.step for one in self.stays if one.effect is not Effect.PURE), None)


_Way: TypeAlias = tuple[str, JsonObject, UndoSpec | None]
"""The tool, its arguments, and what the plan says besides."""


def outlook(
    state: TaskState,
    graph: Graph,
    history: History,
    abilities: Abilities,
    *,
    undone: Mapping[StepPath, str],
    wanted: Collection[StepPath] | None,
) -> Outlook:
    """What can be taken back of a task, and how; `wanted`: only these steps."""
    makers = _Maker(state, graph, history, abilities)
    steps: list[StepSpec] = []
    undo: dict[StepPath, str] = {}
    stays: list[NotUndoable] = []
    for step in _last_first(state):
        if wanted is not None and step.path not in wanted:
            continue
        spec = state.specs[step.path]
        made = undone.get(step.path) or makers.make(step, spec)
        if isinstance(made, str):
            stays.append(NotUndoable(step=step.path, why=made, effect=abilities.effect_of(spec)))
        elif made is not None:
            steps.append(made)
            undo[step.path] = made.id
    return Outlook(steps=tuple(steps), undo=undo, stays=tuple(stays), needs=frozenset(makers.needs))


def _last_first(state: TaskState) -> Iterator[StepState]:
    steps = [(state.steps[StepPath(name)], place) for place, name in enumerate(state.specs)]
    done = [(step.ended_at or 0, place, step) for step, place in steps if step.status is StepStatus.COMPLETED]
    yield from (step for _, _, step in sorted(done, key=lambda one: one[:2], reverse=True))
    partly = [step for step, _ in reversed(steps) if step.status is not StepStatus.COMPLETED]
    yield from (step for step in partly if any(i.status is StepStatus.COMPLETED for i in items_of(state, step.path)))


class _Maker:
    """Makes one step of the new plan after the other, and notes the values it would need for that."""

    def __init__(self, state: TaskState, graph: Graph, history: History, abilities: Abilities) -> None:
        self._state = state
        self._graph = graph
        self._history = history
        self._abilities = abilities
        self.needs: set[Digest] = set()

    def make(self, step: StepState, spec: StepSpec) -> StepSpec | str | None:
        """The compensation of an outcome, or why there is none; None while a value is missing."""
        if step.via == "copied":
            return "its outcome was copied: take it back where it was made"
        if step.child is not None:
            return f"it made task {step.child}: undo that one"
        own = spec.undo is None and self._abilities.undoes(spec.tool or "")
        if spec.undo is None and not own:
            pure = self._abilities.effect_of(spec) is Effect.PURE
            return "it has no effect, so there is nothing to take back" if pure else f"{spec.tool} has no undo"
        if spec.for_each is not None and step.items is not None:
            return self._list(step, spec)
        way = self._way(self._state.steps.get(item_path(step.path, CALL), step), spec, None)
        return way if way is None or isinstance(way, str) else _step(spec, way, None)

    def _list(self, step: StepState, spec: StepSpec) -> StepSpec | str | None:
        """A list is taken back as a list, item by item, the last one first."""
        assert step.items is not None
        if not step.items.present:
            self.needs.add(step.items.digest)
            return None
        done = [item for item in items_of(self._state, step.path) if item.status is StepStatus.COMPLETED]
        ways: list[_Way] = []
        for item in reversed(done):
            way = self._way(item, spec, item)
            if way is None or isinstance(way, str):
                return way
            ways.append(way)
        return _step(spec, ways[0], [arguments for _, arguments, _ in ways])

    def _way(self, step: StepState, spec: StepSpec, item: StepState | None) -> _Way | str | None:
        if spec.undo is None:
            return self._by_family(step)
        match resolve(compile_value(spec.undo.arguments), self._scope(spec, item)):
            case Unresolved() as gap:
                return f"its undo cannot be resolved: {gap.message}"
            case NeedsPayload(digests=digests):
                self.needs.update(digests)
                return None
            case found:
                assert isinstance(found.value, dict)
                return spec.undo.tool, found.value, spec.undo

    def _by_family(self, step: StepState) -> _Way | str | None:
        """Ask the tool's own family, with the call as it was made."""
        attempt: Attempt | None = self._history.last(step.path)
        if attempt is None or step.output is None:
            return "its call is not in the journal"
        absent = {one.digest for one in (attempt.input, step.output) if not one.present}
        if absent:
            self.needs |= absent
            return None
        arguments: JsonObject = {
            "tool": attempt.tool,
            "arguments": attempt.input.value,
            "output": step.output.value,
            "idempotency_key": attempt.idempotency_key,
        }
        return TAKE_BACK, arguments, None

    def _scope(self, spec: StepSpec, item: StepState | None) -> Scope:
        if item is None:
            return StateScope(self._state, self._graph)
        index = split_path(item.path)[1]
        items = self._state.steps[StepPath(spec.id)].items
        assert isinstance(index, int) and items is not None and isinstance(items.value, list)
        return _ItemScope(
            StateScope(self._state, self._graph, {"item": items.value[index], "index": index}), spec, item
        )


class _ItemScope:
    """As the task's, but the step's own output is that of one item."""

    def __init__(self, beneath: StateScope, spec: StepSpec, item: StepState) -> None:
        self._beneath = beneath
        self._bind = spec.bind
        self._item = item

    def root(self, name: str) -> Found | Absent:
        """The value behind the first word of a reference."""
        output = self._item.output
        if name != self._bind or output is None:
            return self._beneath.root(name)
        if not output.present:
            return Absent(why="elsewhere", producer=self._item.path, digest=output.digest)
        return Found(value=output.value, untrusted=output.untrusted)

    def step(self, id: str) -> Mapping[str, JsonValue] | None:
        """What `steps.<id>` shows."""
        return self._beneath.step(id)


def _step(spec: StepSpec, way: _Way, each: list[JsonObject] | None) -> StepSpec:
    """One step of the new plan. A failure is an issue: what can be taken back, is."""
    tool, arguments, said = way
    name = f"undo_{spec.id}"[:ID_CHARS_MAX]
    listed: JsonObject = {key: f"${{item[{_quoted(key)}]}}" for key in arguments}
    return StepSpec(
        id=name,
        bind=name,
        tool=tool,
        arguments=listed if each is not None else _literals(arguments),
        for_each=None if each is None else [_literals(one) for one in each],
        title=f"Undo {spec.id}",
        timeout_ms=None if said is None else said.timeout_ms,
        retry=None if said is None else said.retry,
        approve=None if said is None else said.approve,
        on_error=OnError.CONTINUE,
    )


def _quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _literals(value: JsonObject) -> JsonObject:
    return {name: _literal(inner) for name, inner in value.items()}


def _literal(value: JsonValue) -> JsonValue:
    """A value as a plan spells it: text that looks like a binding is none."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_literal(inner) for inner in value]
    return _literals(value) if isinstance(value, dict) else value


def undo_plan(state: TaskState, graph: Graph, found: Outlook) -> PlanSpec:
    """The plan of the new task; questions are asked with the values as they are."""
    scope = StateScope(state, graph)
    return PlanSpec(
        name=f"{state.plan.name[: ID_CHARS_MAX - 5]}-undo",
        title=f"Undo {state.title}".replace("${", "$${"),
        steps=tuple(_asked(step, scope) for step in found.steps),
        outputs={},
    )


def _asked(step: StepSpec, scope: Scope) -> StepSpec:
    if step.approve is None:
        return step
    title = render(compile_value(step.approve.title), scope)
    return replace(step, approve=replace(step.approve, title=str(_literal(title)), show=None))
