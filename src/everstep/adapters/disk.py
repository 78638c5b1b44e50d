"""Disk space, promised before it is used: two writers that would fit alone do not both begin."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from everstep.ports.tool import ToolError

LEFT_BYTES: Final = 64 << 20
LEFT_SHARE: Final = 0.05
LEAST_SHARE: Final = 0.01


class DiskFull(ToolError):
    """Refused before the first byte."""

    category = "resource"


class Reservations:
    """What running writes of this process still need, for all disks together: on the safe side."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._promised = 0

    @contextmanager
    def reserved(self, space: Callable[[], tuple[int, int]], need: int) -> Iterator[None]:
        """So many bytes, for as long as it takes; raises DiskFull."""
        with self._lock:
            free, size = space()
            margin = max(int(size * LEAST_SHARE), min(LEFT_BYTES, int(size * LEFT_SHARE)))
            if need and free - self._promised < need + margin:
                raise DiskFull(
                    f"{need:,} bytes are needed and {max(0, free - self._promised - margin):,} can be given",
                    code="limit_disk",
                    details={"limit": "disk", "needed": need, "free": free, "promised": self._promised},
                )
            self._promised += need
        try:
            yield
        finally:
            with self._lock:
                self._promised -= need
