"""One file, one engine: the lock, the files that are refused untouched, modes, copies, and what a look inside finds."""

import asyncio
import json
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from everstep.adapters.stores.named import store_of
from everstep.adapters.stores.sqlite import lock as locks
from everstep.adapters.stores.sqlite.connect import APPLICATION_ID
from everstep.adapters.stores.sqlite.keeping import backup
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.domain.errors import Conflict, EngineClosed, StoreError, StoreLocked, StoreRefused
from everstep.domain.ids import Instant
from everstep.ports.fault import no_fault
from everstep.ports.store import TaskFilter
from everstep.settings import load_settings
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE, TWO
from everstep.testing.conformance.stage import done
from tests.conformance.sqlite_stage import opened, raw, rows

HOLD = """
import sys
from pathlib import Path
from everstep.adapters.stores.sqlite.lock import Lock
Lock(Path(sys.argv[1])).acquire({"pid": int(sys.argv[2] or __import__("os").getpid()), "command": "everstep run brief"})
print("held", flush=True)
sys.stdin.read()
"""


def hold(path: Path, pid: str = "") -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLD, str(path), pid]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def around(path: Path) -> Path:
    """The same file by another name."""
    return Path(os.path.relpath(path))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}


async def test_a_second_engine_is_refused_and_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path, worker=f.worker(pid=os.getpid())) as on:
        task = await on.created()
        before = snapshot(tmp_path)
        began = time.monotonic()
        for other in (path, around(path)):
            with pytest.raises(StoreLocked) as refused:
                await SqliteStore(other, clock=VirtualClock()).open(f.worker())
            assert str(os.getpid()) in refused.value.message
            assert sys.argv[0] in refused.value.message
        link = tmp_path / "elsewhere.db"
        link.symlink_to(path)
        with pytest.raises(StoreLocked):
            await SqliteStore(link, clock=VirtualClock()).open(f.worker())
        assert time.monotonic() - began < 5
        link.unlink()
        assert snapshot(tmp_path) == before
        assert (await on.load(task)).id == task
    async with opened(path) as on:
        assert (await on.load(task)).id == task


async def test_the_lock_tells_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        said = json.loads((tmp_path / "everstep.lock").read_text())
        assert set(said) == {"pid", "host", "incarnation", "started_at", "command", "url", "socket", "version"}
        assert (said["incarnation"], said["started_at"]) == (on.me.id, "2027-01-15T08:00:00.000Z")
        assert isinstance(on.store, SqliteStore)
        on.store.announce(url="http://127.0.0.1:7717", socket=str(tmp_path / "control.sock"))
        said = json.loads((tmp_path / "everstep.lock").read_text())
        assert (said["url"], said["pid"]) == ("http://127.0.0.1:7717", on.me.pid)


async def test_a_killed_holder_is_followed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    holder = hold(path)
    with pytest.raises(StoreLocked, match="everstep run brief"):
        await SqliteStore(path, clock=VirtualClock()).open(f.worker())
    holder.kill()
    holder.communicate()
    async with opened(path) as on:
        assert (await on.store.info()).tasks["queued"] == 0


DIES_IN_A_NEW_FILE = """
import os, sys
import apsw
db = apsw.Connection(sys.argv[1])
db.execute(f"PRAGMA application_id = {sys.argv[2]}; PRAGMA cache_size = 1; BEGIN IMMEDIATE; CREATE TABLE half (a)")
for _ in range(200):
    db.execute("INSERT INTO half VALUES (randomblob(4000))")
os._exit(9)
"""


def half_made(path: Path) -> Path:
    """The file holds half a transaction, and a journal of the old kind says how to take it back."""
    subprocess.run([sys.executable, "-c", DIES_IN_A_NEW_FILE, path, str(APPLICATION_ID)], check=False)
    assert Path(f"{path}-journal").stat().st_size > 0
    return path


async def test_a_death_while_the_file_was_new_is_mended(tmp_path: Path) -> None:
    path = half_made(tmp_path / "everstep.db")
    async with opened(path) as on:
        await on.created()
        await on.sound()
    assert rows(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]


