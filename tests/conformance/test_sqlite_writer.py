"""The writer: shared flushes, guards that follow the file, and fail-stop when the disk fails."""

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from everstep.adapters.stores.sql.desk import Desk
from everstep.adapters.stores.sqlite import ledger as ledgers
from everstep.adapters.stores.sqlite import readers
from everstep.adapters.stores.sqlite.connect import make_durable
from everstep.adapters.stores.sqlite.keeping import backup
from everstep.adapters.stores.sqlite.migrate import migrations
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.domain.errors import Conflict, StoreError, StoreFull, StoreRefused, Unavailable
from everstep.domain.ids import Seq, TaskId
from everstep.domain.rate import Rate
from everstep.domain.task import StepCommit
from everstep.ports.store import Committed, Stale, TaskFilter
from everstep.ports.traffic import Reservation
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import Scene, done, refused
from everstep.testing.conformance.store_traffic import traffic
from tests.conformance.sqlite_stage import opened, raw, rows


class Points:
    """A fault port that tests arm: block at a point, or raise there."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.raises: dict[str, Exception] = {}
        self.blocks: dict[str, threading.Event] = {}
        self.reached = threading.Event()

    def __call__(self, point: str) -> None:
        self.passed.append(point)
        if point in self.blocks:
            self.reached.set()
            self.blocks[point].wait(30)
        if point in self.raises:
            raise self.raises[point]


@pytest.fixture
def points() -> Points:
    return Points()


async def noted(on: Scene, task: TaskId, text: str) -> StepCommit:
    return f.step_commit(await on.load(task), f.note(text))


async def flushes(on: Scene) -> int:
    count = (await on.store.info()).details["flushes"]
    assert isinstance(count, int)
    return count


async def test_many_commits_share_a_flush(tmp_path: Path, points: Points) -> None:
    async with opened(tmp_path / "everstep.db", points) as on:
        states = [await on.held() for _ in range(101)]
        commits = [f.step_commit(state, proposals=(f.proposal(ONE),)) for state in states]
        before = await flushes(on)
        go_on = points.blocks["intent.commit.before"] = threading.Event()
        first = asyncio.create_task(on.commit(commits[0]))
        await asyncio.to_thread(points.reached.wait, 30)
        rest = [asyncio.create_task(on.commit(commit)) for commit in commits[1:]]
        await asyncio.sleep(0)
        go_on.set()
        for task in (first, *rest):
            done(await task)
        assert await flushes(on) - before == 2
        assert (await on.store.info()).details["largest_group"] == 100
        await on.sound()


async def test_nothing_is_seen_before_it_is_durable(tmp_path: Path, points: Points) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path, points) as on:
        state = await on.held()
        go_on = points.blocks["outcome.commit.before"] = threading.Event()
        writing = asyncio.create_task(on.commit(f.step_commit(state, f.note("x"))))
        await asyncio.to_thread(points.reached.wait, 30)
        assert await on.seqs(state.id) == [1, 2]
        assert not writing.done()
        writing.cancel()
        go_on.set()
        await asyncio.gather(writing, return_exceptions=True)
        done(await on.commit(await noted(on, (await on.held()).id, "after")))
        assert await on.seqs(state.id) == [1, 2, 3], "a cancelled caller's write happens all the same"


async def test_the_file_overrules_the_memory(tmp_path: Path) -> None:
    """Somebody wrote behind our back: the row count tells, and only the unit concerned is refused."""
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        states = [await on.held() for _ in range(3)]
        commits = [f.step_commit(state, proposals=(f.proposal(ONE),)) for state in states]
        with raw(path) as connection:
            connection.execute("UPDATE tasks SET epoch = 9 WHERE id = ?", (states[1].id,))
        answers = await on.store.commit_steps(commits)
        assert [type(answer) for answer in answers] == [Committed, Stale, Committed]
        assert refused(answers[1]).epoch == 9
        assert [await on.seqs(state.id) for state in states] == [[1, 2, 3], [1, 2], [1, 2, 3]]


async def test_a_seq_that_is_taken_is_refused_alone(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        states = [await on.held() for _ in range(2)]
        commits = [f.step_commit(state, proposals=(f.proposal(ONE),)) for state in states]
        with raw(path) as connection:
            connection.execute("UPDATE events SET seq = 3 WHERE task = 1 AND seq = 1")
        broken, good = await asyncio.gather(*(on.commit(one) for one in commits), return_exceptions=True)
        assert isinstance(broken, Exception)
        assert isinstance(good, Committed)


class Spoiler:
    """A unit that writes, remembers, and then fails."""

    areas = ()
    size_bytes = 1

    def __init__(self, task: TaskId) -> None:
        self.task = task

    def apply(self, desk: Desk) -> object:
        guard = desk.guard(self.task)
        assert guard is not None
        desk.change("put_meta", ("spoilt", "yes"))
        desk.guards.put(self.task, guard._replace(last_seq=Seq(99)))
        raise Conflict("spoilt")


async def test_a_unit_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        state = await on.held()
        assert isinstance(on.store, SqliteStore)
        writes = on.store._hold.writes
        spoilt, good = await asyncio.gather(writes.submit([Spoiler(state.id)]), on.created(), return_exceptions=True)
        assert (type(spoilt), type(good)) == (Conflict, str)
        assert rows(path, "SELECT * FROM meta WHERE key = 'spoilt'") == []
        done(await on.commit(f.step_commit(state, f.note("x"))))


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_failed_commit_is_forgotten_then_read_again(tmp_path: Path, points: Points, when: str) -> None:
    async with opened(tmp_path / "everstep.db", points) as on:
        state = await on.held()
        commit = f.step_commit(state, f.note("x"))
        points.raises[f"outcome.commit.{when}"] = Unavailable("struck")
        with pytest.raises(Unavailable, match="struck"):
            await on.commit(commit)
        points.raises.clear()
        if when == "before":
            done(await on.commit(commit))
        else:
            assert refused(await on.commit(commit)).last_seq == 3
        assert await on.seqs(state.id) == [1, 2, 3]
        await on.sound()


LEAVING = ("worker.commit.before", "worker.commit.after")


async def test_every_write_passes_its_points(tmp_path: Path, points: Points) -> None:
    async with opened(tmp_path / "everstep.db", points) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        done(await on.commit(f.step_commit(await on.load(state.id), f.completed(ONE))))
        done(await on.command(f.command(await on.load(state.id), f.note("x"))))
        await asyncio.to_thread(on.store.beat, on.me.id, f.later(1))
        done(await on.sweep(f.sweep(await on.load(state.id))))
        await traffic(on).reserve([Reservation(name="local/x", rate=Rate(limit=1, period_ms=1), at=f.later(1))])
        await traffic(on).set_halt(None)
        large = f.CODEC.seal("x" * 40_000)
        assert large.raw is not None
        await on.store.put_payloads([(large.digest, large.raw)])
        backup(tmp_path / "everstep.db", tmp_path / "copy.db", f.later(1), points)
    areas = ("create", "claim", "intent", "outcome", "command", "renew", "sweep", "rate", "halt")
    expected = [f"{area}.commit.{when}" for area in areas for when in ("before", "after")]
    expected += [f"artifact.write.{when}" for when in ("before", "mid", "after")]
    moves = 3 * len(migrations())
    assert points.passed[moves:] == [*expected, "backup.copy.before", "backup.copy.after", *LEAVING]
    assert points.passed[:moves] == [f"migrate.apply.{when}" for when in ("before", "mid", "after")] * len(migrations())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; without the right to mount one this is an error, not a pass."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def test_a_full_disk_stops_the_store_and_space_starts_it(small_disk: Path) -> None:
    async with opened(small_disk / "everstep.db") as on:
        state = await on.held()
        filler = small_disk / "filler"
        fill(filler)
        written = [2]
        with pytest.raises(StoreFull) as full:
            await write_on(on, state.id, written)
        assert full.value.code == "store_full"
        info = await on.store.info()
        assert info.details["status"] == "down"
        with pytest.raises(StoreError):
            await on.store.create_tasks((f.new_task(),))
        filler.unlink()
        await came_back(on)
        assert await on.seqs(state.id) == list(range(1, written[0] + 1))
        done(await on.commit(await noted(on, state.id, "again")))
        assert (await on.store.info()).details["status"] == "ok"
        await on.sound()


async def write_on(on: Scene, task: TaskId, written: list[int]) -> None:
    for _ in range(1000):
        done(await on.commit(await noted(on, task, "x" * 20_000)))
        written[0] += 1


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            file.truncate(max(0, path.stat().st_size - 64 * 1024))


async def came_back(on: Scene, within_s: float = 60) -> None:
    """Without a new start."""
    async with asyncio.timeout(within_s):
        while True:
            try:
                await on.created()
                break
            except StoreError:
                await asyncio.sleep(0.02)


async def test_a_read_only_disk_is_refused_in_our_words(small_disk: Path) -> None:
    async with opened(small_disk / "everstep.db") as on:
        task = await on.created()
    remount(small_disk, "ro")
    store = SqliteStore(small_disk / "everstep.db", clock=VirtualClock())
    with pytest.raises(Unavailable):
        await store.open(f.worker())
    remount(small_disk, "rw")
    async with opened(small_disk / "everstep.db") as on:
        assert (await on.load(task)).id == task


def remount(folder: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", folder], check=True)


async def test_after_an_input_output_error_nothing_is_believed(tmp_path: Path, points: Points) -> None:
    async with opened(tmp_path / "everstep.db", points) as on:
        state = await on.held()
        points.raises["outcome.commit.before"] = apsw.IOError("struck")
        with pytest.raises(Unavailable, match="disk fails"):
            await on.commit(f.step_commit(state, f.note("x")))
        points.raises.clear()
        with pytest.raises(Unavailable):
            await on.load(state.id)
        await came_back(on)
        assert await on.seqs(state.id) == [1, 2]
        done(await on.commit(await noted(on, state.id, "again")))
        await on.sound()


async def test_what_was_acknowledged_must_still_be_there(tmp_path: Path, points: Points) -> None:
    """A disk that forgot an acknowledged intent: the store stays closed and names the task."""
    path = tmp_path / "everstep.db"
    async with opened(path, points) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        points.raises["outcome.commit.before"] = apsw.IOError("struck")
        with pytest.raises(Unavailable):
            await on.commit(await noted(on, state.id, "x"))
        points.raises.clear()
        with raw(path) as connection:
            connection.execute("DELETE FROM events WHERE seq = 3")
            connection.execute("UPDATE tasks SET last_seq = 2")
        with pytest.raises(TimeoutError):
            await came_back(on, within_s=2)
        info = await on.store.info()
        assert (info.details["status"], state.id in str(info.details["reason"])) == ("down", True)
        assert isinstance(on.store, SqliteStore)
        assert on.store._hold.ledger.idle() is None, "there is nothing to try again"


async def test_a_foreign_lock_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        state = await on.held()
        with raw(path) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            writing = asyncio.create_task(on.commit(f.step_commit(state, f.note("x"))))
            await asyncio.sleep(0.2)
            assert not writing.done()
            connection.execute("ROLLBACK")
        done(await writing)


async def test_a_foreign_lock_is_not_waited_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "everstep.db"
    monkeypatch.setattr(ledgers, "BUSY_TRIES", 2)
    async with opened(path) as on:
        state = await on.held()
        commit = f.step_commit(state, f.note("x"))
        desk = on.store._hold.ledger._desk  # type: ignore[attr-defined]
        desk.connection.set_busy_timeout(1)
        with raw(path) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            with pytest.raises(Unavailable, match="another process"):
                await on.commit(commit)
            connection.execute("ROLLBACK")
        done(await on.commit(commit))


async def test_the_wal_is_cut_when_it_is_long(tmp_path: Path, points: Points, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "everstep.db"
    monkeypatch.setattr(ledgers, "WAL_BYTES_MAX", 100_000)
    monkeypatch.setattr(ledgers, "WAL_LOOK_EVERY", 1)
    async with opened(path, points) as on:
        state = await on.held()
        for number in range(30):
            done(await on.commit(await noted(on, state.id, f"{number}" * 3000)))
        assert "checkpoint.truncate.after" in points.passed
        await on.sound()


async def test_a_disk_that_fails_while_the_wal_is_cut_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At rest, with nobody there to hear of it: the writer lives on, and opens the file again."""
    monkeypatch.setattr(ledgers, "WAL_BYTES_MAX", 1)
    monkeypatch.setattr(ledgers, "WAL_LOOK_EVERY", 1)
    full, failed, real = threading.Event(), threading.Event(), ledgers.read  # type: ignore[attr-defined]

    def read(connection: apsw.Connection, name: str, *values: Any) -> Any:
        if name == "truncate_wal" and full.is_set():
            full.clear()
            failed.set()
            raise apsw.FullError("database or disk is full")
        return real(connection, name, *values)

    monkeypatch.setattr(ledgers, "read", read)
    async with opened(tmp_path / "everstep.db") as on:
        state = await on.held()
        full.set()
        await asyncio.wait_for(later(on, state.id), 60)  # the writer may have been at rest before it
        assert await asyncio.to_thread(failed.wait, 60)
        await asyncio.wait_for(later(on, state.id), 60)
        await on.sound()


