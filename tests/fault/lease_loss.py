"""The child of a trial, whose task is taken away from it inside its calls: what a fleet does to a slow worker.

With one engine per file nobody else can do it, so the engine's own store is asked to sweep the task it holds. The
interrupted walk then writes an outcome under an epoch that has passed, which must be refused.
"""

import asyncio
import sys
from pathlib import Path

from everstep import Task
from everstep.domain.ids import TaskId
from everstep.engine.stall import sweep_of
from everstep.ports.store import Dead, Worker
from everstep.torture.child import Client, carry
from everstep.torture.workload import Workload


async def take_away(task: Task, workload: Workload, _client: Client) -> None:
    losses = 0
    async for event in task.events():
        if event.type == "attempt.started" and losses < workload.pauses:
            losses += 1
            await sweep(task, str(event.data["worker"]))


async def sweep(task: Task, holder: str) -> None:
    kit = task._desk._kit
    (state,) = await kit.store.load_tasks((TaskId(task.id),))
    if state is None or state.worker != holder:
        return
    now = kit.clock.now()
    worker = Worker(id=state.worker, name="slow", host="here", pid=1, version="1", started_at=now, heartbeat_at=now)
    dead = Dead(task=state.id, status=state.status, epoch=state.epoch, worker=worker)
    (swept,) = await kit.store.sweep([sweep_of(dead, state, kit, counts=True)])
    kit.feed.publish(getattr(swept, "events", ()))
    task._desk._runtime.loop.nudge()


if __name__ == "__main__":
    asyncio.run(carry(Path(sys.argv[1]), take_away))
