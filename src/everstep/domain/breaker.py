"""The circuit breaker: a value, and what a call's end, a wish to call and time make of it (semantics, section 5).

Pure: the stores keep it and apply these functions inside the transaction that writes outcomes and intents, so all
tasks and workers see one breaker, and a half-open one lets exactly one probe through.
"""

from dataclasses import replace
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

from everstep.domain.ids import Instant, Millis, StepPath, TaskId, WorkerId
from everstep.domain.record import record

ID_CHARS: Final = 24


class BreakerState(StrEnum):
    """Whether calls pass."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerKey(NamedTuple):
    """Whose calls of which tool to which target; of a named breaker no tool, and its name as the target."""

    owner: str
    tool: str | None
    target: str

    @property
    def id(self) -> str:
        """What it is called at the doors."""
        text = "\n".join((self.owner, self.tool or "", self.target))
        return f"b_{sha256(text.encode()).hexdigest()[:ID_CHARS]}"

    @property
    def text(self) -> str:
        """For people: `http.get example.org`, or its name."""
        return self.target if self.tool in (None, self.target) else f"{self.tool} {self.target}"


@record
class BreakerPolicy:
    """When it opens, for how long, and what closes it."""

    failures: int = 5
    share: float = 0.5
    last: int = 20
    least: int = 10
    window_ms: Millis = Millis(60_000)
    cool_down_ms: Millis = Millis(30_000)
    max_cool_down_ms: Millis = Millis(300_000)
    close_after: int = 2


@record
class Result:
    """One call that says something about the other side."""

    at: Instant
    ok: bool


@record
class Caller:
    """The attempt that ended, or wants to start."""

    task: TaskId
    step: StepPath
    attempt: int


@record
class Permit:
    """Who may probe. It lapses with its attempt, or with its worker."""

    caller: Caller
    worker: WorkerId
    until: Instant
    """When the attempt has ended at the latest; others need not look before."""


@record
class Breaker:
    """One breaker as it stands."""

    key: BreakerKey
    state: BreakerState = BreakerState.CLOSED
    streak: int = 0
    """Counted failures in a row."""
    recent: tuple[Result, ...] = ()
    opened_at: Instant | None = None
    retry_at: Instant | None = None
    cool_down_ms: Millis | None = None
    successes: int = 0
    """Of probes, since it is half-open."""
    permit: Permit | None = None
    last_error: str | None = None


@record
class Verdict:
    """What one attempt's end says: results since this breaker was last written, and that its permit is free."""

    key: BreakerKey
    policy: BreakerPolicy
    caller: Caller
    results: tuple[Result, ...] = ()
    error: str | None = None


@record
class Ask:
    """A call that needs the breaker's leave."""

    key: BreakerKey
    caller: Caller
    until: Instant
    due_at: Instant | None = None
    """When the step is due anyway, should the leave be refused."""


@record
class Toll:
    """What a commit tells and asks the breakers. Commits that meet none of them carry none."""

    verdicts: tuple[Verdict, ...] = ()
    asks: tuple[Ask, ...] = ()


def learn(breaker: Breaker, verdict: Verdict) -> Breaker:
    """The breaker after an attempt's end."""
    probed = breaker.permit is not None and breaker.permit.caller == verdict.caller
    if probed:
        breaker = replace(breaker, permit=None)
    for result in verdict.results:
        recent = (*breaker.recent, result)[-verdict.policy.last :]
        streak = 0 if result.ok else breaker.streak + 1
        breaker = replace(breaker, recent=recent, streak=streak)
        if not result.ok:
            breaker = replace(breaker, last_error=verdict.error or breaker.last_error)
        if breaker.state is BreakerState.CLOSED:
            if not result.ok and _too_many(breaker, result.at, verdict.policy):
                breaker = _opened(breaker, result.at, verdict.policy)
        elif probed:  # calls that began before it opened prove nothing any more
            breaker = _after_probe(breaker, result, verdict.policy)
    return breaker


def _too_many(breaker: Breaker, at: Instant, policy: BreakerPolicy) -> bool:
    if breaker.streak >= policy.failures:
        return True
    seen = [result for result in breaker.recent if result.at > at - policy.window_ms]
    failed = sum(not result.ok for result in seen)
    return len(seen) >= policy.least and failed >= policy.share * len(seen)


def _opened(breaker: Breaker, at: Instant, policy: BreakerPolicy) -> Breaker:
    """Open, for twice as long as the last time in a row."""
    before = breaker.cool_down_ms
    length = policy.cool_down_ms if before is None else Millis(min(2 * before, policy.max_cool_down_ms))
    return replace(
        breaker,
        state=BreakerState.OPEN,
        opened_at=at,
        retry_at=Instant(at + length),
        cool_down_ms=length,
        successes=0,
        permit=None,
    )


def _after_probe(breaker: Breaker, result: Result, policy: BreakerPolicy) -> Breaker:
    if not result.ok:
        return _opened(breaker, result.at, policy)
    if breaker.successes + 1 >= policy.close_after:
        return Breaker(key=breaker.key)
    return replace(breaker, successes=breaker.successes + 1)


def ask(breaker: Breaker, wish: Ask, worker: WorkerId, at: Instant, *, holder_lives: bool) -> Breaker | None:
    """The breaker once the call may start; None: it may not. A permit whose worker is gone binds nobody."""
    match breaker.state:
        case BreakerState.CLOSED:
            return breaker
        case BreakerState.OPEN if breaker.retry_at is not None and at < breaker.retry_at:
            return None
        case BreakerState.HALF_OPEN if breaker.permit is not None and holder_lives:
            return None
        case _:
            permit = Permit(caller=wish.caller, worker=worker, until=wish.until)
            return replace(breaker, state=BreakerState.HALF_OPEN, permit=permit)


def holds_back(breaker: Breaker, at: Instant, worker: WorkerId) -> Instant | None:
    """Until when it is not even worth asking; None: ask.

    A permit of another worker may have lapsed. One of ours is over by its time, whatever was heard of its end.
    """
    if breaker.state is BreakerState.OPEN and breaker.retry_at is not None and at < breaker.retry_at:
        return breaker.retry_at
    permit = breaker.permit
    if breaker.state is not BreakerState.HALF_OPEN or permit is None or permit.worker != worker:
        return None
    return permit.until if at < permit.until else None


def is_clean(breaker: Breaker, at: Instant, policy: BreakerPolicy) -> bool:
    """Closed, and no failure that could still count: nothing about it has to be remembered."""
    if breaker.state is not BreakerState.CLOSED or breaker.streak:
        return False
    return all(result.ok or result.at <= at - policy.window_ms for result in breaker.recent)
