"""What a call used, as its tool reports it: kept with every attempt, failed ones included."""

from dataclasses import dataclass, field
from typing import ClassVar

from everstep.domain.ids import Digest
from everstep.domain.record import record
from everstep.domain.values import INTEGER_MAX, JsonObject


@record
class Measured:
    """What the engine saw a process of a call use, and what held it."""

    cpu_s: float = 0.0
    memory_peak_bytes: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    files_open: int | None = None
    containment: JsonObject | None = None


@record
class Usage:
    """What one attempt reported; no report of tokens is None, not zero."""

    cost: float = 0.0
    tokens_in: int | None = None
    tokens_out: int | None = None
    counts: dict[str, float] = field(default_factory=dict)
    measured: Measured | None = None


@dataclass(slots=True)
class Meter:
    """Adds up the reports of a running call."""

    cost: float = 0.0
    tokens_in: int | None = None
    tokens_out: int | None = None
    counts: dict[str, float] = field(default_factory=dict)
    measured: Measured | None = None

    def add(
        self, cost: float | None, tokens_in: int | None, tokens_out: int | None, counts: dict[str, float | None]
    ) -> None:
        """One more report; ValueError for what is no amount."""
        for name, amount in {"cost": cost, "tokens_in": tokens_in, "tokens_out": tokens_out, **counts}.items():
            if amount is not None and not _is_amount(amount):
                raise ValueError(f"usage: {name} must be a number from 0 to 2^53, not {amount!r}")
        self.cost += cost or 0.0
        self.tokens_in = _sum(self.tokens_in, tokens_in)
        self.tokens_out = _sum(self.tokens_out, tokens_out)
        for name, amount in counts.items():
            self.counts[name] = self.counts.get(name, 0) + (amount or 0)

    def read(self) -> Usage:
        """What was reported so far."""
        return Usage(
            cost=self.cost,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            counts=dict(self.counts),
            measured=self.measured,
        )


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= INTEGER_MAX


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more


@record
class Noted:
    """Something of an attempt that changes nothing by itself."""


@record
class ArtifactAdded(Noted):
    """It left bytes beside its output; said in the commit of its end."""

    TYPE: ClassVar = "artifact.added"
    attempt: int
    name: str
    digest: Digest
    media_type: str
    bytes: int
