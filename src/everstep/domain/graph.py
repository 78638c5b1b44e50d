"""Order: which step waits for which, and which are ready. A pure function of plan and journal.

A plan is wired once: its bindings are compiled and its dependencies worked out. Three kinds of dependency:
*order* (the step above) and *optional* (inside `default(…)`, through `steps.`) are met by any end; *required*
(`needs`, and every other reference to an output) only by a result.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from everstep.domain.bindings import Compiled, compile_value, references
from everstep.domain.detour import source_of
from everstep.domain.events import SkipReason
from everstep.domain.ids import PARTS, StepPath, item_path, split_path
from everstep.domain.lookup import RESOURCE_TOOL
from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.record import record
from everstep.domain.resources import as_called, parts_of, wanted
from everstep.domain.states import ENDED, StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject


@record
class Wired:
    """One step with everything compiled."""

    spec: StepSpec
    path: StepPath
    arguments: Compiled
    when: Compiled
    when_uses_item: bool
    for_each: Compiled | None
    title: Compiled
    fallbacks: tuple[Compiled, ...]
    """Arguments, or the literal value, of each."""
    waits_for: tuple[StepPath, ...]
    required: tuple[StepPath, ...]
    parts: "dict[str, Wired]"
    """What it consists of, if it reads resources beside its call; nothing for most."""


@record
class Graph:
    """A plan, ready to be walked."""

    plan: PlanSpec
    steps: tuple[Wired, ...]
    final: tuple[Wired, ...]
    by_id: dict[str, Wired]
    tools: frozenset[str]
    binds: dict[str, str]
    outputs: dict[str, Compiled]
    done_when: Compiled | None


def wire_plan(plan: PlanSpec) -> Graph:
    """Compile a checked plan."""
    binds = {step.bind: step.id for step in (*plan.steps, *plan.finally_steps)}
    steps = tuple(_wire(plan.steps, binds))
    final = tuple(_wire(plan.finally_steps, binds))
    return Graph(
        plan=plan,
        steps=steps,
        final=final,
        by_id={wired.spec.id: wired for wired in (*steps, *final)},
        tools=frozenset(_tools(wired.spec for wired in (*steps, *final))),
        binds=binds,
        outputs={name: compile_value(value) for name, value in plan.outputs.items()},
        done_when=None if plan.done_when is None else compile_value(plan.done_when),
    )


def grown(known: Graph | None, plan: PlanSpec) -> Graph:
    """The graph of a durable function's calls so far; what was wired before is not wired again."""
    if known is None or plan.steps[: len(known.steps)] != known.plan.steps:
        return wire_plan(plan)
    more = tuple(_wire_step(spec, None, {}) for spec in plan.steps[len(known.steps) :])
    known.by_id.update((wired.spec.id, wired) for wired in more)
    known.binds.update((wired.spec.bind, wired.spec.id) for wired in more)
    tools = known.tools.union(_tools(wired.spec for wired in more))
    return replace(known, plan=plan, steps=(*known.steps, *more), tools=tools)


def _tools(specs: Iterable[StepSpec]) -> Iterator[str]:
    """Of steps, their fallbacks and what reads their resources."""
    for spec in specs:
        named = (spec.tool, *(other.tool for other in spec.fallback), RESOURCE_TOOL if spec.resources else None)
        yield from (tool for tool in named if tool is not None)


def _wire(specs: Iterable[StepSpec], binds: dict[str, str]) -> Iterator[Wired]:
    above: str | None = None
    for spec in specs:
        yield _wire_step(spec if spec.tool is not None else as_called(spec), above, binds)
        above = spec.id


