"""`text.extract`: what matches, and patterns that would never end."""

from pathlib import Path
from typing import Any

from everstep import Plan
from everstep.domain.values import JsonObject
from everstep.testing import TestEngine


async def extracted(tmp_path: Path, arguments: JsonObject) -> Any:
    async with TestEngine([], config={"containment.uid_base": 0}, workspace=tmp_path) as engine:
        plan = Plan("find")
        plan.step("call", "text.extract", arguments, retry=0)
        plan.output(found=plan.expr("call.matches"))
        return await (await engine.start(plan)).result()


async def test_matches(tmp_path: Path) -> None:
    result = await extracted(tmp_path, {"text": "a=1, bé=22", "pattern": r"(?P<name>\w+)=(\d+)", "limit": 5})
    assert result.outputs["found"] == [
        {"text": "a=1", "start": 0, "groups": ["a", "1"], "named": {"name": "a"}},
        {"text": "bé=22", "start": 5, "groups": ["bé", "22"], "named": {"name": "bé"}},
    ]


async def test_a_pattern_that_never_ends(tmp_path: Path) -> None:
    result = await extracted(tmp_path, {"text": "a" * 60 + "!", "pattern": "(a+)+$"})
    assert (result.error["code"], result.error["category"]) == ("limit_cpu", "resource")