async def test_a_journal_that_a_power_cut_left_without_its_file_is_no_obstacle(tmp_path: Path) -> None:
    path = half_made(tmp_path / "everstep.db")
    path.unlink()
    async with opened(path) as on:
        await on.created()
        await on.sound()


async def test_a_lock_without_a_living_owner_is_waited_for_a_moment(tmp_path: Path) -> None:
    """The holder says a pid that is gone (a child kept the lock): refused only after the time dying may take."""
    path = tmp_path / "everstep.db"
    holder = hold(path, pid="999999999")
    opening = asyncio.create_task(SqliteStore(path, clock=VirtualClock()).open(f.worker()))
    with pytest.raises(StoreLocked):
        await opening
    holder.communicate("")
    async with opened(path):
        pass


async def test_hard_links_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path):
        pass
    (tmp_path / "twin.db").hardlink_to(path)
    for name in ("everstep.db", "twin.db"):
        with pytest.raises(StoreRefused, match="hard links"):
            await SqliteStore(tmp_path / name, clock=VirtualClock()).open(f.worker())


async def test_the_operator_may_vouch_for_a_file_system_in_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_magic", lambda _: locks._FUSE)
    clock, said = VirtualClock(), {"store": str(tmp_path / "everstep.db")}
    with pytest.raises(StoreRefused) as refused:
        await store_of(load_settings(said, env={}), clock, no_fault).open(f.worker())
    assert "engine.allow_fuse = true" in (refused.value.what_to_do or "")
    store = store_of(load_settings({**said, "engine.allow_fuse": True}, env={}), clock, no_fault)
    await store.open(f.worker())
    await store.close()


@pytest.mark.parametrize(("magic", "name"), sorted(locks._REFUSED.items()))
def test_network_file_systems_are_refused(tmp_path: Path, magic: int, name: str) -> None:
    with pytest.raises(StoreRefused, match=name):
        locks.resolve(tmp_path / "x" / "everstep.db", allow_fuse=False, magic=lambda _: magic)
    if name == "FUSE":
        path = locks.resolve(tmp_path / "everstep.db", allow_fuse=True, magic=lambda _: magic)
        assert path == tmp_path / "everstep.db"


def test_this_file_system_tells_what_it_is(tmp_path: Path) -> None:
    assert locks._magic(tmp_path) not in (0, *locks._REFUSED)


@pytest.mark.req("WF-12")
async def test_a_newer_store_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        await on.created()
    with raw(path) as connection:
        connection.execute("PRAGMA user_version = 99")
        before = snapshot(tmp_path)
        with pytest.raises(StoreRefused, match="schema 99"):
            await SqliteStore(path, clock=VirtualClock()).open(f.worker())
        after = snapshot(tmp_path)
        assert {name: after[name] for name in before if not name.endswith("-shm")} == {
            name: data for name, data in before.items() if not name.endswith("-shm")
        }


async def test_foreign_files_are_left_untouched(tmp_path: Path) -> None:
    foreign = {"notes.db": b"dear diary" * 100, "short.db": b"x"}
    for name, data in foreign.items():
        (tmp_path / name).write_bytes(data)
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = contents(tmp_path)
    for name in before:
        with pytest.raises(StoreRefused, match="untouched"):
            await SqliteStore(tmp_path / name, clock=VirtualClock()).open(f.worker())
    with pytest.raises(StoreRefused):
        await SqliteStore(tmp_path, clock=VirtualClock()).open(f.worker())
    assert contents(tmp_path) == before


async def test_a_migration_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path):
        pass
    with raw(path) as connection:
        connection.execute("UPDATE migrations SET checksum = 'x'")
    with pytest.raises(StoreRefused, match="migration 1"):
        await SqliteStore(path, clock=VirtualClock()).open(f.worker())


async def test_files_are_ours_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        path = tmp_path / "deep" / ".everstep" / "everstep.db"
        async with opened(path) as on:
            large = f.CODEC.seal("x" * 40_000)
            assert large.raw is not None
            await on.store.put_payloads([(large.digest, large.raw)])
            await on.created()
            modes = {entry: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.rglob("*")}
            kept = path.parent / "artifacts" / large.digest[7:9] / large.digest[7:]
            assert kept.read_bytes() == large.raw
            for entry, mode in modes.items():
                assert mode == (0o700 if entry.is_dir() else 0o600) or entry.name == ".gitignore", entry
            assert {"everstep.db", "everstep.db-wal", "everstep.lock"} <= {entry.name for entry in modes}
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert (path.parent / ".gitignore").read_text() == "*\n"
    finally:
        os.umask(old)


