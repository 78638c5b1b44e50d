"""The machine's own figures."""

from collections.abc import Sequence
from pathlib import Path

from everstep.adapters.isolation.group import left_in, memory_group
from everstep.domain.pressure import STORE, Reading
from everstep.ports.gauge import Queue


class MachineGauge:
    """Memory, the disk that the store is on, and the queue of its writer, if it has one."""

    def __init__(self, folder: Path, queue: Queue | None = None, *, group: Path | None = None) -> None:
        """`group`: the control group whose memory this process lives on; found, if it is not said."""
        self._folder = folder
        self._queue = queue
        self._group = group or memory_group()

    def read(self) -> Sequence[Reading]:
        """A few small files."""
        import psutil

        readings = [self._memory()]
        if self._folder.is_dir():
            disk = psutil.disk_usage(str(self._folder))
            readings.append(Reading(what="disk", free=disk.free, total=disk.total))
        if self._queue is not None:
            waiting, most = self._queue.waiting_writes
            readings.append(Reading(what=STORE, free=most - waiting, total=most))
        return readings

    def _memory(self) -> Reading:
        """The machine's, or what the walls around this process leave of it, if that is less."""
        import psutil

        memory = psutil.virtual_memory()
        inside = None if self._group is None else left_in(self._group)
        free, total = min((memory.available, memory.total), inside or (memory.available, memory.total))
        return Reading(what="memory", free=free, total=total)
