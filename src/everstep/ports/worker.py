"""Worker: who holds tasks of a store."""

from everstep.domain.ids import Instant, WorkerId
from everstep.domain.record import record


@record
class Worker:
    """One incarnation of one process."""

    id: WorkerId
    name: str
    host: str
    pid: int
    version: str
    started_at: Instant
    heartbeat_at: Instant
    released: bool = False
    tools: tuple[str, ...] = ()
    """What it can call, where others want to know."""
    kind: str = ""
    """How it has tasks carried: `embedded`, `temporal`; empty: not at all."""
