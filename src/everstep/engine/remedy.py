"""What can be done before a failed call is tried again: renew its credential, ask for less, leave a provider alone.

Only where a retry would use it: what the step's budget does not allow is not even tried.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Final, Protocol, TypeVar

from everstep.domain.detour import NO_DETOUR, Degraded, next_rung, used_retries
from everstep.domain.errors import StoreError
from everstep.domain.failure import Category, Failure
from everstep.domain.ids import Instant, StepPath
from everstep.domain.policy import budget
from everstep.domain.task import Intent, TaskState
from everstep.engine.kit import Kit
from everstep.engine.timing import retry_rule
from everstep.ports.tool import Call, Denied

T = TypeVar("T")

RUNG_BYTES_MAX: Final = 16 * 1024
"""Changed arguments stand in an event, so they are small."""


class Safely(Protocol):
    """How a tool's code is let run; None if it fails."""

    async def __call__(self, work: Coroutine[object, object, T], what: str) -> T | None: ...


async def renewed(intent: Intent, state: TaskState, error: Exception, safely: Safely, *, since: int, kit: Kit) -> bool:
    """Renew the credential of a refused call; one renewal serves all who were refused before it."""
    refresh = error.refresh if isinstance(error, Denied) else None
    if refresh is None or not _left(state, intent.step, Category.PERMISSION, kit):
        return False

    async def work() -> bool:
        return await safely(_awaited(refresh), "a credential could not be renewed") is not None

    entry = kit.catalog.get(intent.attempt.tool)
    key = kit.breakers.key(state.owner, None, entry, intent.attempt.input)
    return await kit.breakers.renewals.renew(key, since, work)


async def _awaited(refresh: Callable[[], Awaitable[None] | None]) -> bool:
    answer = refresh()
    if answer is not None:
        await answer
    return True


async def ask_for_less(
    call: Call, state: TaskState, path: StepPath, cause: Failure, *, safely: Safely, kit: Kit
) -> Degraded | None:
    """The next rung down the tool's ladder, if something ran out and there is one. No limit is ever raised."""
    if cause.category is not Category.RESOURCE or not _left(state, path, Category.RESOURCE, kit):
        return None
    before = (state.steps[path].detour or NO_DETOUR).degraded
    level = before.level + 1 if before else 1

    async def look_down() -> Call | None:
        return kit.catalog.get(call.tool).adapter.degrade(call, level, cause)

    less = await safely(look_down(), "the ladder of a tool broke")
    degraded = None if less is None else next_rung(before, call.arguments, less.arguments)
    too_much = degraded is not None and kit.codec.seal(degraded.set).size_bytes > RUNG_BYTES_MAX
    return None if too_much else degraded


def _left(state: TaskState, path: StepPath, category: Category, kit: Kit) -> bool:
    """Whether the step has a retry of this category left."""
    step = state.steps[path]
    return used_retries(step.retries, step.detour, category) < budget(retry_rule(state, path, kit), category)


async def leave_alone(call: Call, owner: str, wait_ms: int, kit: Kit) -> None:
    """All callers of the provider wait as long as it asks; if the store is away, only this one does."""
    entry = kit.catalog.get(call.tool)
    allowance = kit.passage.allowance(entry.spec, entry.target(call))
    try:
        await kit.passage.heed(owner, allowance, Instant(kit.clock.now() + wait_ms))
    except StoreError as trouble:
        kit.sink.trouble("a provider's wish to be left alone is not kept", trouble, tool=call.tool)
