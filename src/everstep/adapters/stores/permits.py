"""What breakers make of a commit, inside its transaction. Shared by every store; knows none."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from everstep.adapters.stores.journal import GRANTING
from everstep.domain import events as e
from everstep.domain.breaker import Ask, Breaker, BreakerKey, BreakerState, ask, learn
from everstep.domain.ids import TaskId, WorkerId
from everstep.domain.record import record
from everstep.domain.task import Proposal, StepCommit
from everstep.ports.store import KeptError
from everstep.wire.event import decode

TELLING: Final = frozenset(
    {
        e.AttemptStarted.TYPE,
        e.AttemptFailed.TYPE,
        e.AttemptTimedOut.TYPE,
        e.AttemptKilled.TYPE,
        e.AttemptAbandoned.TYPE,
        e.StepFailed.TYPE,
    }
)
"""Events that tell of errors, or of the tool that made one."""
_NOT_ERRORS: Final = frozenset({"needs_input", "not_called"})


@record
class Judged:
    """A commit without the proposals that were refused, and the breakers as they stand after it."""

    commit: StepCommit
    refused: tuple[Proposal, ...]
    breakers: dict[BreakerKey, Breaker]


def judge_toll(
    commit: StepCommit, find: Callable[[BreakerKey], Breaker | None], lives: Callable[[WorkerId], bool]
) -> Judged:
    """Learn from the ends, then grant what may start. A refused proposal does not sink the outcomes it came with."""
    toll = commit.toll
    assert toll is not None
    now: dict[BreakerKey, Breaker] = {}

    def standing(key: BreakerKey) -> Breaker:
        if key not in now:
            now[key] = find(key) or Breaker(key=key)
        return now[key]

    for verdict in toll.verdicts:
        now[verdict.key] = learn(standing(verdict.key), verdict)
    refused: list[Ask] = []
    for wish in toll.asks if commit.row.status in GRANTING else ():
        known = standing(wish.key)
        holder_lives = known.permit is not None and lives(known.permit.worker)
        after = ask(known, wish, commit.lease.worker, commit.at, holder_lives=holder_lives)
        if after is None:
            refused.append(wish)
        else:
            now[wish.key] = after
    return Judged(commit=_without(commit, refused), refused=_of(commit, refused), breakers=now)


def _without(commit: StepCommit, refused: Sequence[Ask]) -> StepCommit:
    if not refused:
        return commit
    steps = {wish.caller.step for wish in refused}
    due = [at for at in (commit.row.due_at, *(wish.due_at for wish in refused)) if at is not None]
    return replace(
        commit,
        proposals=tuple(one for one in commit.proposals if one.step not in steps),
        row=replace(commit.row, due_at=min(due, default=None)),
    )


def _of(commit: StepCommit, refused: Sequence[Ask]) -> tuple[Proposal, ...]:
    steps = {wish.caller.step for wish in refused}
    return tuple(one for one in commit.proposals if one.step in steps)


def worth_keeping(breaker: Breaker) -> bool:
    """A closed breaker without a failure says nothing."""
    return breaker.state is not BreakerState.CLOSED or any(not result.ok for result in breaker.recent)


def error_in(body: e.Body) -> e.ErrorRecord | None:
    """The error that an event records, if it is its first telling."""
    if isinstance(body, e.AttemptEnded):
        return body.error if body.called and body.error.failure.code not in _NOT_ERRORS else None
    if isinstance(body, e.StepFailed):
        return body.error if body.attempt is None and body.error.attempt is None else None
    return None


def kept_error(number: int, task: str, tool: str | None, body: str) -> KeptError:
    """The error of one line of the journal."""
    event = decode(body)
    error = error_in(event.body)
    assert error is not None
    return KeptError(number=number, task=TaskId(task), step=event.step, tool=tool, at=event.at, error=error)
