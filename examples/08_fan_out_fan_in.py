"""Many items at the same time, some of which fail: how is that written, and what comes of it?"""

from everstep import Impossible, Plan, blocking, tool


@tool.pure("pages.count")
def count_words(text: str) -> int:
    """How many words a page has."""
    if not text:
        raise Impossible("the page is empty")
    return len(text.split())


@tool.pure("pages.add")
def add(numbers: list[int | None]) -> int:
    """All together; a page that could not be counted is None."""
    return sum(number or 0 for number in numbers)


plan = Plan("count", inputs={"pages": list[str]})
counts = plan.step(
    "count", count_words, {"text": plan.item}, for_each=plan.inputs.pages, parallel=4, on_error="continue"
)
total = plan.step("total", add, {"numbers": counts})
plan.output(each=counts, total=total)

with blocking.Engine("pages.db", tools=[count_words, add]) as engine:
    result = engine.run(plan, {"pages": ["one two", "", "three"]})
print(result.outputs, result.issues)

assert result.outputs == {"each": [2, None, 1], "total": 3}
assert result.outcome == "partial", "done, and honest about the page that could not be counted"
