"""What does a tool of my own say about itself, so that no crash does harm?"""

import asyncio
from pathlib import Path

from everstep import Ctx, Denied, Plan, tool
from everstep.testing import crash_points
from everstep.tools import Call, ProbeAnswer

SHELF = Path("shelf")
SHELF.mkdir(exist_ok=True)
deliveries = 0


def delivered(call: Call) -> ProbeAnswer:
    """The probe: after a crash somebody looks whether the call had come to its end, instead of repeating it."""
    book = SHELF / str(call.arguments["title"])
    return ("done", str(book)) if book.exists() else "not_done"


@tool("shelf.put", effect="verifiable", probe=delivered, timeout="5s")
def put(title: str, ctx: Ctx) -> str:
    """Put a book on the shelf; two copies would be one too many."""
    global deliveries  # noqa: PLW0603
    if not title.isidentifier():
        raise Denied(f"'{title}' is no title", what_to_do="letters and digits only")
    ctx.progress(0.5, "on its way")
    deliveries += 1
    (SHELF / title).touch()
    return str(SHELF / title)


plan = Plan("library")
plan.output(book=plan.step("put", put, {"title": "everstep"}))


async def main() -> list[int]:
    """Kill the engine before and after each of its commits, and inside each call."""
    global deliveries  # noqa: PLW0603
    seen = []
    async for point in crash_points(plan, tools={}, more_tools=[put], workspace=Path.cwd()):
        assert point.result.outputs == {"book": "shelf/everstep"}
        seen.append(deliveries)
        deliveries = 0
        (SHELF / "everstep").unlink()
    return seen


delivered_at = asyncio.run(main())
print(delivered_at)

assert set(delivered_at) == {1}, "wherever it died: one delivery"
