"""`everstep.ToolAdapter`: two methods are enough; the rest has safe answers."""

from collections.abc import Sequence

import pytest

from everstep.domain.values import JsonValue
from everstep.engine.catalog import Catalog
from everstep.ports import tool as contract
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, ToolSpec
from everstep.wire.values import Codec
from tests.unit.contexts import call_of, context


class Shout(ToolAdapter):
    """The smallest family."""

    def tools(self) -> Sequence[ToolSpec]:
        return [ToolSpec(name="shout", version="1", title="Shout", description="", input_schema={"type": "object"})]

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        return str(call.arguments["text"]).upper()


async def test_two_methods_are_a_family() -> None:
    family: contract.ToolAdapter = Shout()
    call = call_of("shout", {"text": "hi"})
    entry = Catalog([family], Codec()).get("shout")
    assert entry.problems(call) == ()
    assert await family.execute(call, context()) == "HI"
    assert family.estimate(call) is None
    assert family.effect_of(call) is None
    assert family.classify(ValueError()) is None
    assert (await family.health()).status == "unknown"
    assert (await family.probe(call)).result == "unknown"


def test_both_are_required() -> None:
    with pytest.raises(TypeError, match="abstract"):
        ToolAdapter()  # type: ignore[abstract]
