"""Stories of the store suite, told again to whatever source this process was started with.

    python tests/fault/retold.py STORY…

The detector of mutants that no single task of ours can show. Exits with 1 and names the first story that fails.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

from everstep.adapters.stores.sqlite.sql import sql
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.ports.store import Store, Worker
from everstep.testing.clock import VirtualClock
from everstep.testing.conformance.store import CASES


@dataclass
class Rig:
    """A SQLite file that can be opened again and again."""

    path: Path

    async def open(self, worker: Worker) -> Store:
        store = SqliteStore(self.path, clock=VirtualClock())
        await store.open(worker)
        return store

    async def register(self, worker: Worker) -> None:
        columns = (worker.id, worker.name, worker.host, worker.pid, worker.version, worker.started_at)
        connection = apsw.Connection(str(self.path))
        connection.execute(sql("insert_worker"), (*columns, worker.heartbeat_at))
        connection.close()


async def tell(story: Callable[[Rig], Awaitable[None]], rig: Rig) -> None:
    """One of them."""
    await story(rig)


def main(stories: list[str]) -> int:
    """Tell them, in this order."""
    cases = {case.story.__name__: case.story for case in CASES}
    for name in stories:
        with tempfile.TemporaryDirectory(prefix="everstep-retold-") as folder:
            try:
                asyncio.run(tell(cases[name], Rig(Path(folder) / "everstep.db")))
            except Exception as error:  # noqa: BLE001 -- however it fails, it is found
                print(f"{name}: {type(error).__name__} {error}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
