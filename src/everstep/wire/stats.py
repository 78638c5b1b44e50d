"""Stats as their object (interfaces, 4.2): counts, quantiles and shares; what nobody knows is null."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from everstep.domain.history import HOUR_MS
from everstep.domain.ids import Instant
from everstep.domain.regression import Regression
from everstep.domain.sketch import Sketch
from everstep.domain.states import TaskStatus
from everstep.domain.stats import ENDS, Group, Stats, quantiles_s
from everstep.domain.task import TaskState
from everstep.domain.timeline import ORDER, Leg, Timeline
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.times import to_text

K = TypeVar("K")

STEPS_SHOWN: Final = 20
DAY: Final = 24
HOURLY_MAX: Final = 48
"""Spans of so many hours are told by the hour, longer ones by the day."""


def stats_json(
    stats: Stats, hours: int, *, now: Mapping[str, int], slow: Iterable[Regression], as_of: Instant
) -> JsonObject:
    """Everything over the last `hours`."""
    approvals = stats.phases.get("awaiting_approval", Sketch())
    calls, tasks = _all(stats.tools), _all(stats.plans)
    judged = sum(stats.calibration.values())
    return {
        "hours": hours,
        "as_of": to_text(as_of),
        "tasks": {
            "now": {status.value: now.get(status.value, 0) for status in TaskStatus},
            "ended": {word: tasks.ends[word] for word in ENDS},
            "success": _rounded(tasks.success),
            "buckets": _buckets(stats.buckets, hours),
        },
        "calls": {"n": calls.n, "success": _rounded(calls.success), "retries": calls.retries},
        "plans": [_group({"plan": name}, one) for name, one in _by_time(stats.plans)],
        "tools": [_group({"tool": name}, one, stats.calls_ms) for name, one in _by_time(stats.tools)],
        "steps": [
            _group({"plan": place[0], "step": place[1], "tool": one.tool}, one, stats.calls_ms)
            for place, one in _by_time(stats.steps)[:STEPS_SHOWN]
        ],
        "phases": _phases(stats.phases),
        "approval_wait": {**_times(approvals), "rejects": _rounded(stats.rejects)},
        "regressions": [regression_json(one) for one in slow],
        "calibration": {"covered": _rounded(stats.calibration["covered"] / judged if judged else None), "n": judged},
    }


def report_json(timeline: Timeline, state: TaskState, legs: Iterable[Leg]) -> JsonObject:
    """Where the time of one task went."""
    way = [*legs]
    slowest = max(way, key=lambda leg: leg.took_ms, default=None)
    wall = timeline.wall_ms
    return {
        "task": state.id,
        "plan": state.plan.name,
        "status": state.status.value,
        "wall_s": _seconds(wall),
        "phases": [
            {"phase": name, "total_s": _seconds(timeline.phases[name]), "share": _share(timeline.phases[name], wall)}
            for name in ORDER
            if name in timeline.phases
        ],
        "tools": [
            {"tool": tool, "total_s": _seconds(ms), "share": _share(ms, wall)}
            for tool, ms in sorted(timeline.tools.items(), key=lambda one: -one[1])
        ],
        "critical_path": [
            {"step": leg.step, "tool": leg.tool, "waited_s": _seconds(leg.waited_ms), "took_s": _seconds(leg.took_ms)}
            for leg in way
        ],
        "slowest_step": None if slowest is None else slowest.step,
    }


def regression_json(one: Regression) -> JsonObject:
    """A step that has become slower."""
    return {
        "plan": one.plan,
        "step": one.step,
        "tool": one.tool,
        "before_s": round(one.before_s, 6),
        "now_s": round(one.now_s, 6),
        "ratio": _rounded(one.ratio),
        "p": one.p,
    }


def _group(name: JsonObject, group: Group, of_ms: float | None = None) -> JsonObject:
    p50, p90, p99 = quantiles_s(group.well)
    said: JsonObject = {**name, "n": group.n, "success": _rounded(group.success), "p50": p50, "p90": p90, "p99": p99}
    said["total_s"] = _seconds(group.total_ms)
    if of_ms is not None:
        said |= {"share": _share(group.total_ms, of_ms), "retries": group.retries, "ends": {**group.ends}}
    else:
        said["ends"] = {word: group.ends[word] for word in ENDS}
    return said


def _all(groups: Mapping[str, Group]) -> Group:
    whole = Group()
    for group in groups.values():
        whole.ends.update(group.ends)
        whole.retries += group.retries
    return whole


def _by_time(groups: Mapping[K, Group]) -> list[tuple[K, Group]]:
    return sorted(groups.items(), key=lambda one: (-one[1].total_ms, str(one[0])))


def _buckets(hours: Mapping[int, Counter[str]], span: int) -> list[JsonValue]:
    width = 1 if span <= HOURLY_MAX else DAY
    wide: dict[int, Counter[str]] = {}
    for hour, ends in hours.items():
        wide.setdefault(hour - hour % width, Counter()).update(ends)
    return [
        {"at": to_text(Instant(hour * HOUR_MS)), "hours": width, **{word: ends[word] for word in ENDS}}
        for hour, ends in sorted(wide.items())
    ]


def _phases(phases: Mapping[str, Sketch]) -> list[JsonValue]:
    whole = sum(sketch.total_ms for sketch in phases.values())
    named = sorted(phases.items(), key=lambda one: -one[1].total_ms)
    return [{"phase": name, **_times(sketch), "share": _share(sketch.total_ms, whole)} for name, sketch in named]


def _times(sketch: Sketch) -> JsonObject:
    p50, p90 = quantiles_s(sketch, (0.5, 0.9))
    return {"n": round(sketch.n), "total_s": _seconds(sketch.total_ms), "p50": p50, "p90": p90}


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def _seconds(ms: float) -> float:
    return round(ms / 1000, 3)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
