"""An attempt's end on its way to `decide`, with all that deciding about it may use."""

from everstep.domain.breaker import Verdict
from everstep.domain.ids import PauseId, StepPath
from everstep.domain.outcome import Outcome
from everstep.domain.policy import RetryPolicy
from everstep.domain.record import hot_record, record


@record
class Chance:
    """What a decision may need drawn: handed in, so that the decision stays a function."""

    jitter: float = 0.0
    pause_id: PauseId = PauseId("")
    error_id: str = ""


NO_CHANCE = Chance()
"""Enough for a success."""


@hot_record
class Ended:
    """One attempt's end, with all that deciding about it may use."""

    path: StepPath
    outcome: Outcome
    retry: RetryPolicy
    chance: Chance = NO_CHANCE
    dependants: tuple[str, ...] = ()
    """Steps that cannot run without this one's output."""
    verdict: Verdict | None = None
    """What the breaker learns from it."""
    attempt: int = 0
    """Which one has ended, where more than one process may say so; 0: the one that is open."""
