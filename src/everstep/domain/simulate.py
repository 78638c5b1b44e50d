"""What is left of a task, played through many times: the plan's order, its places, retries, the unequal luck of calls.

Deterministic: every step draws each of its equally likely times once, in an order of its own. So a few hundred futures
are as good as thousands of dice, and the same state gives the same estimate.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from heapq import heapify, heappop, heappush
from math import exp
from typing import Final

from everstep.domain.estimate import DRAWS, Estimate, Span, scores
from everstep.domain.ids import StepPath
from everstep.domain.progress import Progress
from everstep.domain.record import record

ORDERS: Final = (1, 7, 9, 23, 354, 714, 82, 452, 91, 850, 1825, 492, 497, 1198, *range(2000, 2047))
"""Different orders of draws; more steps than that begin again. The first ones were chosen: hardly any two of them agree
or contradict each other, so that a few steps vary as much together as they should."""
WORK_MAX: Final = 6_400
"""Steps times futures where places are short: of longer plans fewer futures are played …"""
PLAYED_MIN: Final = 32
"""… but so many at least."""
ITEMS_PLAYED: Final = 40
"""More items than that are taken together: their sum is what counts."""


@record
class Left:
    """A step that has not ended: what one call takes, how many calls, how many at a time, what it waits for."""

    path: StepPath
    span: Span
    kind: str
    """Calls of one kind are off together."""
    calls: int = 1
    at_once: int = 1
    under_way: tuple[Span, ...] = ()
    """What is left of calls that have begun."""
    waits_for: tuple[StepPath, ...] = ()
    holds_place: bool = False
    """Whether it has begun."""


@record
class Outlook:
    """What is to be expected: of the task, and of each step that has not ended."""

    task: Estimate
    steps: dict[StepPath, Estimate]
    progress: Progress | None = None


@cache
def order(number: int) -> tuple[int, ...]:
    """The draws in an order of their own: shuffled by a generator that repeats."""
    places = list(range(DRAWS))
    state = (number * 2_654_435_761 + 12_345) & 0xFFFFFFFF
    for last in range(DRAWS - 1, 0, -1):
        state = (state * 1_664_525 + 1_013_904_223) & 0xFFFFFFFF
        other = (state >> 8) % (last + 1)
        places[last], places[other] = places[other], places[last]
    return tuple(places)


def outlook(steps: Sequence[Left], places: int) -> Outlook:
    """The futures of these steps, in plan order, so many at a time."""
    orders = _Orders()
    futures = {step.path: _futures(step, orders) for step in steps}
    total = _line(futures.values()) if places <= 1 else _together(steps, futures, places)
    found = {step.path: estimate_of(futures[step.path], [step]) for step in steps}
    return Outlook(task=estimate_of(total, steps), steps=found)


def estimate_of(futures: Sequence[float], steps: Sequence[Left]) -> Estimate:
    """Quantiles of futures, and what they rest on: the least of all that is known."""
    ordered = sorted(futures)
    low, middle, high = (ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.1, 0.5, 0.9))
    bases = {step.span.basis for step in steps}
    basis = "mixed" if len(bases) > 1 else next(iter(bases), "history")
    n = min((step.span.n for step in steps), default=0)
    return Estimate(p10=round(low, 3), p50=round(middle, 3), p90=round(high, 3), basis=basis, n=n)


class _Orders:
    """Which order of draws comes next, and how far off each kind of call is, future by future."""

    def __init__(self) -> None:
        self._next = 0
        self._off: dict[str, list[float]] = {}
        self._guessed: dict[str, tuple[int, ...]] = {}

    def take(self) -> tuple[int, ...]:
        self._next += 1
        return order(ORDERS[self._next % len(ORDERS)])

    def for_calls(self, step: Left) -> tuple[int, ...]:
        """A guess is right or wrong for all calls of its kind; what was seen varies from call to call."""
        if step.span.basis != "prior":
            return self.take()
        if step.kind not in self._guessed:
            self._guessed[step.kind] = self.take()
        return self._guessed[step.kind]

    def off(self, step: Left) -> list[float] | None:
        if step.span.spread <= 0:
            return None
        found = self._off.get(step.kind)
        if found is None:
            spread, normal = step.span.spread, scores()
            found = self._off[step.kind] = [exp(spread * normal[draw]) for draw in self.take()]
        return found


def _futures(step: Left, orders: _Orders) -> list[float]:
    """How long one step takes, in every future."""
    rest = [_calls(span, step, orders) for span in step.under_way]
    fresh = step.calls - len(rest)
    off = orders.off(step)
    if step.calls <= 1:
        (times,) = rest or [_calls(step.span, step, orders)]
    elif step.calls <= ITEMS_PLAYED:
        rest += [_calls(step.span, step, orders) for _ in range(fresh)]
        times = [_packed(future, step.at_once) for future in zip(*rest, strict=True)]
    else:
        times = _many(step, rest, fresh, orders)
    return times if off is None else [one * much for one, much in zip(times, off, strict=True)]


def _calls(span: Span, step: Left, orders: _Orders) -> list[float]:
    """One call with its retries, in every future."""
    times = [span.times_s[draw] for draw in orders.for_calls(step)]
    share = step.span.retry_share
    if share > 0:
        lost, loss = step.span.lost_s, orders.take()
        for future, draw in enumerate(orders.take()):
            luck = (draw + 0.5) / DRAWS
            turn = loss[future]
            while luck < share:
                times[future] += lost[turn % len(lost)]
                luck /= share
                turn += 7
    return times


def _packed(times: Sequence[float], at_once: int) -> float:
    """When the last of them ends, if so many go at a time, in order."""
    if at_once <= 1:
        return sum(times)
    lanes = [0.0] * min(at_once, len(times))
    for one in times:
        heappush(lanes, heappop(lanes) + one)
    return max(lanes)


def _many(step: Left, rest: list[list[float]], fresh: int, orders: _Orders) -> list[float]:
    """Many alike calls: their mean counts, and a little luck."""
    times = step.span.times_s
    mean = sum(times) / DRAWS
    deviation = (sum((one - mean) ** 2 for one in times) / DRAWS) ** 0.5
    share = step.span.retry_share
    mean += share / (1 - share) * sum(step.span.lost_s) / len(step.span.lost_s)
    lanes = max(1, min(step.at_once, fresh))
    normal = scores()
    whole = [max(0.0, fresh * mean + deviation * fresh**0.5 * normal[draw]) / lanes for draw in orders.take()]
    for under_way in rest:
        whole = [one + more / lanes for one, more in zip(whole, under_way, strict=True)]
    if lanes > 1:  # the last one ends alone
        whole = [one + times[draw] * (lanes - 1) / (2 * lanes) for one, draw in zip(whole, orders.take(), strict=True)]
    return whole


def _line(futures: Iterable[list[float]]) -> list[float]:
    """One after the other."""
    total = [0.0] * DRAWS
    for times in futures:
        total = [one + more for one, more in zip(total, times, strict=True)]
    return total


def _together(steps: Sequence[Left], futures: Mapping[StepPath, list[float]], places: int) -> list[float]:
    """Several at a time: each begins when all it waits for has ended and there is a place, in plan order."""
    if places >= len(steps):
        return _free(steps, futures)
    stage = _Stage(steps, places)
    played = max(PLAYED_MIN, min(DRAWS, WORK_MAX // len(steps)))
    columns = [futures[step.path] for step in steps]
    return [stage.play([column[future] for column in columns]) for future in range(0, DRAWS, -(-DRAWS // played))]


def _free(steps: Sequence[Left], futures: Mapping[StepPath, list[float]]) -> list[float]:
    """There is a place for everyone."""
    ends: dict[StepPath, list[float]] = {}
    total = [0.0] * DRAWS
    for step in steps:
        begins = [ends[path] for path in step.waits_for if path in ends]
        times = futures[step.path]
        if begins:
            times = [max(ready) + one for *ready, one in zip(*begins, times, strict=True)]
        ends[step.path] = times
        total = [max(one, other) for one, other in zip(total, times, strict=True)]
    return total


class _Stage:
    """Who waits for whom, by number, so that one future after the other can be played."""

    def __init__(self, steps: Sequence[Left], places: int) -> None:
        numbers = {step.path: number for number, step in enumerate(steps)}
        self._places = places
        self._begun = [number for number, step in enumerate(steps) if step.holds_place]
        self._waits = [sum(path in numbers for path in step.waits_for) for step in steps]
        self._frees: list[list[int]] = [[] for _ in steps]
        for number, step in enumerate(steps):
            for path in step.waits_for:
                if path in numbers:
                    self._frees[numbers[path]].append(number)

    def play(self, times: list[float]) -> float:
        """When the last one ends."""
        waits = self._waits.copy()
        running = [(times[number], number) for number in self._begun]
        heapify(running)
        ready = [number for number, count in enumerate(waits) if not count and number not in self._begun]
        now = 0.0
        while ready or running:
            while ready and len(running) < self._places:
                number = heappop(ready)
                heappush(running, (now + times[number], number))
            now, ended = heappop(running)
            for number in self._frees[ended]:
                waits[number] -= 1
                if not waits[number] and number not in self._begun:
                    heappush(ready, number)
        return now
