"""The machine's own figures."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from everstep.domain.pressure import Reading


class MachineGauge:
    """Memory, and the disk that the store is on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> Sequence[Reading]:
        """Two system calls."""
        import psutil

        memory = psutil.virtual_memory()
        readings = [Reading(what="memory", free=memory.available, total=memory.total)]
        if self._folder.is_dir():
            disk = shutil.disk_usage(self._folder)
            readings.append(Reading(what="disk", free=disk.free, total=disk.total))
        return readings
