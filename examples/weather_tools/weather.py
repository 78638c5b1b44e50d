"""A family of tools in a package of its own: twenty lines, and the conformance suite says whether they are right."""

from collections.abc import Sequence

from everstep import Ctx, Misconfigured, ToolAdapter
from everstep.testing import Sample
from everstep.tools import Call, Effect, JsonValue, ToolSpec

PLACES = {"oslo": -3.0, "rome": 14.5}
TAKES: JsonValue = {"place": {"type": "string", "description": "A town"}}


class Weather(ToolAdapter):
    """`weather.now`: the temperature of a place."""

    def tools(self) -> Sequence[ToolSpec]:
        schema: dict[str, JsonValue] = {"type": "object", "required": ["place"], "additionalProperties": False}
        return [
            ToolSpec(
                name="weather.now",
                version="1.0.0",
                title="The weather",
                description="The temperature of a town, in degrees.",
                input_schema={**schema, "properties": TAKES},
                effect=Effect.PURE,
            )
        ]

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:  # noqa: ARG002
        place = str(call.arguments["place"]).lower()
        if place not in PLACES:
            raise Misconfigured(f"no weather for '{place}'", what_to_do=f"one of: {', '.join(PLACES)}")
        return {"place": place, "degrees": PLACES[place]}

    def cases(self) -> Sequence[Sample]:
        return [
            Sample(tool="weather.now", arguments={"place": "Oslo"}),
            Sample(tool="weather.now", arguments={}, fits=False),
        ]
