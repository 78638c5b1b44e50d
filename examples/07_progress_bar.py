"""How far is it, how long will it take, and is that honest?"""

import asyncio

from everstep import Ctx, Engine, Plan, tool


@tool.pure("photos.develop")
async def develop(photo: str, ctx: Ctx) -> str:
    """Takes a moment, and says how far it is."""
    for tenth in range(1, 11):
        await asyncio.sleep(0.005)
        ctx.progress(tenth / 10, f"developing {photo}")
    return photo.upper()


plan = Plan("album", inputs={"photos": list[str]})
done = plan.step("develop", develop, {"photo": plan.item}, for_each=plan.inputs.photos)
plan.output(album=done)


async def main() -> list[float]:
    seen = []
    async with Engine("album.db", tools=[develop]) as engine:
        await engine.run(plan, {"photos": ["a", "b"]})  # something to learn from
        task = await engine.start(plan, {"photos": ["c", "d", "e", "f"]})
        async for event in task.events():
            await task.refresh()
            seen.append(task.progress.fraction)
            left = task.estimate  # a range, and what it rests on; None where nothing is known
            print(f"\r{'#' * round(task.progress.fraction * 40):40} {event.type}", left or "")
    return seen


fractions = asyncio.run(main())

assert fractions == sorted(fractions), "it never goes backwards"
assert fractions[-1] == 1.0
