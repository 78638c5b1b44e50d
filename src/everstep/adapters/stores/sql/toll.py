"""Breakers in the database: commits that tell or ask them something, and what can be asked about troubles."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from everstep.adapters.stores import permits
from everstep.adapters.stores.sql.apply import COMMAND_BYTES, StepUnit, Unit
from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sql.hold import Hold, Reader
from everstep.adapters.stores.sql.take import TakeUnit
from everstep.domain.breaker import Breaker, BreakerKey
from everstep.domain.ids import Instant, WorkerId
from everstep.domain.record import record
from everstep.domain.task import StepCommit
from everstep.ports.store import Commit, Committed, ErrorFilter, KeptError
from everstep.wire.breaker import decode_breaker, encode_breaker


def unit_of(commit: StepCommit) -> Unit:
    """A holder's commit: in bulk with others, unless breakers have a say or it takes the task first."""
    unit: Unit = StepUnit(commit) if commit.toll is None else TollUnit(commit=commit)
    return unit if commit.taken is None else TakeUnit(commit, unit)


@record
class TollUnit:
    """A holder's commit whose proposals need the leave of breakers, judged in the transaction that writes them."""

    commit: StepCommit
    areas: tuple[str, ...] = ("outcome", "intent")
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> Commit:
        def find(key: BreakerKey) -> Breaker | None:
            desk.in_turn("breaker", key.id)
            return next((decode_breaker(body) for (body,) in desk.rows("find_breaker", (key.id,))), None)

        def lives(worker: WorkerId) -> bool:
            return any(desk.rows("is_worker_live", (worker,)))

        judged = permits.judge_toll(self.commit, find, lives)
        answer = StepUnit(judged.commit).apply(desk)
        if not isinstance(answer, Committed):
            return answer
        for breaker in judged.breakers.values():
            _keep(desk, breaker, self.commit.at)
        return replace(answer, refused=(*answer.refused, *judged.refused), breakers=tuple(judged.breakers.values()))


def _keep(desk: Desk, breaker: Breaker, at: Instant) -> None:
    key = breaker.key
    if permits.worth_keeping(breaker):
        body = encode_breaker(breaker).decode()
        desk.change("put_breaker", (key.id, key.owner, breaker.state.value, at, body))
    else:
        desk.change("delete_breaker", (key.id, key.owner))


@record
class ResetUnit:
    """Somebody says that a breaker's trouble is over."""

    owner: str
    id: str
    areas: tuple[str, ...] = ("breaker",)
    size_bytes: int = COMMAND_BYTES

    def apply(self, desk: Desk) -> tuple[Breaker, ...]:
        desk.in_turn("breaker", self.id)
        found = tuple(decode_breaker(body) for (body,) in desk.rows("find_breaker", (self.id,)))
        mine = tuple(breaker for breaker in found if breaker.key.owner == self.owner)
        if mine:
            desk.change("delete_breaker", (self.id, self.owner))
        return mine


class SqlTroubles:
    """The verbs of `Troubles` in the database."""

    def __init__(self, hold: Callable[[], Hold]) -> None:
        self._hold = hold

    async def breakers(self, owner: str | None = None) -> Sequence[Breaker]:
        """All that are kept."""

        def look(reader: Reader) -> list[Breaker]:
            return [decode_breaker(body) for (body,) in reader.rows("list_breakers", {"owner": owner})]

        return await self._hold().readers.read(look)

    async def reset(self, owner: str, id: str) -> Breaker | None:
        """Forget a breaker of this owner."""
        (answer,) = await self._hold().writes.submit((ResetUnit(owner=owner, id=id),))
        assert isinstance(answer, tuple)
        return next(iter(answer), None)

    async def errors(self, which: ErrorFilter) -> Sequence[KeptError]:
        """Errors, newest first."""
        values = {
            "owner": which.owner,
            "category": which.category,
            "code": which.code,
            "tool": which.tool,
            "task": which.task,
            "since": which.since,
            "before": which.cursor,
            "limit": which.limit,
        }

        def look(reader: Reader) -> list[KeptError]:
            return [permits.kept_error(*row) for row in reader.rows("list_errors", values)]

        return await self._hold().readers.read(look)
