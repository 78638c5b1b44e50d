"""A commit that takes the lease it writes under: from a task that nobody holds, in the same transaction."""

from dataclasses import replace
from typing import Final

from everstep.adapters.stores import journal
from everstep.adapters.stores.sql.apply import COMMAND_BYTES, Unit
from everstep.adapters.stores.sql.claim import lease_all
from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sql.rows import stale
from everstep.domain.ids import Seq
from everstep.domain.task import StepCommit
from everstep.ports.store import Commit, Committed


class TakeUnit:
    """The claim of one task, and what its new holder writes first."""

    areas: Final = ("claim", "outcome", "intent")
    size_bytes: Final = COMMAND_BYTES

    def __init__(self, commit: StepCommit, then: Unit) -> None:
        self._commit = commit
        self._then = then

    def apply(self, desk: Desk) -> Commit:
        commit = self._commit
        assert commit.taken is not None
        guard = desk.guard(commit.lease.task)
        if guard is None or desk.halted or guard.worker is not None or guard.status is not commit.taken.from_status:
            return stale(guard)
        claimed = journal.take(commit, guard.epoch)
        if claimed is None or guard.last_seq != Seq(commit.last_seq - 1):
            return stale(guard)
        lease_all(desk, commit.at, [(guard, claimed)])
        answer = self._then.apply(desk)
        assert isinstance(answer, Committed), "it was taken a moment ago"
        return replace(answer, events=(*claimed.events, *answer.events))
