"""Limits: the engine's own settings, as plain values."""

from collections.abc import Mapping
from dataclasses import field

from everstep.domain.consent import NO_RULES, Consent
from everstep.domain.expiry import Patience
from everstep.domain.ids import Millis
from everstep.domain.limits import TaskLimits
from everstep.domain.policy import USUAL_RETRY, RetryPolicy
from everstep.domain.queue import live_tasks_max
from everstep.domain.record import record
from everstep.domain.states import TaskStatus


@record
class Limits:
    """The engine's own settings, as plain values."""

    tasks: int = 64
    heartbeat_s: float = 5.0
    stale_after_ms: Millis = Millis(30_000)
    janitor_ms: Millis = Millis(5_000)
    """Between two looks at what dead workers have left, where there are others."""
    max_recoveries: int = 5
    shutdown_grace_s: float = 10.0
    cancel_grace_s: float = 5.0
    step_timeout_ms: Millis = Millis(60_000)
    items_max: int = 10_000
    keys_ms: Millis = Millis(30 * 86_400_000)
    """For so long nobody else gets the key of a task that was deleted."""
    retention: Mapping[TaskStatus, Millis] = field(default_factory=dict)
    """How long tasks are kept after they ended so; what is not named stays for ever."""
    live_tasks: int | None = None
    """Unfinished ones of one owner, if the settings say."""
    signal_keep_ms: Millis = Millis(86_400_000)
    """How long a signal waits for a step that wants it."""
    retry: RetryPolicy = USUAL_RETRY
    patience: Patience = Patience(length_ms=Millis(86_400_000), then="cancel")
    """With pauses that people ask for."""
    consent: Consent = NO_RULES
    """What the operator says about calls."""
    policy: str = NO_RULES.version
    """The version of these rules; another one voids what was granted before."""
    of_task: TaskLimits = TaskLimits(calls=20_000, cost=10, wall_time_ms=86_400_000, output_bytes=64 * 1024 * 1024)
    """What a task may use, unless its plan or whoever starts it says less."""

    def live_tasks_of(self, owner: str) -> int:
        """How many unfinished tasks this owner may have."""
        return live_tasks_max(owner, self.live_tasks)
