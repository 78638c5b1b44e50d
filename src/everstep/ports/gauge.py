"""Gauge: how much of the machine is left."""

from collections.abc import Sequence
from typing import Protocol

from everstep.domain.pressure import Reading


class Queue(Protocol):
    """A store whose writes wait for each other."""

    @property
    def waiting_writes(self) -> tuple[int, int]:
        """How many wait, and how many may."""


class Gauge(Protocol):
    """Asked now and then."""

    def read(self) -> Sequence[Reading]:
        """What all tasks need, and how much of it there is; cheap."""
