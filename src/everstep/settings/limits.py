"""How much there may be of everything."""

from collections.abc import Callable

from everstep.domain.ids import Millis
from everstep.domain.limits import TaskLimits
from everstep.domain.states import TERMINAL
from everstep.settings.parts import LimitSettings


def limits_of(number: Callable[[str], int], amount: Callable[[str], float], live_tasks: int | None) -> LimitSettings:
    """Out of the section `limits`."""
    return LimitSettings(
        keys_ms=Millis(number("retention.keys")),
        retention={status: Millis(number(f"retention.{status.value}")) for status in sorted(TERMINAL)},
        body_bytes=number("limits.body"),
        items=number("limits.items"),
        live_tasks=live_tasks,
        inline_bytes=number("limits.inline"),
        artifact_bytes=number("limits.artifact"),
        of_task=TaskLimits(
            calls=number("limits.calls"),
            cost=amount("limits.cost"),
            wall_time_ms=number("limits.wall_time"),
            output_bytes=number("limits.output"),
            cpu_time_ms=number("limits.cpu_time"),
            disk_bytes=number("limits.disk"),
            memory_bytes=number("limits.memory"),
        ),
    )
