"""Stats: how it went over a span of hours, as history tells it. A pure function of its rows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from everstep.domain.history import RETRY, SUCCEEDED, HistoryRow, Kind
from everstep.domain.sketch import Sketch

WELL: Final = ("success", "partial")
ENDS: Final = ("success", "partial", "failed", "cancelled")
"""How a task may end, in the order in which it is shown."""


@dataclass(slots=True)
class Group:
    """Calls of a tool or a step, or tasks of a plan: how they ended, and how long those took that went well."""

    ends: Counter[str] = field(default_factory=Counter)
    well: Sketch = field(default_factory=Sketch)
    total_ms: float = 0.0
    retries: int = 0
    retry_ms: float = 0.0
    tool: str = ""

    @property
    def n(self) -> int:
        """How many ended."""
        return sum(self.ends.values())

    @property
    def success(self) -> float | None:
        """Which share ended well; what somebody cancelled is neither."""
        judged = self.n - self.ends["cancelled"]
        good = sum(self.ends[word] for word in (*WELL, SUCCEEDED))
        return good / judged if judged else None


@dataclass(slots=True)
class Stats:
    """Everything, by what it is about."""

    buckets: dict[int, Counter[str]] = field(default_factory=dict)
    """By hour: how tasks ended."""
    plans: dict[str, Group] = field(default_factory=dict)
    tools: dict[str, Group] = field(default_factory=dict)
    steps: dict[tuple[str, str], Group] = field(default_factory=dict)
    phases: dict[str, Sketch] = field(default_factory=dict)
    approvals: Counter[str] = field(default_factory=Counter)
    """How questions for approval were answered."""
    calibration: Counter[str] = field(default_factory=Counter)

    @property
    def rejects(self) -> float | None:
        """Which share of the questions for approval was rejected."""
        asked = sum(self.approvals.values())
        return self.approvals["reject"] / asked if asked else None

    @property
    def calls_ms(self) -> float:
        """All calls together."""
        return sum(group.total_ms for group in self.tools.values())


def stats_of(rows: Iterable[HistoryRow]) -> Stats:
    """Add the rows of some hours up."""
    stats = Stats()
    for row in rows:
        match row.key.kind:
            case Kind.TOOL:
                _call(stats.tools.setdefault(row.key.name, Group()), row)
                _call(stats.steps.setdefault((row.key.plan, row.key.step), Group(tool=row.key.name)), row)
                _phase(stats, "retry_wait" if row.key.outcome == RETRY else "executing", row)
            case Kind.PLAN:
                count = round(row.sketch.n)
                stats.buckets.setdefault(row.bucket, Counter())[row.key.outcome] += count
                group = stats.plans.setdefault(row.key.name, Group())
                group.ends[row.key.outcome] += count
                group.total_ms += row.sketch.total_ms
                if row.key.outcome in WELL:
                    group.well.merge(row.sketch)
            case Kind.PHASE:
                _phase(stats, row.key.name, row)
                if row.key.name == "awaiting_approval" and row.key.outcome:
                    stats.approvals[row.key.outcome] += round(row.sketch.n)
            case Kind.CALIBRATION:
                stats.calibration[row.key.outcome] += round(row.sketch.n)
    return stats


def _call(group: Group, row: HistoryRow) -> None:
    count = round(row.sketch.n)
    if row.key.outcome == RETRY:
        group.retries += count
        group.retry_ms += row.sketch.total_ms
        return
    group.ends[row.key.outcome] += count
    group.total_ms += row.sketch.total_ms
    if row.key.outcome == SUCCEEDED:
        group.well.merge(row.sketch)


def _phase(stats: Stats, name: str, row: HistoryRow) -> None:
    stats.phases.setdefault(name, Sketch()).merge(row.sketch)


def quantiles_s(sketch: Sketch, shares: Sequence[float] = (0.5, 0.9, 0.99)) -> tuple[float | None, ...]:
    """In seconds."""
    times = [sketch.quantile_ms(share) for share in shares]
    return tuple(None if ms is None else ms / 1000 for ms in times)
