"""`fault("intent.commit.before")`: a named point where tests may strike. A no-op unless armed."""

from collections.abc import Callable
from typing import Final, TypeAlias

Fault: TypeAlias = Callable[[str], None]


def no_fault(_point: str) -> None:
    """The production answer."""


POINTS: Final[frozenset[str]] = frozenset(
    {
        # the store: one transaction may pass several of these pairs
        "create.commit.before",
        "create.commit.after",
        "claim.commit.before",
        "claim.commit.after",
        "intent.commit.before",
        "intent.commit.after",
        "outcome.commit.before",
        "outcome.commit.after",
        "command.commit.before",
        "command.commit.after",
        "sweep.commit.before",
        "sweep.commit.after",
        "renew.commit.before",
        "renew.commit.after",
        "signal.commit.before",
        "signal.commit.after",
        "listen.commit.before",
        "listen.commit.after",
        "retention.commit.before",
        "retention.commit.after",
        "key.commit.before",
        "key.commit.after",
        "handle.commit.before",
        "handle.commit.after",
        "breaker.commit.before",
        "breaker.commit.after",
        "worker.commit.before",
        "worker.commit.after",
        "rate.commit.before",
        "rate.commit.after",
        "halt.commit.before",
        "history.commit.before",
        "history.commit.after",
        "halt.commit.after",
        "artifact.write.before",
        "artifact.write.mid",
        "artifact.write.after",
        "migrate.apply.before",
        "migrate.apply.mid",
        "migrate.apply.after",
        "backup.copy.before",
        "backup.copy.after",
        "checkpoint.truncate.before",
        "checkpoint.truncate.after",
    }
)
"""Every point there is: a suite that strikes at all of them misses none, and one that never fires fails."""
