"""My agent is a loop, not a list of steps. Can ordinary code be durable?"""

from typing import Any

from everstep import blocking, durable, tool

paid = 0


@tool("model.guess")
def guess(low: int, high: int) -> int:
    """Ask the model; every call costs money."""
    global paid  # noqa: PLW0603
    paid += 1
    return (low + high) // 2


@durable("search", version="1")
async def search(ctx: Any, secret: int) -> dict[str, int]:  # noqa: ANN401
    """Between two calls there is only arithmetic; everything else goes through `ctx`."""
    low, high, rounds = 0, 100, 0
    while True:
        rounds += 1
        number = await ctx.call(guess, {"low": low, "high": high})
        if number == secret:
            break
        low, high = (number, high) if number < secret else (low, number)
    await ctx.approve(f"Is it {number}?")
    return {"number": number, "rounds": rounds}


with blocking.Engine("search.db", tools=[guess]) as engine:
    paused = engine.run(search, {"secret": 37}, on_pause="return")
    assert paused.status == "paused"

with blocking.Engine("search.db", tools=[guess]) as engine:  # another process, another day
    engine.inbox()[0].approve()
    result = engine.run(search, {"secret": 37})
print(result.outputs, paid)

assert result.outputs is not None
assert result.outputs["number"] == 37
assert paid == result.outputs["rounds"], "the code ran again from the top, and no call was paid for twice"