async def test_the_file_says_whose_it_is_and_any_sqlite_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        task = await on.created()
        assert path.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big")
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            assert connection.execute("SELECT id FROM tasks").fetchall() == [(task,)]
        connection.close()


class WatchedClock(VirtualClock):
    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()

    async def sleep_until(self, at: Instant) -> None:
        self.asleep.set()
        await super().sleep_until(at)


async def test_a_lock_that_moved_waits_for_the_last_beat(tmp_path: Path) -> None:
    """The same database through another lock file: nobody knows whether its holder is dead, until it is silent."""
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        await on.created()
    with raw(path) as connection:
        connection.execute("UPDATE workers SET released_at = NULL, heartbeat_at = ?", (f.later(0),))
        connection.execute("UPDATE meta SET value = '0:0' WHERE key = 'lock'")
    clock = WatchedClock()
    store = SqliteStore(path, clock=clock)
    opening = asyncio.create_task(store.open(f.worker()))
    await clock.asleep.wait()
    assert not opening.done()
    await clock.advance("31s")
    await opening
    await store.close()
    async with opened(path):
        pass


def in_child(store: SqliteStore, queue: "multiprocessing.SimpleQueue[str]") -> None:
    async def ask() -> None:
        for work in (store.load_tasks(()), store.create_tasks((f.new_task(),)), store.get_payloads(())):
            try:
                await work
            except EngineClosed:
                queue.put("refused")
            else:
                queue.put("answered")

    asyncio.run(ask())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_store_does_not_cross_a_fork(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        task = await on.created()
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=in_child, args=(on.store, queue))
        child.start()
        await asyncio.to_thread(child.join, 30)
        assert [queue.get() for _ in range(3)] == ["refused"] * 3
        assert child.exitcode == 0
        with pytest.raises(StoreLocked):
            await SqliteStore(path, clock=VirtualClock()).open(f.worker())
        done(await on.commit(f.step_commit(await on.held(), f.note("still here"))))
        assert (await on.load(task)).id == task


async def test_a_copy_is_whole_and_says_that_it_is_one(tmp_path: Path) -> None:
    path, target = tmp_path / "everstep.db", tmp_path / "copy" / "everstep.db"
    target.parent.mkdir()
    async with opened(path) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        backup(path, target, f.NOW)
        assert "copied_at" not in (await on.store.info()).details
        with pytest.raises(Conflict):
            backup(path, target, f.NOW)
        before = await on.load(state.id)
    assert [entry.name for entry in target.parent.iterdir()] == ["everstep.db"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    async with opened(target) as on:
        assert await on.load(state.id) == before
        assert (await on.store.info()).details["copied_at"] == "2027-01-15T08:00:00.000Z"
        await on.sound()


DAMAGE = {
    "status is 'paused'": "UPDATE tasks SET status = 'paused'",
    "epoch is 9": "UPDATE tasks SET epoch = 9",
    "done is 3": "UPDATE tasks SET done = 3",
    "seq 3 stands where 2 should": "DELETE FROM events WHERE seq = 2",
    "last_seq is 7": "UPDATE tasks SET last_seq = 7",
    "no journal": "DELETE FROM events",
    "events belong to no task": "UPDATE events SET task = 99 WHERE seq = 3",
    "the columns differ": "UPDATE events SET step = 'other' WHERE seq = 3",
    "seq 3: not an event": "UPDATE events SET body = '{}' WHERE seq = 3",
    "epoch 0 follows 0": "UPDATE events SET body = replace(body, '\"epoch\":1', '\"epoch\":0') WHERE seq = 2",
    "open pauses are": "UPDATE pauses SET status = 'answered'",
}


@pytest.mark.parametrize(("finding", "damage"), DAMAGE.items(), ids=[text.replace(" ", "_") for text in DAMAGE])
async def test_a_check_names_the_damage(tmp_path: Path, finding: str, damage: str) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        state = await on.held()
        _, asked, _ = f.paused()
        done(await on.commit(f.step_commit(state, asked)))
        await on.sound()
        with raw(path) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            connection.execute(damage)
        problems = [str(flaw) for flaw in await on.store.check()]
    assert any(finding in problem for problem in problems), problems


@pytest.mark.req("WF-22")
async def test_unknown_words_are_refused_on_reading(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        held = await on.held()
        free = await on.created()
        with raw(path) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute("UPDATE tasks SET status = 'dreaming'")
            connection.execute("UPDATE events SET body = replace(body, 'queued', 'dreaming') WHERE seq = 2")
        with pytest.raises(StoreRefused, match="dreaming"):
            await on.store.list_tasks(TaskFilter())
        with pytest.raises(StoreError, match="dreaming"):
            await on.load(held.id)
        seen = await on.load(free)
        with pytest.raises(StoreRefused, match="dreaming"):
            await on.command(f.command(seen, f.note("x")))


@pytest.mark.req("S.1", "WF-6")
async def test_steps_can_be_seen_with_plain_sql(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),), at=f.later(1))))
        commit = f.step_commit(await on.load(state.id), f.completed(ONE, {"n": 1}), proposals=(f.proposal(TWO),))
        done(await on.commit(commit))
        found = rows(path, "SELECT * FROM task_executions ORDER BY step_number")
    at = "2027-01-15T08:00:0%d.000Z"
    assert found == [
        (f"{state.id}/one", state.id, 1, "one", "completed", at % 1, at % 0, '{"n":1}', None, 0, at % 0),
        (f"{state.id}/two", state.id, 2, "two", "running", at % 0, None, None, None, 0, at % 0),
        (f"{state.id}/three", state.id, 3, "three", "pending", None, None, None, None, 0, at % 0),
    ]


