"""Virtual time beside calls in real time: it passes only while no call is under way, however busy the machine is."""

import asyncio
from collections.abc import Sequence

from everstep.domain.states import Phase
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.testing import TestEngine


async def pass_time(engine: TestEngine, tasks: Sequence[Task], length: str = "1s") -> None:
    """Some of it, unless one of these tasks is in a call: that has real work to do."""
    await asyncio.sleep(0.01)
    for task in tasks:
        if any(step.phase is Phase.EXECUTING for step in (await task.refresh()).steps.values()):
            return
    await engine.clock.advance(length)


async def ends(engine: TestEngine, *tasks: Task) -> list[Result]:
    """As soon as every one of them stands or has ended."""
    for task in tasks:
        await task.refresh()
    waiting = [asyncio.ensure_future(task.result(on_pause="return")) for task in tasks]
    while not all(one.done() for one in waiting):
        await pass_time(engine, tasks)
    return [one.result() for one in waiting]
