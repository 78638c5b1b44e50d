"""How long others take to take over what a worker held when it died: read from the journal, death by death."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

_HELD = "SELECT id FROM workers WHERE pid = %s AND started_at < %s ORDER BY started_at DESC LIMIT 1"
_BUSIEST = """
SELECT w.pid FROM tasks t JOIN workers w ON w.id = t.worker GROUP BY w.pid ORDER BY count(*) DESC, w.pid LIMIT 1
"""
SUSPECT = 3
"""Tasks that were recovered so often wait for each other by design: of those only the move counts, not the claim."""
_RECOVERED = """
SELECT e.task, e.at, e.body, (SELECT min(s.at) FROM events s WHERE s.task = e.task AND s.seq > e.seq
                      AND s.type IN ('task.started', 'task.failed', 'task.paused', 'task.cancelled'))
FROM events e WHERE e.type = 'task.recovered' ORDER BY e.at
"""


@dataclass(frozen=True)
class Taken:
    """One death: seconds until all of its tasks were held by somebody else, the database being there."""

    calm: bool
    seconds: float
    tasks: frozenset[int]


@dataclass
class Deaths:
    """Who died when, and when there was no database."""

    seen: Counter[str] = field(default_factory=Counter)
    calm_since: int | None = None
    """From when on nothing else went wrong: then others have to be in time."""
    _at: list[tuple[int, int]] = field(default_factory=list)
    _outages: list[tuple[int, int]] = field(default_factory=list)

    def note(self, pid: int) -> None:
        """Just now."""
        self._at.append((pid, now()))

    def calm_down(self) -> None:
        """The storm is over; deaths that follow come one by one."""
        self.calm_since = now()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """While it lasts nobody can take over anything."""
        began = now()
        try:
            yield
        finally:
            self._outages.append((began, now()))

    def busiest(self, url: str) -> int:
        """The process that holds most tasks."""
        with psycopg.connect(url) as connection:
            ((pid,),) = connection.execute(_BUSIEST)
        return int(pid)

    def taken_over(self, url: str) -> list[Taken]:
        """Every death that left something, in its order. A worker that woke up in time left nothing."""
        with psycopg.connect(url) as connection:
            moves = [
                (task, at, said["worker"], moving if moving and said["recoveries"] < SUSPECT else at)
                for task, at, body, moving in connection.execute(_RECOVERED)
                for said in (json.loads(body)["data"],)
            ]
            found = []
            for pid, died in self._at:
                holder = connection.execute(_HELD, (pid, died)).fetchone()
                mine = [] if holder is None else [one for one in moves if one[2] == holder[0] and one[1] > died]
                if mine:
                    last = max(moving for _, _, _, moving in mine)
                    seconds = (last - died - self._without_database(died, last)) / 1000
                    found.append(
                        Taken(
                            calm=self.calm_since is not None and died >= self.calm_since,
                            seconds=seconds,
                            tasks=frozenset(task for task, *_ in mine),
                        )
                    )
            return found

    def _without_database(self, since: int, until: int) -> int:
        return sum(max(0, min(until, end) - max(since, begin)) for begin, end in self._outages)


def now() -> int:
    """As events tell it."""
    return time.time_ns() // 1_000_000
