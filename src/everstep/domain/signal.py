"""Signals: events from outside, sent by name and key to the steps that wait for them."""

import re
from typing import Final

from everstep.domain.errors import Validation
from everstep.domain.events import Actor
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant, StepPath, TaskId
from everstep.domain.outcome import Failed
from everstep.domain.record import record
from everstep.domain.values import JsonObject

NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")
DATA_BYTES_MAX: Final = 256 * 1024
TIMED_OUT: Final = Failed(
    failure=Failure(
        code="wait_timeout",
        category=Category.LOGIC,
        message="no signal came in time",
        what_to_do="send it and retry the step, or give the step a longer `timeout` or a `fallback`",
        effect_state=EffectState.NONE,
    ),
    ended="timed_out",
)


@record
class Signal:
    """What somebody sent. Without a key it is for every step that asks for no key of its own."""

    id: str
    owner: str
    event: str
    key: str | None
    at: Instant
    actor: Actor
    output: JsonObject
    """What the steps that hear it complete with."""


@record
class Listener:
    """One attempt that waits: for this event, with this key or (`any_key`) also without one."""

    task: TaskId
    step: StepPath
    attempt: int
    owner: str
    event: str
    key: str
    any_key: bool

    def hears(self, signal: Signal) -> bool:
        """Whether a signal is meant for it."""
        meant = signal.key == self.key or (signal.key is None and self.any_key)
        return meant and (signal.owner, signal.event) == (self.owner, self.event)


def check_name(what: str, name: str) -> None:
    """Events, keys and ids are words, not texts; raises Validation."""
    if not NAME.fullmatch(name):
        raise Validation(f"'{what}' must be 1 to 128 of A-Z a-z 0-9 . _ -")