async def later(on: Scene, task: TaskId) -> None:
    """As soon as the store takes it."""
    while True:
        try:
            done(await on.commit(await noted(on, task, "later")))
        except StoreFull:
            await asyncio.sleep(0.05)
        else:
            return


async def test_slow_reads_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_STEPS_BETWEEN_LOOKS", 1)
    async with opened(tmp_path / "everstep.db") as on:
        task = await on.created()
        await on.load(task)
        monkeypatch.setattr(readers, "READ_MAX_S", -1)
        with pytest.raises(Unavailable, match="too long"):
            await on.load(task)


def test_less_durability_than_promised_is_refused() -> None:
    with pytest.raises(StoreRefused) as refusal:
        make_durable(apsw.Connection(":memory:"), "power")
    assert refusal.value.code == "durability_not_met"


@pytest.mark.parametrize("place", [0, 4096, 5 * 4096])
async def test_damage_is_told_in_our_words(tmp_path: Path, place: int) -> None:
    path = tmp_path / "everstep.db"
    async with opened(path) as on:
        for _ in range(20):
            await on.created()
    assert rows(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"\xff" * 4096)
    with pytest.raises(StoreError):
        await looked_through(path)


async def looked_through(path: Path) -> None:
    async with opened(path) as on:
        problems = [str(flaw) for flaw in await on.store.check()]
        await on.store.list_tasks(TaskFilter())
        if problems:
            raise Unavailable(f"{len(problems)} problems found")


async def test_a_damaged_payload_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path / "everstep.db") as on:
        large = f.CODEC.seal("x" * 40_000)
        assert large.raw is not None
        await on.store.put_payloads([(large.digest, large.raw)])
        kept = tmp_path / "artifacts" / large.digest[7:9] / large.digest[7:]
        kept.write_bytes(b"other")
        with pytest.raises(Unavailable, match="damaged"):
            await on.store.get_payloads([large.digest])
