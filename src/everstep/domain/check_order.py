"""Who waits for whom: unknown needs, steps that would have to run before themselves, circles.

Two kinds of edges. *Firm*: `needs`, or the step above. *Data*: references, which add their source. A reference that
runs against the firm order is named where it stands (`later_step`); circles of any other make are named as such.
Sets of steps are bits of one number, so 500 steps cost a few thousand operations.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

from everstep.domain.findings import Findings
from everstep.domain.plan import PlanSpec, StepSpec
from everstep.domain.record import record

_CIRCLES_MAX: Final = 10
_NAMES_SHOWN: Final = 8


@record
class Use:
    """A step uses the output, or the end, of another one. Steps by index, `finally` counted on."""

    user: int
    source: int
    path: str
    span: tuple[int, int]


def check_order(plan: PlanSpec, uses: Iterable[Use], found: Findings) -> None:
    """Everything about waiting."""
    steps = (*plan.steps, *plan.finally_steps)
    firm = _firm_edges(plan, found)
    _report_circles(plan, firm, {}, found)
    before = _ancestors(firm)
    edges = [set(sources) for sources in firm]
    places: dict[tuple[int, int], Use] = {}
    for use in uses:
        if use.user == use.source or before[use.source] >> use.user & 1:
            found.add("later_step", use.path, _against(steps, use), span=use.span)
        elif use.source not in edges[use.user]:
            edges[use.user].add(use.source)
            places[use.user, use.source] = use
    if places:
        _report_circles(plan, edges, places, found)


def _against(steps: tuple[StepSpec, ...], use: Use) -> str:
    if use.user == use.source:
        return f"'{steps[use.user].id}' cannot use its own output"
    return f"'{steps[use.source].id}' does not run before '{steps[use.user].id}'"


def _firm_edges(plan: PlanSpec, found: Findings) -> list[set[int]]:
    """For each step those it waits for by `needs` or position."""
    ids = {step.id: at for at, step in reversed([*enumerate((*plan.steps, *plan.finally_steps))])}
    edges: list[set[int]] = []
    for at, step in enumerate(plan.steps):
        above = {at - 1} if at else set()
        edges.append(above if step.needs is None else _needed(step, f"/steps/{at}", ids, found))
    everything = set(range(len(plan.steps)))
    for at, step in enumerate(plan.finally_steps):
        named = _needed(step, f"/finally/{at}", ids, found)
        edges.append(named | everything | ({len(edges) - 1} if edges else set()))
    return edges


def _needed(step: StepSpec, path: str, ids: dict[str, int], found: Findings) -> set[int]:
    known: set[int] = set()
    for number, name in enumerate(step.needs or ()):
        if name in ids:
            known.add(ids[name])
        else:
            guess = found.guess("step", name, ids)
            found.add("unknown_step", f"{path}/needs/{number}", f"no step '{name}'", suggestion=guess)
    return known


def _ancestors(edges: list[set[int]]) -> list[int]:
    """For each step everything it waits for, as bits; steps in a circle wait for nothing here."""
    before = [0] * len(edges)
    for at in _sorted(edges):
        for source in edges[at]:
            before[at] |= before[source] | 1 << source
    return before


def _sorted(edges: list[set[int]]) -> list[int]:
    """Steps with all they wait for before them; those in a circle, and behind one, are left out."""
    waiting = [len(sources) for sources in edges]
    users: list[list[int]] = [[] for _ in edges]
    for at, sources in enumerate(edges):
        for source in sources:
            users[source].append(at)
    order = [at for at, count in enumerate(waiting) if count == 0]
    for at in order:
        for user in users[at]:
            waiting[user] -= 1
            if waiting[user] == 0:
                order.append(user)
    return order


def _report_circles(plan: PlanSpec, edges: list[set[int]], places: dict[tuple[int, int], Use], found: Findings) -> None:
    """Name circles one by one, cutting each where it was named.

    `places` tells which edges are references; without any, the circle is made of `needs`.
    """
    steps = (*plan.steps, *plan.finally_steps)
    edges = [set(sources) for sources in edges]
    for _ in range(_CIRCLES_MAX):
        circle = _circle(edges)
        if not circle:
            return
        pairs = list(pairwise(circle))
        message = f"these wait for each other: {_listed([steps[at].id for at in circle])}"
        user, source = next((pair for pair in pairs if pair in places), _by_needs(pairs, steps))
        if (user, source) in places:
            use = places[user, source]
            found.add("cycle", use.path, message, span=use.span)
        elif not places:
            found.add("cycle", f"{path_of(user, plan)}/needs", message)
        edges[user].discard(source)


def _by_needs(pairs: list[tuple[int, int]], steps: tuple[StepSpec, ...]) -> tuple[int, int]:
    """The last edge of a circle that somebody wrote down; position alone makes no circle."""
    return next(pair for pair in reversed(pairs) if steps[pair[0]].needs is not None)


def _listed(names: list[str]) -> str:
    shown = names if len(names) <= _NAMES_SHOWN else [*names[: _NAMES_SHOWN - 2], "…", names[-1]]
    return " → ".join(shown)


def path_of(at: int, plan: PlanSpec) -> str:
    """The path of a step by its index, `finally` counted on."""
    count = len(plan.steps)
    return f"/steps/{at}" if at < count else f"/finally/{at - count}"


def _circle(edges: list[set[int]]) -> list[int]:
    """One circle, its first step repeated at the end; empty if there is none."""
    done = frozenset(_sorted(edges))
    start = next((at for at in range(len(edges)) if at not in done), None)
    if start is None:
        return []
    trail = [start]
    seen = {start: 0}
    while True:
        at = min(source for source in edges[trail[-1]] if source not in done)
        if at in seen:
            return [*trail[seen[at] :], at]
        seen[at] = len(trail)
        trail.append(at)
