"""When a step cannot succeed: what takes its place, and how does the result say so?"""

from everstep import Misconfigured, Plan, blocking, tool


@tool.pure("rates.live")
def live(currency: str) -> float:
    """Today's rate."""
    raise Misconfigured(f"no rate for {currency}", what_to_do="ask for EUR or USD")


@tool.pure("rates.yesterday")
def yesterday(currency: str) -> float:
    """The rate of yesterday, from a file."""
    return {"NOK": 11.5}[currency]


plan = Plan("convert")
rate = plan.step("rate", live, {"currency": "NOK"}, fallback=[{"tool": "rates.yesterday", "with": {"currency": "NOK"}}])
plan.output(rate=rate)

with blocking.Engine("rates.db", tools=[live, yesterday]) as engine:
    task = engine.start(plan)
    result = task.result()
    told = [event.type for event in task.events(follow=False)]
print(result.outcome, result.outputs, told)

assert result.outputs == {"rate": 11.5}
assert "step.fallback" in told, "the journal says which tool has answered, and why"
