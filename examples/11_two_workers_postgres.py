"""One machine is not enough: how do several workers share one store, and what if one of them is lost?

Give it a database that may be written to: `python 11_two_workers_postgres.py postgresql://…`.
"""

import asyncio
import sys

from everstep import Ctx, Engine, Plan, tool

STORE = sys.argv[1]


@tool.pure("crew.lift")
async def lift(box: int, ctx: Ctx) -> str:
    """Takes a moment."""
    await asyncio.sleep(0.02)
    return f"{box} lifted in {ctx.task_id}"


plan = Plan("move", inputs={"box": int})
plan.output(said=plan.step("lift", lift, {"box": plan.inputs.box}))


async def main() -> set[str]:
    workers = set()
    async with Engine(STORE, tools=[lift]) as one, Engine(STORE, tools=[lift]):
        tasks = [await one.start(plan, {"box": n}) for n in range(20)]
        for task in tasks:
            assert (await task.result()).status == "completed"
            events = [event async for event in one.events(task.id, follow=False)]
            assert [event.type for event in events].count("step.completed") == 1
            workers |= {str(event.data["worker"]) for event in events if event.type == "attempt.started"}
    return workers


carried_by = asyncio.run(main())
print(carried_by)

assert 1 <= len(carried_by) <= 2, "each step was carried out once, by whoever was free"
