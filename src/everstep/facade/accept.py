"""A plan to be carried out, and whether it may become a task here: every reason why not, and what the task may use."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from everstep.domain.errors import Validation
from everstep.domain.events import Link, Who
from everstep.domain.ids import Digest, Instant, Millis
from everstep.domain.limits import PAUSE_TIMEOUT_MAX_MS, TaskLimits
from everstep.domain.plan import PlanSpec
from everstep.domain.queue import PRIORITY_MAX
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.engine.accept import accept_inputs, accept_plan, allow_plan, is_handed, usual_limits, with_defaults
from everstep.engine.kit import Kit
from everstep.engine.request import Request
from everstep.wire.limits import read_limits

SOUND_MAX: Final = 512
"""Plans that are remembered as sound; then it begins anew."""


@record
class Wish:
    """A plan to be carried out, and how."""

    plan: PlanSpec
    digest: Digest
    inputs: JsonObject
    trusted: bool
    key: str | None = None
    title: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 1
    pause_after: str | None = None
    pause_timeout_ms: Millis | None = None
    limits: JsonObject | None = None
    """As a plan spells them: lower than the plan's and the settings', or not said."""
    deadline: Instant | None = None
    continue_by: str | None = None
    unannounced: bool = False
    parent: Link | None = None
    checked: bool = False
    """Whether a door has found no problems in the plan, with this engine's tools and this trust."""


class Acceptance:
    """The check of wishes; plans that were sound once are remembered."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._sound: set[tuple[Digest, bool, str]] = set()

    def accept(self, wish: Wish, who: Who, workspace: str) -> Request:
        """The wish, checked and complete; raises every reason why there is no such task."""
        if wish.checked:
            allow_plan(wish.plan, self._kit, owner=who.owner)
        elif wish.plan.durable is None and (wish.digest, wish.trusted, who.owner) not in self._sound:
            accept_plan(wish.plan, self._kit, trusted=wish.trusted, owner=who.owner)
            if len(self._sound) >= SOUND_MAX:
                self._sound.clear()
            self._sound.add((wish.digest, wish.trusted, who.owner))
        handed = is_handed(wish.continue_by, unannounced=wish.unannounced)
        accept_inputs(wish.plan, wish.inputs, self._kit, all_of_them=not handed)
        if (
            wish.pause_after is not None
            and wish.plan.durable is None
            and all(wish.pause_after != step.id for step in wish.plan.steps)
        ):
            raise Validation(f"the plan has no step '{wish.pause_after}'")
        if wish.pause_timeout_ms is not None and not 0 < wish.pause_timeout_ms <= PAUSE_TIMEOUT_MAX_MS:
            raise Validation("'pause_timeout' must be more than 0 and at most 365 days")
        if not 0 <= wish.priority <= PRIORITY_MAX:
            raise Validation(f"priority {wish.priority} is not within 0 and {PRIORITY_MAX}")
        return Request(
            plan=wish.plan,
            digest=wish.digest,
            inputs=with_defaults(wish.plan, wish.inputs),
            actor=who.actor,
            owner=who.owner,
            trusted=wish.trusted,
            workspace=workspace,
            key=wish.key,
            title=wish.title,
            labels=wish.labels,
            priority=wish.priority,
            pause_after=wish.pause_after,
            pause_timeout_ms=wish.pause_timeout_ms,
            limits=self._limits(wish),
            deadline=wish.deadline,
            continue_by=wish.continue_by,
            unannounced=wish.unannounced,
            parent=wish.parent,
        )

    def _limits(self, wish: Wish) -> TaskLimits:
        """The lowest of what the settings, the plan and whoever starts it say."""
        most = usual_limits(wish.plan, self._kit)
        if wish.limits is None:
            return most
        wanted = read_limits(wish.limits)
        for name, more, allowed in wanted.above(most):
            raise Validation(f"limits can only be lowered: {name} {more:g} is above {allowed:g}")
        return most.lowered(replace(wanted, on_reached=most.on_reached))
