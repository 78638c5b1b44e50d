"""How much of this door one owner may hold open at a time."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from everstep.domain.errors import LimitExceeded


class Turns:
    """Calls and streams that are open, by owner."""

    def __init__(self, *, calls: int, streams: int) -> None:
        self._most = {"calls": calls, "streams": streams}
        self._open: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def call(self, owner: str) -> Iterator[None]:
        """One call more; raises LimitExceeded."""
        with self._one("calls", owner):
            yield

    @contextmanager
    def stream(self, owner: str) -> Iterator[None]:
        """One stream more; raises LimitExceeded."""
        with self._one("streams", owner):
            yield

    @contextmanager
    def _one(self, what: str, owner: str) -> Iterator[None]:
        most = self._most[what]
        if self._open[what, owner] >= most:
            raise LimitExceeded(
                f"{most} {what} are open already",
                code="rate_limited",
                what_to_do="wait until one has ended",
                details={"limit": f"mcp.{what}_per_owner", "max": most},
            )
        self._open[what, owner] += 1
        try:
            yield
        finally:
            self._open[what, owner] -= 1
            if not self._open[what, owner]:
                del self._open[what, owner]
