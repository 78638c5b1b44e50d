"""A fleet that is killed, frozen, cut off and left without its database loses nothing and does nothing twice."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from everstep.torture.history import read_effects
from tests.fault.fleet import LEASE_S, Fleet
from tests.postgres import Server, schema, server_url
from tests.proxy import Proxy


@asynccontextmanager
async def manned(fleet: Fleet, count: int) -> AsyncIterator[Fleet]:
    fleet.hire(count, "--name", "twin")
    try:
        await until(lambda: fleet.ready >= count)
        yield fleet
    finally:
        fleet.dismiss()


def log_of(fleet: Fleet) -> str:
    """All that is kept of it, the oldest first."""
    files = (fleet.folder / ".everstep" / "logs").glob("everstep.log*")
    return "".join(file.read_text(encoding="utf-8") for file in sorted(files, reverse=True))


async def progress(fleet: Fleet, lines: int) -> None:
    """Until so many effects were made or ended."""
    await until(lambda: len(read_effects(fleet.effects)) >= lines)


async def until(true: Callable[[], bool]) -> None:
    while not true():  # noqa: ASYNC110 -- other processes write
        await asyncio.sleep(0.02)


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    one.start()
    try:
        yield one
    finally:
        one.stop()


@pytest.mark.req("WF-13", "WF-14", "WF-28")
async def test_f20_f25_f26_five_twins_are_killed_frozen_and_left_without_a_database(
    tmp_path: Path, server: Server
) -> None:
    tasks = 100
    with schema(server.url) as url:
        fleet = Fleet(tmp_path, url, call_s=0.02)
        async with manned(fleet, 5), fleet.engine() as engine:
            await fleet.submit(engine, tasks)
            await progress(fleet, 80)
            frozen = fleet.workers[0]
            freezing = asyncio.create_task(fleet.stop(frozen, 1.5 * LEASE_S))
            fleet.kill(fleet.workers[1])
            await progress(fleet, 160)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await freezing
            fleet.kill(fleet.workers[2])
            await fleet.finish(engine, tasks)
            assert frozen.poll() is None, "it was frozen, not killed"
            await until(lambda: "joined again" in log_of(fleet))
            ends = fleet.dismiss()
        assert set(ends) <= {0, 6, -15}, "hired without a database: refused; at the very end: not begun yet"
        assert fleet.judge() == []


async def test_f22_f23_a_wire_that_is_cut_and_swallows_answers(tmp_path: Path) -> None:
    tasks = 30
    with schema() as url, Proxy(url) as proxy:
        fleet = Fleet(tmp_path, url, call_s=0.01, worker_url=proxy.url)
        async with manned(fleet, 2), fleet.engine() as engine:
            await fleet.submit(engine, tasks)
            for turn in range(12):
                await progress(fleet, 10 + 30 * turn)
                proxy.cut_commit("before" if turn % 2 else "after")
                await until(partial(_more, proxy, turn))
                if turn % 4 == 3:
                    proxy.cut()
            await fleet.finish(engine, tasks)
        assert fleet.judge() == []


def _more(proxy: Proxy, than: int) -> bool:
    return proxy.cuts > than


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[str]:
    """A database of its own behind a pgbouncer in transaction mode; no options pass through it."""
    pgbouncer = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    if not Path(pgbouncer).exists():
        pytest.fail("no pgbouncer: install the system's package")
    said = urlsplit(server_url())
    name = f"pooled_{tmp_path.name}".replace("-", "_").lower()[:50]
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path / "pooler"
    folder.mkdir()
    (folder / "users.txt").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{name} = host=127.0.0.1 port={said.port} dbname={name}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = trust\n"
        f"auth_file = {folder / 'users.txt'}\npool_mode = transaction\ndefault_pool_size = 4\nunix_socket_dir =\n"
    )
    folder.chmod(0o777)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.owner() == "root" and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    with (folder / "log").open("wb") as log:
        pooler = subprocess.Popen(
            [
                pgbouncer,
                "-q",
                *(["-u", "nobody"] if os.getuid() == 0 else []),
                str(folder / "pgbouncer.ini"),
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/{name}"
    finally:
        pooler.terminate()
        pooler.wait(10)
        with psycopg.connect(server_url(), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


async def test_behind_pgbouncer_in_transaction_mode(tmp_path: Path, pooled: str) -> None:
    """No session state: statements of one connection meet other server processes all the time."""
    fleet = Fleet(tmp_path, pooled)
    migrated = await asyncio.to_thread(fleet.call, "db", "migrate", "--yes", "--json")
    assert migrated.returncode == 0, migrated.stderr
    assert json.loads(migrated.stdout)["steps"] >= 1
    async with manned(fleet, 2), fleet.engine() as engine:
        await fleet.submit(engine, 20)
        await fleet.finish(engine, 20)
        assert set(fleet.dismiss()) == {0}
    assert fleet.judge() == []
