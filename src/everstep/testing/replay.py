"""`check_journal`: would today's plan have done what a journal says? Nothing is called."""

from collections.abc import Iterator
from pathlib import Path

from everstep.authoring.plan import Plan
from everstep.domain import events as e
from everstep.domain.errors import Validation
from everstep.domain.fold import fold
from everstep.domain.graph import Graph, wire_plan
from everstep.domain.ids import Digest
from everstep.domain.record import record
from everstep.domain.task import TaskState
from everstep.facade.runnable import as_plan
from everstep.testing.departure import departure
from everstep.wire.event import Unreadable, decode


@record
class Departure:
    """Where the plan of today leaves the way of the journal."""

    seq: int
    step: str
    what: str

    def __str__(self) -> str:
        return f"seq {self.seq}, step {self.step}: {self.what}"


def check_journal(journal: str | Path, plan: Plan | str | Path) -> list[Departure]:
    """Every recorded call that this plan would make otherwise, or not at all; `show TASK --events` writes a journal."""
    graph = wire_plan(as_plan(plan).spec)
    return list(_departures(Path(journal), graph))


def _departures(journal: Path, graph: Graph) -> Iterator[Departure]:
    state: TaskState | None = None
    for number, line in enumerate(journal.read_bytes().splitlines(), start=1):
        try:
            recorded = decode(line, _elsewhere)
        except Unreadable as error:
            raise Validation(f"line {number} of {journal} is no event: {error}") from None
        if state is not None and isinstance(recorded.body, e.AttemptStarted) and recorded.step is not None:
            what = departure(state, graph, recorded.step, recorded.body)
            if what is not None:
                yield Departure(seq=recorded.seq, step=recorded.step, what=what)
        state = fold(state, "", recorded)


def _elsewhere(digest: Digest) -> bytes:
    raise Validation(
        f"the journal refers to {digest}, which is not in it", what_to_do="check a task with smaller values"
    )
