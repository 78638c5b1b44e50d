"""What a task can be asked about what is to come."""

from everstep.domain.estimate import Estimate
from everstep.domain.progress import Progress, progress_of
from everstep.facade.rework_task import ReworkedTask


class ForeseenTask(ReworkedTask):
    """The part of a `Task` that says how far it is, and what is left."""

    @property
    def progress(self) -> Progress:
        """How far it has come."""
        return self._desk.forecast.now(self._state).progress or progress_of(self._state)

    @property
    def estimate(self) -> Estimate | None:
        """Seconds of work left, and what that rests on; None once it has ended."""
        return None if self._state.terminal else self._desk.forecast.now(self._state).task
