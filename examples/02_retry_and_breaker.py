"""A service fails now and then, another one all the time. What is tried again, and when is enough?"""

from everstep import Plan, Transient, blocking, tool

calls = {"shaky": 0, "down": 0}


@tool.pure("shop.shaky")
def shaky() -> int:
    """Answers at the third call."""
    calls["shaky"] += 1
    if calls["shaky"] < 3:
        raise Transient("503 from the shop")
    return 42


@tool.pure("shop.down", breaker="shop")
def down() -> int:
    """Never answers."""
    calls["down"] += 1
    raise Transient("connection refused")


plan = Plan("prices")
price = plan.step("price", shaky, retry={"times": 4, "delay": "10ms"})
plan.step("stock", down, needs=[], retry={"times": 2, "delay": "10ms"}, on_error="continue")
plan.output(price=price)

with blocking.Engine("prices.db", tools=[shaky, down]) as engine:
    result = engine.run(plan)
    print(result.status, result.outcome, result.issues)
    for _ in range(5):  # every task asks the same breaker; after five failures in a row it lets nobody through
        engine.run(plan, new=True)

assert (result.status, result.outcome, result.outputs) == ("completed", "partial", {"price": 42})
assert calls["down"] == 5, "the breaker of 'shop' opened at the fifth failure, for all tasks"
