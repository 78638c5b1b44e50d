"""The effects ledger: per effect what was expected, what was made in the world, and what the engine says afterwards.

It knows no engine. Expectations come from the plan, `made` from the rig that the effects arrive at, `recorded` from
whatever the judged engine tells after its last crash; so the same ledger serves every engine, and the demos.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Expected:
    """An effect that the plan asks for. One that is `repeatable` harms nobody when it is made again."""

    name: str
    repeatable: bool = False
    times: int = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """The three numbers of one effect, and how often somebody decided that it be made (again)."""

    effect: Expected
    expected: int
    made: int
    recorded: int
    decisions: int = 0
    asked: int = 0

    @property
    def lost(self) -> bool:
        """Expected, but never made."""
        return self.made < self.expected

    @property
    def doubled(self) -> bool:
        """Made more than once, and nobody decided so."""
        return not self.effect.repeatable and self.made > self.expected + self.decisions

    @property
    def dark(self) -> bool:
        """Made, but the engine does not know it."""
        return self.made > 0 and self.recorded == 0


@dataclass(frozen=True, slots=True)
class Ledger:
    """All effects of one trial."""

    entries: tuple[Entry, ...]
    unexpected: tuple[str, ...] = field(default=())
    """Made, but asked for by no plan."""

    @property
    def lost(self) -> tuple[str, ...]:
        return tuple(entry.effect.name for entry in self.entries if entry.lost)

    @property
    def doubled(self) -> tuple[str, ...]:
        return tuple(entry.effect.name for entry in self.entries if entry.doubled)

    @property
    def dark(self) -> tuple[str, ...]:
        return (*(entry.effect.name for entry in self.entries if entry.dark), *self.unexpected)

    @property
    def asked(self) -> int:
        """How often a person was asked."""
        return sum(entry.asked for entry in self.entries)

    def as_json(self) -> dict[str, Any]:
        """For results and reports."""
        return {"lost": self.lost, "doubled": self.doubled, "dark": self.dark, "asked": self.asked}


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each effect, by its name, was made, recorded, asked about, and decided to be made once more."""

    made: Mapping[str, int]
    recorded: Mapping[str, int]
    asked: Mapping[str, int] = field(default_factory=dict)
    decisions: Mapping[str, int] = field(default_factory=dict)


def settle(expected: Iterable[Expected], counts: Counts) -> Ledger:
    """Hold what was counted against what was expected."""
    entries = tuple(_entries(expected, counts))
    known = {entry.effect.name for entry in entries}
    return Ledger(entries, tuple(sorted(name for name, made in counts.made.items() if made and name not in known)))


def _entries(expected: Iterable[Expected], counts: Counts) -> Iterator[Entry]:
    for effect in expected:
        yield Entry(
            effect=effect,
            expected=effect.times,
            made=counts.made.get(effect.name, 0),
            recorded=counts.recorded.get(effect.name, 0),
            decisions=counts.decisions.get(effect.name, 0),
            asked=counts.asked.get(effect.name, 0),
        )
