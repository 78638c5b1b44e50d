"""What only a shared database can do to us: refuse, be cut off, lose an answer, be written by others meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Literal

import psycopg
import pytest

from everstep.adapters.stores.postgres import ledger as ledgers
from everstep.adapters.stores.postgres import moving, readers
from everstep.adapters.stores.postgres.connect import connect, read
from everstep.adapters.stores.postgres.migrate import migrate, migrate_down, migrations
from everstep.adapters.stores.postgres.opening import IDLE_MS
from everstep.adapters.stores.postgres.sql import sql
from everstep.adapters.stores.postgres.store import PgStore
from everstep.adapters.stores.sql.moving import move
from everstep.domain.errors import LeaseLost, StoreLocked, StoreRefused, Unavailable
from everstep.domain.ids import Instant, Seq, TaskId
from everstep.domain.rate import Rate
from everstep.domain.task import StepCommit
from everstep.ports.store import Commit, Committed, Created, Stale, TaskFilter
from everstep.ports.traffic import Reservation
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE, TWO
from everstep.testing.conformance.stage import Scene, done
from tests.postgres import schema, server_url
from tests.proxy import Proxy


@pytest.fixture
def url() -> Iterator[str]:
    with schema() as own:
        yield own


@asynccontextmanager
async def opened(url: str, idle_ms: int = IDLE_MS) -> AsyncIterator[Scene]:
    store, me = PgStore(url, clock=VirtualClock(), idle_ms=idle_ms), f.worker()
    await store.open(me)
    try:
        yield Scene(store, me)
    finally:
        await store.close()


# Refusals


@pytest.mark.req("WF-19")
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://postgres@127.0.0.1:1/postgres", "does not answer"),
        ("postgresql://nobody@127.0.0.1:1/?nonsense=1", "cannot be read"),
    ],
)
async def test_a_wrong_address_is_refused(url: str, says: str) -> None:
    with pytest.raises((StoreRefused, Unavailable), match=says):
        await PgStore(url, clock=VirtualClock()).open(f.worker())


@pytest.mark.req("WF-19")
async def test_a_database_that_is_not_there_is_refused() -> None:
    url = server_url().replace("/postgres", "/missing")
    with pytest.raises((StoreRefused, Unavailable), match="does not exist"):
        await PgStore(url, clock=VirtualClock()).open(f.worker())


async def test_a_database_without_a_store_is_refused_and_left_alone() -> None:
    with schema(migrated=False) as url:
        with pytest.raises(StoreRefused, match="holds no store") as refused:
            await PgStore(url, clock=VirtualClock()).open(f.worker())
        assert refused.value.what_to_do == "everstep db migrate"
        with connect(url) as connection:
            assert connection.execute("SELECT to_regclass('meta')").fetchall() == [(None,)]


async def test_less_durability_than_promised_is_refused(url: str) -> None:
    weak = url + "%20-csynchronous_commit%3Doff"
    with pytest.raises(StoreRefused, match="synchronous_commit = off") as refused:
        await PgStore(weak, clock=VirtualClock()).open(f.worker())
    assert refused.value.code == "durability_not_met"
    store = PgStore(weak, clock=VirtualClock(), durability="process")
    await store.open(f.worker())
    await store.close()


@pytest.mark.req("WF-12")
async def test_a_newer_store_is_refused_unless_it_says_that_older_programs_may(url: str) -> None:
    known = len(migrations())
    with connect(url) as connection:
        connection.execute(f"INSERT INTO migrations VALUES ({known + 1}, 'later', 'x', 0)")
    async with opened(url):
        pass
    with connect(url) as connection:
        connection.execute(f"UPDATE meta SET value = '{known + 1}' WHERE key = 'min_schema'")
    with pytest.raises(StoreRefused, match=f"this program knows {known}"):
        await PgStore(url, clock=VirtualClock()).open(f.worker())


# Schema


def fingerprint(connection: psycopg.Connection[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return (
        connection.execute(
            "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
            " WHERE table_schema = current_schema() ORDER BY 1, 2"
        ).fetchall()
        + connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1"
        ).fetchall()
    )


@pytest.mark.req("WF-23")
def test_forward_back_and_forward_is_the_same_schema(url: str) -> None:
    with connect(url) as connection:
        before = fingerprint(connection)
        migrate_down(connection, 0, known=migrations())
        assert len(fingerprint(connection)) < len(before) / 10
        assert migrate(connection, Instant(1), known=migrations()) == len(migrations())
        assert fingerprint(connection) == before


async def test_two_who_migrate_at_once_migrate_once() -> None:
    with schema(migrated=False) as url:

        def forward() -> int:
            with connect(url) as connection:
                return migrate(connection, Instant(0), known=migrations())

        steps = await asyncio.gather(*(asyncio.to_thread(forward) for _ in range(4)))
        assert sum(steps) == len(migrations())


@pytest.mark.req("WF-22")
async def test_a_status_that_nobody_knows_is_refused_on_write_and_on_read(url: str) -> None:
    async with opened(url) as on:
        await on.created()
        with connect(url) as connection:
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute("UPDATE tasks SET status = 'odd'")
            connection.execute("ALTER TABLE tasks DROP CONSTRAINT tasks_status_check")
            connection.execute("UPDATE tasks SET status = 'odd'")
        with pytest.raises(StoreRefused, match="odd"):
            await on.store.list_tasks(TaskFilter(owner="local"))


# Answers that are lost


@pytest.mark.parametrize(("how", "became"), [("before", "sent again"), ("after", "committed")])
async def test_a_commit_whose_answer_is_lost_is_looked_for(
    url: str, how: Literal["before", "after"], became: str
) -> None:
    with Proxy(url) as proxy:
        async with opened(proxy.url) as on:
            state = await on.held()
            proxy.cut_commit(how)
            answer = await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),)))
            assert isinstance(answer, Committed)
            assert proxy.cuts == 1
            assert on.store._hold.ledger.resolved[became] == 1  # type: ignore[attr-defined]
            assert await on.seqs(state.id) == [1, 2, 3]
            (made,) = await on.store.create_tasks((f.new_task(key="k"),))
            proxy.cut_commit(how)
            (again,) = await on.store.create_tasks((f.new_task(key="other"),))
            assert isinstance(made, Created)
            assert isinstance(again, Created)
            await on.sound()


@pytest.mark.parametrize("answered", [True, False])
async def test_a_batch_that_arrives_after_it_was_looked_for_writes_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch, *, answered: bool
) -> None:
    """Its sender has found that it is not there, and sends it again: it must not come in between.

    The answer to that look may be lost as well, and it is looked for again.
    """
    looked = ledgers.PgLedger._is_committed
    with Proxy(url) as proxy:

        def and_then_it_comes(ledger: ledgers.PgLedger) -> bool:
            if not answered:
                proxy.cut_commit("after")
            found = looked(ledger)
            proxy.deliver()
            return found

        monkeypatch.setattr(ledgers.PgLedger, "_is_committed", and_then_it_comes)
        async with opened(proxy.url) as on:
            state = await on.held()
            proxy.cut_commit("late")
            answer = await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),)))
            assert isinstance(answer, Committed)
            assert await on.seqs(state.id) == [1, 2, 3]
            await on.sound()


@pytest.mark.parametrize("what", ["commit", "load"])
async def test_an_answer_that_does_not_come_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """What stands between has lost the server and says nothing: the connection is, and the next one is another."""
    monkeypatch.setattr(readers, "READ_MAX_S", 0.5)
    monkeypatch.setattr(readers, "LATE_S", 0.0)
    with Proxy(url) as proxy:
        async with opened(proxy.url) as on:
            state = await on.held()
            on.store._hold.ledger._desk.connection.answer_s = 0.5  # type: ignore[attr-defined]
            proxy.turn("half open")
            commit = f.step_commit(state, proposals=(f.proposal(ONE),))
            asking = asyncio.ensure_future(_done(on, state.id, commit if what == "commit" else None))
            await asyncio.to_thread(proxy.swallowed.wait)
            proxy.turn(None)
            async with asyncio.timeout(30):
                await asking
            assert await on.seqs(state.id) == ([1, 2, 3] if what == "commit" else [1, 2])
            await on.sound()


async def _done(on: Scene, task: TaskId, commit: StepCommit | None) -> None:
    """The commit, or the task is read."""
    if commit is None:
        assert (await on.load(task)).id == task
    else:
        assert isinstance(await on.commit(commit), Committed)


async def test_a_connection_that_is_cut_is_opened_again(url: str) -> None:
    with Proxy(url) as proxy:
        async with opened(proxy.url) as on:
            state = await on.held()
            proxy.cut()
            assert (await on.load(state.id)).id == state.id
            proxy.cut()
            answer = await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),)))
            assert isinstance(answer, Committed)
            proxy.cut()
            on.store.beat(on.me.id, f.later(1))


async def test_a_database_that_is_away_is_unavailable_and_then_there_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "BACKOFF_MIN_S", 0.01)
    monkeypatch.setattr(ledgers, "BACKOFF_MAX_S", 0.02)
    with Proxy(url) as proxy:
        async with opened(proxy.url) as on:
            state = await on.held()
            proxy.down = True
            proxy.cut()
            commit = f.step_commit(state, proposals=(f.proposal(ONE),))
            with pytest.raises(Unavailable):
                await on.commit(commit)
            with pytest.raises(Unavailable):
                await on.load(state.id)
            assert (await on.store.info()).details["status"] == "down"
            proxy.down = False
            assert isinstance(await once_back(on, commit), Committed)


async def once_back(on: Scene, commit: StepCommit) -> Commit:
    while True:
        try:
            return await on.commit(commit)
        except Unavailable:
            await asyncio.sleep(0.01)


# What all share


async def test_a_rate_is_one_for_all(url: str) -> None:
    """Ten calls a second, asked for by two workers at once: every place is given once."""
    rate = Rate(limit=1, period_ms=100)
    async with opened(url) as one, opened(url) as two:
        wish = Reservation(name="local/maps", rate=rate, at=f.NOW)
        given = await asyncio.gather(*(on.store.reserve([wish]) for _ in range(10) for on in (one, two)))  # type: ignore[attr-defined]
        places = sorted(at for many in given for at in many)
        assert places == [f.NOW + 100 * n for n in range(20)]


async def test_an_owner_has_no_more_tasks_than_allowed_however_many_ask(url: str) -> None:
    async with opened(url) as one, opened(url) as two:
        wanted = [replace(f.new_task(owner="ana"), live_max=7) for _ in range(20)]
        answers = await asyncio.gather(
            *(on.store.create_tasks((new,)) for on, new in zip((one, two) * 10, wanted, strict=True)),
            return_exceptions=True,
        )
        assert sum(not isinstance(answer, Exception) for answer in answers) == 7


# Others who write


@pytest.mark.req("WF-28")
async def test_two_stores_never_claim_the_same_task(url: str) -> None:
    async with opened(url) as one, opened(url) as two:
        tasks = [await one.created() for _ in range(40)]
        taken = await asyncio.gather(
            *(on.store.claim_tasks(f.claim(on.me, 5)) for _ in range(6) for on in (one, two)),
        )
        claimed = [lease.lease.task for many in taken for lease in many]
        claimed += [lease.lease.task for on in (one, two) for lease in await on.claim()]
        assert sorted(claimed) == sorted(tasks)


async def test_the_owner_with_the_fewest_tasks_comes_first(url: str) -> None:
    async with opened(url) as on:
        many = [await on.created(owner="many") for _ in range(6)]
        few = [await on.created(owner="few") for _ in range(2)]
        first = [one.lease.task for one in await on.store.claim_tasks(f.claim(on.me, 4))]
        assert sorted(first) == sorted([*many[:2], *few])


async def test_what_another_wrote_is_seen_by_the_holder(url: str) -> None:
    async with opened(url) as holder, opened(url) as other:
        state = await holder.held()
        stale_commit = f.step_commit(state, proposals=(f.proposal(ONE),))
        _, opened_pause, _ = f.paused()
        command = f.command(await other.load(state.id), opened_pause)
        assert isinstance(await other.command(command), Committed)
        answer = await holder.commit(stale_commit)
        assert isinstance(answer, Stale)
        assert (answer.epoch, answer.worker, answer.last_seq) == (1, holder.me.id, 3)


@pytest.mark.req("WF-14", "WF-28")
async def test_two_who_sweep_at_once_move_a_task_once(url: str) -> None:
    async with opened(url) as dead, opened(url) as one, opened(url) as two:
        state = await dead.held()
        sweep = f.sweep(await one.load(state.id))
        answers = await asyncio.gather(*(on.sweep(sweep) for on in (one, two)))
        assert sorted(type(answer).__name__ for answer in answers) == ["Committed", "Stale"]
        late = await dead.commit(f.step_commit(state, proposals=(f.proposal(ONE),)))
        assert isinstance(late, Stale)
        assert late.epoch == 2
        await one.sound()


async def test_a_fenced_worker_never_returns(url: str) -> None:
    async with opened(url) as silent, opened(url) as on:
        state = await silent.held()
        clock = VirtualClock()
        assert await on.store.find_dead(on.me.id, Instant(clock.now() - 30_000), 10) == []
        (dead,) = await on.store.find_dead(on.me.id, Instant(clock.now() + 60_000), 10)
        assert dead.task == state.id
        with pytest.raises(LeaseLost):
            silent.store.beat(silent.me.id, clock.now())


async def test_the_line_of_all_journals_never_skips_a_commit_that_is_under_way(url: str) -> None:
    async with opened(url) as on:
        await on.created()
        last = await on.store.tail.last()
        assert last is not None
        with connect(url) as slow:
            read(slow, "begin", {"number": 0, "worker": "nobody", "idle": 10_000})
            taken = await on.created()
            assert await on.store.tail.read(last.place, 10) == [], "the slow one may still write a smaller place"
            read(slow, "commit")
        (line,) = await on.store.tail.read(last.place, 10)
        assert line.event.task == taken


async def test_what_waited_for_a_task_comes_after_what_it_waited_for(url: str) -> None:
    """The transaction that begins first may write last; in the line of all journals it stands last too."""
    async with opened(url) as one, opened(url) as two:
        state = await one.held()
        with connect(url) as rude:
            rude.execute("BEGIN")
            rude.execute("SELECT 1 FROM tasks WHERE id = %s FOR UPDATE", (state.id,))
            _, opened_pause, _ = f.paused()
            waiting = asyncio.ensure_future(two.command(f.command(state, opened_pause)))
            await blocked(url)
            rude.execute("UPDATE tasks SET last_seq = 3 WHERE id = %s", (state.id,))
            rude.execute(
                "INSERT INTO events (task, seq, at, type, body, hash)"
                " SELECT num, 3, 0, 'x', '{}', '' FROM tasks WHERE id = %s",
                (state.id,),
            )
            rude.execute("COMMIT")
        await waiting
        seqs = [line.event.seq for line in await one.store.tail.read(0, 10) if line.event.task == state.id]
        assert seqs == sorted(seqs)
        assert len(seqs) >= 3


async def blocked(url: str) -> None:
    """Until somebody waits for a lock."""
    with connect(url) as looking:
        while looking.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchall() == [(0,)]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_one_locked_task_delays_no_other(url: str) -> None:
    async with opened(url) as on:
        stuck, free = await on.held(), await on.held()
        with connect(url) as rude:
            rude.execute("BEGIN")
            rude.execute("SELECT 1 FROM tasks WHERE id = %s FOR UPDATE", (stuck.id,))
            commits = [f.step_commit(state, proposals=(f.proposal(ONE),)) for state in (stuck, free)]
            first = asyncio.ensure_future(on.commit(commits[0]))
            second = asyncio.ensure_future(on.commit(commits[1]))
            assert isinstance(await second, Committed)
            with pytest.raises(Unavailable):
                await first
            rude.execute("ROLLBACK")
        assert isinstance(await on.commit(commits[0]), Committed)
        assert await on.seqs(stuck.id) == [1, 2, 3]


async def test_a_value_that_the_database_cannot_hold_is_refused_alone(url: str) -> None:
    async with opened(url) as on:
        good, bad = f.new_task(), replace(f.new_task(), title="nul\0")
        answers = await asyncio.gather(
            on.store.create_tasks((good,)), on.store.create_tasks((bad,)), return_exceptions=True
        )
        assert isinstance(answers[0], list | tuple)
        assert "refuses" in str(answers[1])
        assert await on.seqs(good.id) == [Seq(1)]


# Whoever is frozen in the middle of a transaction


@pytest.mark.req("WF-28")
async def test_a_dead_workers_open_transaction_is_in_nobodys_way(url: str) -> None:
    """Its locks go when the server ends its transaction; until then its other tasks are moved without waiting."""
    async with opened(url) as on:
        locked, free = [await on.held() for _ in range(2)]
        with psycopg.connect(url) as frozen:
            frozen.execute("SELECT 1 FROM tasks WHERE id = %s FOR UPDATE", (locked.id,))
            swept = await asyncio.wait_for(on.store.sweep([f.sweep(locked), f.sweep(free)]), 60)
            assert [type(one) for one in swept] == [Stale, Committed]
        (again,) = await on.store.sweep([f.sweep(await on.load(locked.id))])
        assert isinstance(again, Committed)


async def test_who_was_frozen_in_the_middle_of_a_message_keeps_no_locks(url: str) -> None:
    """The server does not take it for idle: whoever fences its worker ends it."""
    async with opened(url, idle_ms=2000) as on:
        locked = await on.held()
        sweep, lock = f.sweep(locked), "SELECT 1 FROM tasks WHERE id = %s FOR UPDATE"
        with connect(url) as frozen, suppress(psycopg.OperationalError), frozen.pipeline():
            for statement, values in (("BEGIN", ()), (sql("open_batch"), {"idle": "1000"}), (lock, (locked.id,))):
                psycopg.Cursor(frozen).execute(statement, values)
            with connect(url) as other, suppress(psycopg.errors.LockNotAvailable):
                while True:
                    other.execute(f"{lock} NOWAIT", (locked.id,))
                    await asyncio.sleep(0.01)
            while not isinstance((await on.store.sweep([sweep]))[0], Committed):
                await on.store._end_fenced()  # type: ignore[attr-defined]


async def test_who_slept_while_its_store_was_moved_writes_nothing(url: str) -> None:
    with schema(migrated=False) as other:
        async with opened(url) as on:
            state = await on.held()
            with pytest.raises(StoreLocked, match="work on this store"), moving.leaving(url, f.later(1), 60_000):
                pass
            with moving.leaving(url, f.later(1), 0) as going, moving.arriving(other, f.later(1)) as coming:
                assert move(going, coming, "") == 1
            with pytest.raises(StoreRefused, match="not known here any more"):
                await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),)))
        with pytest.raises(StoreRefused, match="was moved to"):
            await PgStore(url, clock=VirtualClock()).open(f.worker())
        async with opened(other) as on:
            assert (await on.load(state.id)).seq == state.seq


async def test_a_transaction_that_says_nothing_more_is_ended_by_the_server(url: str) -> None:
    with connect(url) as connection:
        connection.execute(sql("begin"), {"number": 1, "worker": "w_frozen", "idle": 1})
        with suppress(psycopg.Error):
            while True:
                connection.execute("SELECT 1")
                await asyncio.sleep(0.05)
        assert connection.closed


@pytest.mark.req("S.1", "WF-6")
async def test_steps_can_be_seen_with_plain_sql(url: str) -> None:
    async with opened(url) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),), at=f.later(1))))
        commit = f.step_commit(await on.load(state.id), f.completed(ONE, {"n": 1}), proposals=(f.proposal(TWO),))
        done(await on.commit(commit))
        with connect(url) as connection:
            cursor = connection.execute("SELECT * FROM task_executions ORDER BY step_number")
            names, found = [column.name for column in cursor.description or ()], cursor.fetchall()
    at = "2027-01-15T08:00:0%d.000Z"
    assert found == [
        (f"{state.id}/one", state.id, 1, "one", "completed", at % 1, at % 0, '{"n":1}', None, 0, at % 0),
        (f"{state.id}/two", state.id, 2, "two", "running", at % 0, None, None, None, 0, at % 0),
        (f"{state.id}/three", state.id, 3, "three", "pending", None, None, None, None, 0, at % 0),
    ]
    assert names == [
        "id", "task_id", "step_number", "step_id", "status", "started_at", "completed_at", "result", "error_message",
        "retry_count", "created_at",
    ]  # fmt: skip


# What nobody can carry


async def test_a_task_whose_tools_no_living_worker_has_is_found(url: str) -> None:
    async with opened(url) as on:
        task = await on.created(at=f.later(1))
        assert await on.store.news.unclaimed(f.later(1)) == [], "it has not waited yet"  # type: ignore[union-attr]
        (found,) = await on.store.news.unclaimed(f.later(61))  # type: ignore[union-attr]
        assert (found.task, found.owner) == (task, "local")
        assert found.missing
        able = PgStore(url, clock=VirtualClock())
        await able.open(replace(f.worker(), tools=(*found.missing, "another.tool")))
        try:
            assert await on.store.news.unclaimed(f.later(61)) == []  # type: ignore[union-attr]
        finally:
            await able.close()
        (again,) = await on.store.news.unclaimed(f.later(61))  # type: ignore[union-attr]
        assert again == found, "whoever could has left"
