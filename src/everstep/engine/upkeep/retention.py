"""Retention: tasks that ended long enough ago go by themselves; their keys stay taken for a while longer.

Looked after now and then, in parts, by every engine that carries all tasks; whoever comes second finds nothing. A
clean-up that fails is loud: the engine is not well until one has succeeded.
"""

from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.ids import Instant
from everstep.engine.kit import Kit
from everstep.ports.housekeeping import clean_up

FIRST_MS: Final = 60_000
EVERY_MS: Final = 3_600_000
AGAIN_MS: Final = 60_000
"""After a clean-up that failed."""


class Retention:
    """One engine's hand in it."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit

    async def watch(self) -> None:
        """Until dropped. Not all engines of a fleet begin at the same moment."""
        wait_ms = FIRST_MS
        while True:
            jitter = 1 + self._kit.entropy.draw()
            await self._kit.clock.sleep_until(Instant(self._kit.clock.now() + int(wait_ms * jitter)))
            wait_ms = EVERY_MS if await self._clean_up() else AGAIN_MS

    async def _clean_up(self) -> bool:
        kit = self._kit
        try:
            gone = await clean_up(
                kit.passage.traffic.housekeeping, kit.limits.retention, kit.limits.keys_ms, kit.clock.now()
            )
        except EverstepError as error:
            kit.unwell["retention"] = f"old tasks cannot be deleted: {error.message}"
            kit.sink.trouble("old tasks cannot be deleted", error)
            return False
        kit.unwell.pop("retention", None)
        if any(gone.values()):
            kit.sink.note("old tasks were deleted", **{status.value: count for status, count in gone.items()})
        return True
