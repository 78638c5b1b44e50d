"""A plan on one screen."""

from everstep.domain.plan import ApproveSpec, Effect, OnError, PlanSpec, StepSpec
from everstep.doors.cli.outline import outline


def step(name: str, tool: str = "my.tool", **more: object) -> StepSpec:
    return StepSpec(**{"id": name, "tool": tool, "arguments": {}, "bind": name, **more})  # type: ignore[arg-type]


def test_steps_with_what_they_wait_for_and_how_careful_they_are() -> None:
    plan = PlanSpec(
        name="p",
        steps=(
            step("a", needs=()),
            step("b", needs=("a",), when="${a.ok}", on_error=OnError.CONTINUE),
            step("c", "other.tool", for_each="${a.items}", approve=ApproveSpec(title="Sure?"), effect=Effect.ONCE),
        ),
        finally_steps=(step("z"),),
        outputs={},
    )
    tools = [{"name": "my.tool", "effect": "pure"}, {"name": "other.tool", "effect": "idempotent"}]
    assert outline(plan, tools) == [
        "  1  a  my.tool     pure  at once",
        "  2  b  my.tool     pure  after a; when ${a.ok}; on error continue",
        "  3  c  other.tool  once  for each of ${a.items}; asks first",
        "end  z  my.tool     pure  always",
    ]
