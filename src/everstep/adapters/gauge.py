"""The machine's own figures."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from everstep.domain.pressure import STORE, Reading
from everstep.ports.gauge import Queue


class MachineGauge:
    """Memory, the disk that the store is on, and the queue of its writer, if it has one."""

    def __init__(self, folder: Path, queue: Queue | None = None) -> None:
        self._folder = folder
        self._queue = queue

    def read(self) -> Sequence[Reading]:
        """Two system calls."""
        import psutil

        memory = psutil.virtual_memory()
        readings = [Reading(what="memory", free=memory.available, total=memory.total)]
        if self._folder.is_dir():
            disk = shutil.disk_usage(self._folder)
            readings.append(Reading(what="disk", free=disk.free, total=disk.total))
        if self._queue is not None:
            waiting, most = self._queue.waiting_writes
            readings.append(Reading(what=STORE, free=most - waiting, total=most))
        return readings
