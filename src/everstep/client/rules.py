"""The rules of a client that comes back by itself (interfaces, section 6). No I/O, no clock: times and draws come in.

The client for browsers has the same rules, in TypeScript.
"""

from collections import OrderedDict
from typing import Any, Final, Literal, TypeAlias

Way: TypeAlias = Literal["websocket", "sse", "poll"]
Frame: TypeAlias = dict[str, Any]

SILENCE_S: Final = 40.0
"""Whoever has heard nothing for so long is cut off, and does not know it yet."""
FIRST_S: Final = 0.5
LONGEST_S: Final = 30.0
STABLE_S: Final = 10.0
"""A connection that stood for so long is a good one: waiting begins anew."""
TRIES: Final = 3
"""So many failed tries in a row make the next way better."""
AGAIN_S: Final = 60.0
"""After so long on another way the WebSocket is tried again."""
TASKS_KNOWN_MAX: Final = 10_000

STOP_CODES: Final = {1000: None, 1008: "rate_limited", 1009: "too_large", 4400: "bad_request",
                     4401: "unauthenticated", 4404: "not_found"}  # fmt: skip
"""Close codes that end it for good; None: as it was asked for. After every other one the client comes back."""


class Backoff:
    """How long to wait before the next try."""

    def __init__(self) -> None:
        self.cuts = 0
        self._opened_at: float | None = None

    def opened(self, now: float) -> None:
        """A try has succeeded."""
        self._opened_at = now

    def cut(self, now: float, draw: float, retry_after_s: float | None = None) -> float:
        """Seconds to wait; what the server asks for wins. `draw` is uniform in [0, 1)."""
        if self._opened_at is not None and now - self._opened_at >= STABLE_S:
            self.cuts = 0
        self._opened_at = None
        wait_s = draw * min(LONGEST_S, FIRST_S * 2.0**self.cuts)
        self.cuts += 1
        return wait_s if retry_after_s is None else retry_after_s


class Ladder:
    """Which way to try next: WebSocket, then server-sent events, then long poll; and up again."""

    WAYS: Final[tuple[Way, ...]] = ("websocket", "sse", "poll")

    def __init__(self, ways: tuple[Way, ...] = WAYS) -> None:
        self._ways = ways
        self._rung = 0
        self._failed = 0
        self._again_at = 0.0

    def choose(self, now: float) -> Way:
        """The way to try now."""
        if self._rung and now >= self._again_at:
            self._again_at = now + AGAIN_S
            return self._ways[0]
        return self._ways[self._rung]

    def patience_s(self, way: Way, now: float) -> float | None:
        """How long to stay on a way before the first is tried again; None: for ever."""
        return None if way == self._ways[0] else max(0.0, self._again_at - now)

    def opened(self, way: Way) -> None:
        """It works."""
        self._failed = 0
        if way == self._ways[0]:
            self._rung = 0

    def failed(self, way: Way, now: float) -> None:
        """It did not even open."""
        if way != self._ways[self._rung]:
            return
        self._failed += 1
        if self._failed >= TRIES and self._rung + 1 < len(self._ways):
            self._failed = 0
            self._rung += 1
            self._again_at = now + AGAIN_S


class TaskPlace:
    """How far the stream of one task has come."""

    def __init__(self, after: int | None, *, dense: bool) -> None:
        self.after: int | None = after
        self._dense = dense

    def takes(self, frame: Frame) -> bool:
        """Whether a frame is news; raises Hole when something before it is missing."""
        kind = frame["type"]
        if kind == "snapshot":
            self.after = frame["seq"]
        elif kind == "event":
            seq = frame["event"]["seq"]
            last = self.after or 0
            if seq <= last:
                return False
            if self._dense and seq > last + 1:
                raise Hole
            self.after = seq
        elif kind in ("live", "heartbeat") and not self._dense:
            self.after = max(self.after or 0, frame["seq"])
        return True


class LinePlace:
    """How far the stream of all tasks has come: a cursor, and what is known of each task."""

    def __init__(self, after: str | None, *, dense: bool) -> None:
        self.after: str | None = after
        self._dense = dense
        self._seen: OrderedDict[str, int] = OrderedDict()

    def takes(self, frame: Frame) -> bool:
        """Whether a frame is news: after a reconnect an event may come again; raises Hole as that of a task does."""
        news = frame["type"] != "event" or self._is_next(frame["event"]["task"], frame["event"]["seq"])
        if "cursor" in frame and (frame["type"] != "hello" or self.after is None):
            self.after = frame["cursor"]
        return news

    def _is_next(self, task: str, seq: int) -> bool:
        last = self._seen.get(task)
        if self._dense and last is not None and seq > last + 1:
            raise Hole
        self._seen[task] = max(seq, last or 0)
        self._seen.move_to_end(task)
        if len(self._seen) > TASKS_KNOWN_MAX:
            self._seen.popitem(last=False)
        return seq > (last or 0)


class Hole(Exception):
    """An event is missing: read on from the last one seen."""
