"""The plan turns out to be wrong half way. How does an agent change what comes, and leave what was done?"""

from everstep import Impossible, Plan, blocking, tool
from everstep.tools import JsonValue

done: list[str] = []


@tool.pure("trip.book")
def book(by: str) -> str:
    """Book a seat."""
    done.append(by)
    if by == "train":
        raise Impossible("no train today")
    return f"seat by {by}"


plan = Plan("trip")
plan.step("there", book, {"by": "ferry"})
plan.step("back", book, {"by": "train"}, on_error="pause")
plan.output(back=plan.expr("back"))

with blocking.Engine("trip.db", tools=[book]) as engine:
    task = engine.start(plan)
    assert task.result(on_pause="return").status == "paused"
    task.refresh()
    assert task.pause_reason is not None
    print(task.pause_reason.why)

    ops: list[dict[str, JsonValue]] = [{"op": "set", "id": "back", "with": {"by": "bus"}}]
    task.patch(ops, base_revision=task.revision, note="the bus leaves every hour")
    result = task.result()

assert result.outputs == {"back": "seat by bus"}
assert done == ["ferry", "train", "bus"], "what had been done was not done again"
