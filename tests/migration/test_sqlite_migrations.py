"""The schema moves forward and back without losing anything, and its one readable copy tells the truth."""

import re
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from everstep.adapters.stores.sql.migrations import Migration
from everstep.adapters.stores.sqlite import hold, opening
from everstep.adapters.stores.sqlite import migrate as m
from everstep.adapters.stores.sqlite.migrate import migrate, migrate_down, migrations
from everstep.domain.errors import StoreFull
from everstep.domain.ids import Instant
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import done
from tests.conformance.sqlite_stage import opened, raw, rows

NOW = len(migrations())
NEXT = Migration(
    number=NOW + 1,
    name="imagined",
    up=f"ALTER TABLE tasks ADD COLUMN mood TEXT; CREATE TABLE moods (mood TEXT); PRAGMA user_version = {NOW + 1};",
    down=f"DROP TABLE moods; ALTER TABLE tasks DROP COLUMN mood; PRAGMA user_version = {NOW};",
)
AT = Instant(1)


def fingerprint(connection: apsw.Connection) -> list[tuple[str, ...]]:
    """The schema, without comments and layout."""
    found = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name")
    return [(*names, re.sub(r"\s+", "", re.sub(r"--.*", "", sql))) for *names, sql in found]


def forward(connection: apsw.Connection, known: tuple[Migration, ...]) -> int:
    return migrate(connection, AT, known=known, backup=lambda _: None)


def version(connection: apsw.Connection) -> object:
    return connection.pragma("user_version")


@pytest.mark.req("WF-4")
def test_schema_is_the_sum_of_the_migrations() -> None:
    text = (files("everstep.adapters.stores.sqlite") / "schema.sql").read_text(encoding="utf-8")
    with closing(apsw.Connection(":memory:")) as summed, closing(apsw.Connection(":memory:")) as written:
        assert forward(summed, migrations()) == len(migrations())
        list(written.execute(text))
        assert fingerprint(summed) == fingerprint(written)
        assert version(summed) == version(written) == len(migrations())


@pytest.mark.req("WF-23")
@pytest.mark.parametrize("number", [one.number for one in migrations()])
def test_up_down_up(number: int) -> None:
    known = migrations()[:number]
    with closing(apsw.Connection(":memory:")) as connection:
        forward(connection, known[:-1])
        before = fingerprint(connection)
        forward(connection, known)
        after = fingerprint(connection)
        migrate_down(connection, number - 1, known=known)
        assert (fingerprint(connection), version(connection)) == (before, number - 1)
        forward(connection, known)
        assert (fingerprint(connection), version(connection)) == (after, number)


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    """A store with a task in the middle of its work."""
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
    return path


def contents(path: Path) -> list[object]:
    return [rows(path, "SELECT id, status, last_seq FROM tasks"), rows(path, "SELECT task, seq, body FROM events")]


@pytest.mark.req("WF-23")
def test_data_are_kept_on_the_way_there_and_back(store: Path) -> None:
    before = contents(store)
    known = (*migrations(), NEXT)
    with raw(store) as connection:
        first = fingerprint(connection)
        assert forward(connection, known) == 1
        second = fingerprint(connection)
        assert (second != first, contents(store)) == (True, before)
        migrate_down(connection, len(migrations()), known=known)
        assert (fingerprint(connection), contents(store)) == (first, before)
        assert forward(connection, known) == 1
        assert (fingerprint(connection), contents(store)) == (second, before)
        assert forward(connection, known) == 0


def test_a_crash_inside_leaves_the_old_schema(store: Path) -> None:
    def strike(point: str) -> None:
        if point == "migrate.apply.mid":
            raise StoreFull(point)

    known = (*migrations(), NEXT)
    with raw(store) as connection:
        before = fingerprint(connection)
        with pytest.raises(StoreFull):
            migrate(connection, AT, known=known, backup=lambda _: None, fault=strike)
        assert (fingerprint(connection), version(connection)) == (before, len(migrations()))
        assert forward(connection, known) == 1


async def test_a_store_is_copied_before_it_is_migrated(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(store)
    for room in (opening, hold):
        monkeypatch.setattr(room, "migrations", lambda: (*migrations(), NEXT))
    async with opened(store) as on:
        assert (await on.store.info()).schema_version == NEXT.number
        await on.sound()
    (copy,) = (store.parent / "backups").iterdir()
    assert copy.name == f"everstep-schema{len(migrations())}-{f.NOW}.db"
    assert contents(copy) == before
    assert rows(copy, "SELECT value FROM meta WHERE key = 'copied_at'") == [("2027-01-15T08:00:00.000Z",)]
    monkeypatch.undo()
    async with opened(copy) as on:
        assert (await on.store.info()).schema_version == len(migrations())
        await on.sound()


def test_a_new_file_is_ours_from_its_first_page(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    assert m.make_file(path)
    m.refuse_foreign(path)
    assert not m.make_file(path)
    assert m.version_of(path, migrations()) == 0


@pytest.mark.req("WF-23")
async def test_a_store_of_the_first_schema_goes_on_and_its_new_lines_are_linked(store: Path) -> None:
    with raw(store) as connection:
        migrate_down(connection, 1, known=migrations())
    ((task,),) = rows(store, "SELECT id FROM tasks")
    async with opened(store) as on:
        await on.sound()
        (dead,) = await on.store.find_dead(on.me.id, f.later(0), 10)
        done(await on.sweep(f.sweep(await on.load(dead.task))))
        await on.sound()
    links = rows(store, "SELECT hash IS NULL FROM events ORDER BY seq")
    assert links == [*[(1,)] * (len(links) - 1), (0,)]
    with raw(store) as connection:
        list(connection.execute("UPDATE events SET hash = NULL"))
    async with opened(store) as on:
        assert [(flaw.task, flaw.seq) for flaw in await on.store.check()] == [(task, len(links))]
