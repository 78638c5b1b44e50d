"""Tasks of one store are carried in one way: by engines themselves, or by a server that they ask to."""

from typing import Final

from everstep.domain.errors import StoreRefused
from everstep.ports.store import Worker

KIND: Final = "engine"
"""What the store calls its word for it."""


def kept_kind(recorded: str, worker: Worker) -> str:
    """What holds from now on, where nobody else writes meanwhile; raises StoreRefused."""
    refuse_other_kind(recorded or worker.kind, worker)
    return recorded or worker.kind


def refuse_other_kind(recorded: str, worker: Worker) -> None:
    """The first that carried a task has said how; raises StoreRefused for whoever would do it in another way."""
    if worker.kind and worker.kind != recorded:
        raise StoreRefused(
            f"tasks of this store are carried by '{recorded}' engines, this one is '{worker.kind}'",
            what_to_do=f"set `engine.kind` to '{recorded}', or move the tasks to a store of its own: everstep db move",
        )
