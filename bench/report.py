"""Rounds into medians, medians into ratios, ratios against floors. Absolute rates are shown, never asserted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.kept import Figure

NAMES = {"seq": "one task", "100": "100 tasks in flight", "1000": "1,000 tasks in flight"}
FLOORS = {"seq": 0.6, "100": 0.5, "1000": 0.0}
"""Steps per second as a share of the reference of the same minute; nothing is promised for a thousand."""
CEILINGS = {"import_ms": 150.0, "help_ms": 250.0, "rss_mb": 60.0}


@dataclass(frozen=True)
class Pair:
    """The reference, the bare walk and our cell, measured one right after the other."""

    reference: dict[str, Any]
    walk: dict[str, Any]
    ours: dict[str, Any]

    @property
    def ratio(self) -> float:
        return float(self.ours["steps_s"] / self.reference["steps_s"])

    @property
    def walked(self) -> float:
        """What the rules of the journal alone leave of the reference."""
        return float(self.walk["steps_s"] / self.reference["steps_s"])


@dataclass(frozen=True)
class Spread:
    """A median with its range."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        ordered = sorted(values)
        return cls(median(ordered), ordered[0], ordered[-1])

    def show(self, digits: int) -> str:
        return f"{self.median:,.{digits}f} ({self.low:,.{digits}f}-{self.high:,.{digits}f})"


SHOWN = (("steps_s", 0), ("p50_ms", 2), ("p99_ms", 2), ("cpu_ms_step", 3))


def lines(cells: dict[str, list[Pair]], single: dict[str, float]) -> Iterator[str]:
    """The table for people."""
    yield f"{'cell':<6}{'who':<11}{'steps/s':>26}{'p50 ms':>22}{'p99 ms':>24}{'CPU ms/step':>24}"
    for cell, pairs in cells.items():
        for who in ("reference", "walk", "ours"):
            spreads = [Spread.of(getattr(pair, who)[name] for pair in pairs).show(digits) for name, digits in SHOWN]
            yield f"{cell:<6}{who:<11}{spreads[0]:>26}{spreads[1]:>22}{spreads[2]:>24}{spreads[3]:>24}"
        ratio = Spread.of(pair.ratio for pair in pairs)
        yield f"{cell:<6}{'bare walk':<11}{Spread.of(pair.walked for pair in pairs).show(2):>26}"
        yield f"{cell:<6}{'ratio':<11}{ratio.show(2):>26}   floor {FLOORS[cell]}"
    for name, value in single.items():
        bound = f"   at most {CEILINGS[name]:g}" if name in CEILINGS else ""
        yield f"{name:<22}{value:>12.3f}{bound}"


def figures(cells: dict[str, list[Pair]], single: dict[str, float]) -> Iterator[Figure]:
    """The same to keep."""
    for cell, pairs in cells.items():
        ratio = Spread.of(pair.ratio for pair in pairs)
        ours = Spread.of(pair.ours["steps_s"] for pair in pairs)
        floor = FLOORS[cell]
        yield Figure(f"{NAMES[cell]}, share of the writer", ratio.show(2), f"≥ {floor}", ratio.median >= floor)
        walked = Spread.of(pair.walked for pair in pairs)
        yield Figure(
            f"{NAMES[cell]}, the journal's rules alone (`bench.bare_walk`), share of the writer", walked.show(2)
        )
        yield Figure(f"{NAMES[cell]}, steps a second", ours.show(0))
        yield Figure(f"{NAMES[cell]}, CPU ms a step", Spread.of(pair.ours["cpu_ms_step"] for pair in pairs).show(3))
    for name, value in single.items():
        most = CEILINGS.get(name)
        target, met = (f"≤ {most:g}", value <= most) if most is not None else ("", None)
        yield Figure(name, f"{value:.3g}", target, met)


def failures(cells: dict[str, list[Pair]], single: dict[str, float]) -> Iterator[str]:
    """What is below its floor or above its ceiling."""
    for cell, pairs in cells.items():
        ratio = Spread.of(pair.ratio for pair in pairs).median
        if ratio < FLOORS[cell]:
            yield f"cell {cell}: {ratio:.2f} of the reference, the floor is {FLOORS[cell]}"
    for name, most in CEILINGS.items():
        if single[name] > most:
            yield f"{name}: {single[name]:.1f}, at most {most:g}"