def _wire_step(spec: StepSpec, above: str | None, binds: dict[str, str]) -> Wired:
    arguments = compile_value(spec.arguments)
    when = compile_value(spec.when)
    for_each = None if spec.for_each is None else compile_value(spec.for_each)
    also: JsonObject = {
        "approve": [spec.approve.title, spec.approve.show] if spec.approve else None,
        "fallback": [[dict(other.arguments or {}), other.value] for other in spec.fallback],
        "resources": [wanted(resource) for resource in spec.resources],
    }
    required = set(spec.needs or ())
    optional: set[str] = {above} if spec.needs is None and above is not None else set()
    for compiled in (arguments, when, for_each, compile_value(also)):
        if compiled is None:
            continue
        for reference in references(compiled):
            step = _source(reference.root, reference.path, binds)
            if step is not None:
                (optional if reference.optional else required).add(step)
    required.discard(spec.id)
    optional.discard(spec.id)
    return Wired(
        spec=spec,
        path=StepPath(spec.id),
        arguments=arguments,
        when=when,
        when_uses_item=any(reference.root in ("item", "index") for reference in references(when)),
        for_each=for_each,
        title=compile_value(spec.title or ""),
        fallbacks=tuple(compile_value(one.value if one.tool is None else one.arguments or {}) for one in spec.fallback),
        waits_for=tuple(StepPath(step) for step in sorted(required | optional)),
        required=tuple(StepPath(step) for step in sorted(required)),
        parts=_wire_parts(spec, binds) if spec.resources else {},
    )


def _wire_parts(spec: StepSpec, binds: dict[str, str]) -> dict[str, Wired]:
    parts = {name: _wire_step(part, None, binds) for name, part in parts_of(spec).items()}
    return {name: replace(wired, path=item_path(spec.id, name)) for name, wired in parts.items()}


def _source(root: str, path: tuple[str | int, ...], binds: dict[str, str]) -> str | None:
    """The step a reference reads from, if it reads from one."""
    if root == "steps":
        return str(path[0]) if path else None
    return binds.get(root)


@record
class Blocked:
    """A required producer gives nothing: the step is skipped, or, if somebody decided so, asked about."""

    upstream: StepPath
    ask: bool


def blocked(wired: Wired, state: TaskState) -> Blocked | None:
    """Whether a required producer ended without a result."""
    for path in wired.required:
        producer = state.steps[path]
        if producer.status is StepStatus.FAILED:
            return Blocked(upstream=path, ask=False)
        if producer.status is StepStatus.SKIPPED:
            return Blocked(upstream=path, ask=producer.skip_reason is SkipReason.REQUESTED)
    return None


def arguments_in_force(wired: Wired, step: StepState) -> Compiled:
    """The arguments of the tool in force, but for those an answer has given; or the literal value of a fallback."""
    number = 0 if step.detour is None else step.detour.fallback
    if not step.arguments:
        return wired.fallbacks[number - 1] if number else wired.arguments
    said = source_of(wired.spec, step.detour).arguments or {}
    return compile_value({name: value for name, value in said.items() if name not in step.arguments})


def ready(wired: Wired, state: TaskState) -> bool:
    """Whether all it waits for has ended, one way or another."""
    steps = state.steps
    for path in wired.waits_for:  # noqa: SIM110 -- asked for every step of every lap
        if steps[path].status not in ENDED:
            return False
    return True


def items_of(state: TaskState, path: StepPath) -> list[StepState]:
    """The items, or the parts, of a step that have begun, in order."""
    every = (*range(state.steps[path].items_next), *PARTS)
    found = (state.steps.get(item_path(path, item)) for item in every)
    return [item for item in found if item is not None]


def first_gap(state: TaskState, step: str, index: int) -> int:
    """The next item, from `index` on, that has no state yet."""
    while item_path(step, index) in state.steps:
        index += 1
    return index


def lent_places(state: TaskState) -> int:
    """Places of steps under way that wait for a producer: it may have them meanwhile."""
    waits = (split_path(path)[0] for path, producer in state.awaiting.items() if not state.steps[producer].ended)
    return len(set(waits))


def places(plan: PlanSpec) -> int:
    """How many steps may be under way at the same time."""
    return plan.parallel or 1
