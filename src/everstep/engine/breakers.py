"""What this engine knows of the breakers: every troubled one as the store last told it, and successes of the others.

The store is the judge (`domain/breaker` inside its transactions); this is the memory that keeps the happy path free:
a call whose breaker is in no trouble asks nobody, and its success is written nowhere.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from everstep.domain.breaker import (
    Breaker,
    BreakerKey,
    BreakerPolicy,
    BreakerState,
    Caller,
    Result,
    Verdict,
    holds_back,
    is_clean,
)
from everstep.domain.failure import counts_for_breaker
from everstep.domain.ids import Instant, TaskId, WorkerId
from everstep.domain.outcome import Failed, Outcome, Succeeded
from everstep.domain.values import Sealed
from everstep.engine.catalog import Entry
from everstep.engine.renew import Renewals
from everstep.ports.tool import Call

KEPT_MAX: Final = 10_000
AGAIN_MS: Final = 5_000
"""At least so long after a refusal the store is not asked again."""


class Breakers:
    """Lives on the engine's loop."""

    def __init__(self, policy: BreakerPolicy, named: Mapping[str, BreakerPolicy] | None = None) -> None:
        self._policy: Final = policy
        self._named: Final = named or {}
        self.troubled: dict[BreakerKey, Breaker] = {}
        """All that may hold a call back, or have failures that still count."""
        self.wake: Callable[[TaskId], bool] = lambda _task: False
        """Have a task looked at again; whether it was here and only waiting."""
        self.moved: Callable[[Breaker], None] = lambda _breaker: None
        """Who wants to know that one has opened or closed."""
        self.renewals: Final = Renewals()
        """Of credentials: whoever shares a breaker shares one."""
        self._fine: dict[BreakerKey, deque[Instant]] = {}
        self._unsaid: dict[BreakerKey, list[Result]] = {}
        """Successes of troubled ones that the store has not heard of."""
        self._refused: dict[BreakerKey, Instant] = {}
        """The store has refused a call: somebody, maybe elsewhere, probes. Until when it is not asked again."""
        self._given_back: dict[BreakerKey, Caller] = {}
        """Whose probe has ended here: an answer that still tells of its permit is older than that."""
        self._waiting: dict[BreakerKey, dict[TaskId, None]] = {}

    # --- which breaker ---

    def key(self, owner: str, name: str | None, entry: Entry, given: Sealed) -> BreakerKey:
        """The breaker that step or tool name, else that of tool and target."""
        name = name or entry.spec.breaker
        if name is not None:
            return BreakerKey(owner, None, name)
        tool = entry.spec.name
        if not entry.targeted:
            return BreakerKey(owner, tool, tool)
        assert isinstance(given.value, dict)
        return BreakerKey(owner, tool, entry.adapter.target(Call(tool=tool, arguments=given.value)))

    def policy(self, key: BreakerKey) -> BreakerPolicy:
        """Its own, if the settings name it."""
        return self._named.get(key.target, self._policy) if key.tool is None else self._policy

    def find(self, key: BreakerKey, at: Instant) -> Breaker | None:
        """A troubled breaker; one whose trouble has passed is let go."""
        known = self.troubled.get(key)
        if known is not None and is_clean(known, at, self.policy(key)):
            del self.troubled[key]
            self._unsaid.pop(key, None)
            self._given_back.pop(key, None)
            self._fine[key] = deque((one.at for one in known.recent if one.ok), maxlen=self.policy(key).last)
            return None
        return known

    def holds_back(self, breaker: Breaker, at: Instant, worker: WorkerId) -> Instant | None:
        """Until when it is not worth asking the store; None: ask."""
        until = holds_back(breaker, at, worker)
        refused = self._refused.get(breaker.key)
        return until if until is not None or refused is None or refused <= at else refused

    # --- what calls say ---

    def verdict(self, key: BreakerKey, caller: Caller, outcome: Outcome, at: Instant) -> Verdict | None:
        """What the store has to learn from an attempt's end; None: nothing, as nearly always."""
        known = self.find(key, at) if self.troubled else None
        probed = known is not None and known.permit is not None and known.permit.caller == caller
        if probed:
            self._given_back[key] = caller
        if isinstance(outcome, Succeeded):
            return self._succeeded(key, caller, known, at)
        if isinstance(outcome, Failed) and outcome.called and counts_for_breaker(outcome.failure):
            failure = outcome.failure
            before = (
                self._unsaid.pop(key, []) if known else [Result(at=one, ok=True) for one in self._fine.pop(key, ())]
            )
            results = (*before, Result(at=at, ok=False))
            error = f"{failure.code}: {failure.message}"
            return Verdict(key=key, policy=self.policy(key), caller=caller, results=results, error=error)
        return Verdict(key=key, policy=self.policy(key), caller=caller) if probed else None

    def praise(self, key: BreakerKey, at: Instant) -> None:
        """A call went well, and its breaker is in no trouble."""
        ring = self._fine.get(key)
        if ring is None:
            if len(self._fine) >= KEPT_MAX:
                self._fine.clear()
            ring = self._fine[key] = deque(maxlen=self.policy(key).last)
        ring.append(at)

    def _succeeded(self, key: BreakerKey, caller: Caller, known: Breaker | None, at: Instant) -> Verdict | None:
        if known is None:
            self.praise(key, at)
            return None
        unsaid = self._unsaid.setdefault(key, [])
        unsaid.append(Result(at=at, ok=True))
        del unsaid[: -self.policy(key).last]
        if known.state is BreakerState.CLOSED and not known.streak:
            self.troubled[key] = replace(known, recent=(*known.recent, unsaid[-1])[-self.policy(key).last :])
            return None
        return Verdict(key=key, policy=self.policy(key), caller=caller, results=tuple(self._unsaid.pop(key)))

    # --- what the store says ---

    def learned(self, breakers: Iterable[Breaker], *, refused_at: Instant | None = None) -> None:
        """As they stand now; whoever waits for one that lets calls through again is woken."""
        for told in breakers:
            over = told.permit is not None and told.permit.caller == self._given_back.get(told.key)
            breaker = replace(told, permit=None) if over else told
            before = self.troubled.get(breaker.key)
            if breaker.state is not (BreakerState.CLOSED if before is None else before.state):
                self.moved(breaker)
            self.troubled[breaker.key] = breaker
            self._refused.pop(breaker.key, None)
            if refused_at is not None and breaker.permit is not None:
                self._refused[breaker.key] = Instant(max(breaker.permit.until, refused_at + AGAIN_MS))
            if breaker.state is BreakerState.CLOSED:
                self._wake(breaker.key, everyone=True)
            elif breaker.state is BreakerState.HALF_OPEN and breaker.permit is None:
                self._wake(breaker.key, everyone=False)

    def compare(self, kept: Iterable[Breaker]) -> None:
        """As the store has them now, where other engines teach them too; one that it has not was reset or is fine."""
        now = {breaker.key: breaker for breaker in kept}
        gone = [key for key, one in self.troubled.items() if key not in now and one.state is not BreakerState.CLOSED]
        for key in gone:
            self.forget(key)
        self.learned(one for key, one in now.items() if self.troubled.get(key) != one)

    def forget(self, key: BreakerKey) -> None:
        """Somebody has reset it."""
        for known in (self.troubled, self._unsaid, self._fine, self._refused, self._given_back):
            known.pop(key, None)
        self._wake(key, everyone=True)

    # --- who waits ---

    def wait(self, key: BreakerKey, task: TaskId) -> None:
        """This task has a step that waits for it."""
        self._waiting.setdefault(key, {})[task] = None

    def waits_no_more(self, key: BreakerKey, task: TaskId) -> None:
        """It asks for leave; if that is refused, it waits again."""
        self._waiting.get(key, {}).pop(task, None)

    def _wake(self, key: BreakerKey, *, everyone: bool) -> None:
        """All, or the one who has waited longest: a single probe needs a single caller. Some have left by now."""
        waiting = self._waiting.get(key, {})
        for task in [*waiting]:
            del waiting[task]
            if self.wake(task) and not everyone:
                break
        if not waiting:
            self._waiting.pop(key, None)
