"""Paces: how much of each rate is in use, as far as this engine's own calls tell. The store keeps the rate itself."""

from collections import deque
from collections.abc import Mapping

from everstep.domain.ids import Instant
from everstep.domain.rate import Rate


class Paces:
    """The turns that were given out last; those of a period that is over are forgotten."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[Rate, deque[Instant]]] = {}

    def note(self, provider: str, rate: Rate | None, turn: Instant | None, now: Instant) -> None:
        """A call has a place in the line."""
        if rate is None or turn is None:
            return
        _, turns = self._turns.get(provider, (rate, deque[Instant]()))
        self._turns[provider] = rate, turns
        turns.append(turn)
        while turns[0] <= now - rate.period_ms:
            turns.popleft()

    def figures(self, settled: Mapping[str, Rate], now: Instant) -> Mapping[str, tuple[Rate, int, int]]:
        """Of every provider in the settings or called: its rate, calls in the last period, calls that wait."""
        known = {name: (rate, 0, 0) for name, rate in settled.items()}
        for name, (rate, turns) in self._turns.items():
            used = sum(now - rate.period_ms < turn <= now for turn in turns)
            known[name] = rate, used, sum(turn > now for turn in turns)
        return known
