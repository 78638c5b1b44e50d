"""An open store as its verbs see it: a writer, readers and payloads, whichever database is behind them."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from everstep.adapters.stores.chain import Seal
from everstep.adapters.stores.groupcommit import GroupCommit
from everstep.adapters.stores.sql.apply import Unit
from everstep.domain.ids import Digest, Instant
from everstep.domain.values import JsonValue

T = TypeVar("T")


class Reader(Protocol):
    """One connection that only reads."""

    def rows(self, name: str, values: Any = None, *, within_s: float | None = None) -> list[tuple[Any, ...]]:
        """All rows of a named statement; what they hold is the statement's business."""


class Readers(Protocol):
    """A few of them, each used by one thread at a time."""

    async def read(self, question: Callable[[Reader], T]) -> T:
        """Ask in a thread."""


class Payloads(Protocol):
    """Values by content."""

    async def put(self, payloads: Sequence[tuple[Digest, bytes]]) -> None:
        """Durable when this returns."""

    async def get(self, digests: Sequence[Digest]) -> list[JsonValue]:
        """Raises NotFound."""

    async def raw(self, digest: Digest) -> bytes:
        """The bytes of one; raises NotFound."""

    def read(self, digest: Digest) -> bytes:
        """The bytes of one, in a reader's thread."""

    async def stale(self, before: Instant) -> Sequence[Digest]:
        """Those that nobody has kept since then."""

    async def drop(self, digests: Sequence[Digest], before: Instant) -> int:
        """Forget these, but for those that somebody keeps again meanwhile; how many."""


class Hold(Protocol):
    """Everything that is open."""

    writes: GroupCommit[Unit]
    seal: Seal

    @property
    def readers(self) -> Readers: ...

    @property
    def artifacts(self) -> Payloads: ...
