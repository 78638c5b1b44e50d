"""How families of tools are: what each said when it was last asked, and which targets cannot be used now.

Nobody waits for that: a call of a target that is not well is made all the same, unless its step has another way.
"""

import asyncio
from typing import Final

from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Instant
from everstep.domain.record import record
from everstep.ports.tool import Health, ToolAdapter, ToolError

STALE_MS: Final = 60_000
"""What was said longer ago says nothing."""
ANSWER_S: Final = 10.0
ALL: Final = ""
"""Every target of a family."""


@record
class Known:
    """What a family said of itself, and when."""

    health: Health
    at: Instant | None
    """None: nobody has asked."""


NOBODY_ASKED: Final = Known(health=Health(), at=None)


class Wellness:
    """What this engine knows of it."""

    def __init__(self) -> None:
        self.unwell: dict[tuple[str, str], Known] = {}
        """Targets that cannot be used, by family. Empty, as nearly always."""
        self._known: dict[str, Known] = {}

    def of(self, family: str) -> Known:
        """What it said last; a family is called by its first tool."""
        return self._known.get(family) or NOBODY_ASKED

    def learn(self, family: str, health: Health, at: Instant) -> None:
        """What it says now."""
        known = self._known[family] = Known(health=health, at=at)
        for key in [key for key in self.unwell if key[0] == family]:
            del self.unwell[key]
        ill = health.unwell or ({ALL: health.detail} if health.status == "unhealthy" else {})
        self.unwell.update(dict.fromkeys(((family, target) for target in ill), known))

    def ill(self, family: str, target: str, at: Instant) -> Failure | None:
        """Why a target cannot be used, if it said so not long ago."""
        known = self.unwell.get((family, target)) or self.unwell.get((family, ALL))
        if known is None or known.at is None or at - known.at > STALE_MS:
            return None
        detail = known.health.unwell.get(target) or known.health.detail
        return Failure(
            code="tool_unhealthy",
            category=Category.TRANSIENT,
            message=f"{target} was not well when it was last looked at: {detail}",
            what_to_do="nothing: it is used again when it is well",
            effect_state=EffectState.NONE,
            details={"target": target},
        )


async def ask(adapter: ToolAdapter) -> Health:
    """How a family is; one that cannot say so within a while is not well."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await adapter.health()
    except TimeoutError:
        return Health(status="unhealthy", detail=f"no answer within {ANSWER_S:g} s")
    except (OSError, ToolError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return Health(status="unhealthy", detail=type(error).__name__)
