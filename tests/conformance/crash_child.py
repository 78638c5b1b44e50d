"""A process that is meant to die: it tells its whole story to a store, and says what was acknowledged."""

import asyncio
import json
import os
import sys
from pathlib import Path

from everstep.adapters.clock import SystemClock
from everstep.adapters.stores.sqlite import ledger
from everstep.adapters.stores.sqlite.keeping import backup
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.domain import events as e
from everstep.domain.events import Draft
from everstep.domain.ids import TaskId
from everstep.domain.states import TaskStatus
from everstep.ports.store import Committed
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE, TWO
from everstep.testing.conformance.stage import Scene, done
from everstep.testing.crash import fault_from_env


def tell(**fact: object) -> None:
    """Acknowledged: from here on it must never be lost."""
    print(json.dumps(fact), flush=True)


def told(task: TaskId, answer: Committed) -> None:
    tell(task=task, last_seq=answer.last_seq)


async def story(folder: Path) -> None:
    store = SqliteStore(folder / "everstep.db", clock=SystemClock(), fault=fault_from_env())
    me = f.worker(pid=os.getpid())
    await store.open(me)
    on = Scene(store, me)
    large = f.CODEC.seal({"text": "x" * 50_000})
    assert large.raw is not None
    await store.put_payloads([(large.digest, large.raw)])
    tell(payload=large.digest)
    first, second = await on.created(key="first"), await on.created(key="second")
    for task in (first, second):
        tell(task=task, last_seq=1)
    for one in await on.claim():
        tell(task=one.lease.task, last_seq=one.last_seq)
    told(first, done(await on.commit(f.step_commit(await on.load(first), proposals=(f.proposal(ONE),)))))
    outcome = f.step_commit(await on.load(first), f.completed(ONE, large.value), proposals=(f.proposal(TWO),))
    told(first, done(await on.commit(outcome)))
    store.beat(me.id, f.later(5))
    told(second, done(await on.command(f.command(await on.load(second), Draft(body=e.TaskCancelling())))))
    told(second, done(await on.sweep(f.sweep(await on.load(second)))))
    assert (await on.load(second)).status is TaskStatus.CANCELLING
    backup(folder / "everstep.db", folder / "copy.db", f.later(6), fault_from_env(), artifacts=folder / "artifacts")
    tell(copy="copy.db")
    await store.close()


ledger.WAL_BYTES_MAX = 1  # type: ignore[misc]
ledger.WAL_LOOK_EVERY = 1  # type: ignore[misc]
asyncio.run(story(Path(sys.argv[1])))
