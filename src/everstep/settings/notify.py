"""Who is told when a task needs somebody or fails, and how."""

from collections.abc import Callable
from typing import Final

from everstep.domain.record import record

NEEDS_YOU: Final = "needs_you"
FAILED: Final = "failed"
COMPLETED: Final = "completed"
CANCELLED: Final = "cancelled"
OCCASIONS: Final = (NEEDS_YOU, FAILED, COMPLETED, CANCELLED)


@record
class NotifySettings:
    """Without command and webhook nobody is told, but for the bell of a terminal that follows a task."""

    on: frozenset[str]
    command: tuple[str, ...]
    webhook: str
    bell: bool


def notify_of(
    words: Callable[[str], tuple[str, ...]], text: Callable[[str], str], flag: Callable[[str], bool]
) -> NotifySettings:
    """As it was said."""
    return NotifySettings(
        on=frozenset(words("notify.on")),
        command=words("notify.command"),
        webhook=text("notify.webhook"),
        bell=flag("notify.bell"),
    )