async def test_the_dead_of_long_ago_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    for day in (0, 1, 20):
        async with opened(path, worker=f.worker(at=Instant(f.NOW + day * 86_400_000))):
            pass
    assert len(rows(path, "SELECT id FROM workers")) == 1


# --- the audit chain ---


@pytest.mark.req("Dep.3")
@pytest.mark.parametrize(
    ("edit", "what"),
    [
        (
            'UPDATE events SET body = replace(body, \'"summary":null\', \'"summary":"x"\') WHERE seq = 4',
            "seq 4: the audit",
        ),
        ("UPDATE events SET body = replace(body, 'local', 'other') WHERE seq = 1", "seq 1: the audit"),
        ("UPDATE events SET hash = NULL WHERE seq = 3", "seq 3: the audit"),
        ("UPDATE events SET hash = (SELECT hash FROM events WHERE seq = 3) WHERE seq = 2", "seq 2: the audit"),
        ("DELETE FROM events WHERE seq = 3", "seq 4 stands where 3 should"),
    ],
)
async def test_whoever_edits_a_journal_leaves_a_broken_chain(tmp_path: Path, edit: str, what: str) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        done(await on.commit(f.step_commit(await on.load(state.id), f.completed(ONE), proposals=(f.proposal(TWO),))))
        assert await on.store.check() == []
    with raw(path) as connection:
        list(connection.execute(edit))
        assert connection.changes() == 1
    async with opened(path) as on:
        problems = [str(flaw) for flaw in await on.store.check()]
        assert any(what in line for line in problems), problems


async def test_with_a_key_only_its_owner_can_forge_a_chain(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    clock = VirtualClock()
    keyed = SqliteStore(path, clock=clock, audit_key="secret")
    await keyed.open(f.worker())
    await keyed.create_tasks((f.new_task(),))
    assert await keyed.check() == []
    await keyed.close()
    plain = SqliteStore(path, clock=clock)
    await plain.open(f.worker())
    (flaw,) = await plain.check()
    await plain.close()
    assert (flaw.seq, "audit chain" in flaw.what) == (1, True)


async def test_a_cut_tail_shows_in_the_head(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        await on.held()
        before = (await on.store.info(whole=True)).details["audit_head"]
    with raw(path) as connection:
        list(connection.execute("DELETE FROM events WHERE seq = 2; UPDATE tasks SET last_seq = 1"))
    async with opened(path) as on:
        assert (await on.store.info(whole=True)).details["audit_head"] != before
