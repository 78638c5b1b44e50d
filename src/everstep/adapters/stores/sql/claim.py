"""Leases: which tasks a worker gets, and how that is written down."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from everstep.adapters.stores import journal
from everstep.adapters.stores.journal import Stamp
from everstep.adapters.stores.sql.apply import COMMAND_BYTES
from everstep.adapters.stores.sql.desk import Desk, Mismatch
from everstep.adapters.stores.sql.rows import Guard
from everstep.domain.ids import Instant, TaskId
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.ports.store import Claim, Claimed

SUSPECTS_MAX: Final = 16
"""How many more tasks are looked at if most of them may turn out to be suspects."""


def lease_all(desk: Desk, at: Instant, started: Sequence[tuple[Guard, Claimed]]) -> None:
    """Write claims down."""
    rows = [row for guard, one in started for row in desk.linked(guard, at, one.events)]
    desk.insert_events(rows)
    leases = [
        (journal.status_once_claimed(guard.status), one.lease.worker, at, at, guard.num, guard.epoch, guard.last_seq)
        for guard, one in started
    ]
    if desk.change_many("claim_task", leases) != len(leases):
        raise Mismatch("claim")
    for (guard, one), row in zip(started, rows, strict=True):
        lease, status = one.lease, journal.status_once_claimed(guard.status)
        after = Guard(guard.num, status, guard.generation, lease.epoch, lease.worker, one.last_seq, row[-1])
        desk.guards.put(lease.task, after)


@record
class ClaimUnit:
    """Leases for a worker."""

    claim: Claim
    areas: tuple[str, ...] = ("claim",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> list[Claimed]:
        claim = self.claim
        if desk.halted:
            return []
        started: list[tuple[Guard, Claimed]] = []
        for num, task, status, generation, epoch, last_seq, head in self._candidates(desk):
            guard = Guard(num, TaskStatus(status), generation, epoch, None, last_seq, head)
            actor = journal.engine_actor(claim.worker)
            stamp = Stamp(task=TaskId(task), last_seq=last_seq, generation=generation, at=claim.at, actor=actor)
            started.append((guard, journal.start(claim, stamp, guard.status, guard.epoch)))
        lease_all(desk, claim.at, started)
        return [one for _, one in started]

    def _values(self) -> dict[str, str | int | None]:
        """What a database may pass over by itself; one that gives row by row leaves it to `_allowed`."""
        claim = self.claim
        most = claim.limit + SUSPECTS_MAX * bool(claim.suspects)
        return {
            "passing_over": json.dumps(sorted(claim.passing_over)),
            "suspect_from": claim.suspect_from,
            "suspects": claim.suspects,
            "tools": None if claim.tools is None else json.dumps(sorted(claim.tools)),
            "most": most,
            "look": 4 * most,
        }

    def _candidates(self, desk: Desk) -> list[tuple[Any, ...]]:
        claim = self.claim
        if claim.only is None:
            found = desk.candidates("claim_candidates", self._values())
        else:
            found = desk.candidates("claim_candidates_of", self._values() | {"ids": json.dumps(sorted(claim.only))})
        return list(islice(self._allowed(found), claim.limit))

    def _allowed(self, found: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Not those to pass over, and of suspects only so many."""
        suspects = self.claim.suspects
        for *row, recoveries in found:
            if row[1] in self.claim.passing_over:
                continue
            if recoveries >= self.claim.suspect_from:
                if suspects == 0:
                    continue
                suspects -= 1
            yield tuple(row)
