"""Gauge: how much of the machine is left."""

from collections.abc import Sequence
from typing import Protocol

from everstep.domain.pressure import Reading


class Gauge(Protocol):
    """Asked now and then."""

    def read(self) -> Sequence[Reading]:
        """What all tasks need, and how much of it there is; cheap."""
