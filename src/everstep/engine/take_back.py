"""`undo`: the tool behind compensations that no plan spells out. It asks the family of the tool that acted."""

from collections.abc import Sequence

from everstep.domain.plan import Effect
from everstep.domain.undo import TAKE_BACK
from everstep.domain.values import JsonValue
from everstep.engine.catalog import Catalog
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Impossible, ToolSpec, Undoer

_SPEC = ToolSpec(
    name=TAKE_BACK,
    version="1.0.0",
    title="Take back",
    description="Take an earlier call back, as the tool that made it knows how. Used by `everstep undo`.",
    input_schema={
        "type": "object",
        "properties": {
            "tool": {"type": "string"},
            "arguments": {"type": "object"},
            "output": {},
            "idempotency_key": {"type": "string"},
        },
        "required": ["tool", "arguments", "output", "idempotency_key"],
        "additionalProperties": False,
    },
    effect=Effect.ONCE,
)


class TakeBack(ToolAdapter):
    """Serves every family that can take calls back."""

    catalog: Catalog

    def tools(self) -> Sequence[ToolSpec]:
        """The one."""
        return (_SPEC,)

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Let the family of the tool take its call back."""
        said = call.arguments
        entry = self.catalog.find(str(said["tool"]))
        arguments = said["arguments"]
        assert isinstance(arguments, dict)
        if entry is None or not entry.spec.undoable or not isinstance(entry.adapter, Undoer):
            raise Impossible(f"{said['tool']} cannot take anything back")
        made = Call(
            tool=entry.spec.name,
            arguments=arguments,
            effect=entry.spec.effect,
            idempotency_key=str(said["idempotency_key"]),
        )
        await entry.adapter.undo(made, said["output"], ctx)
        return {"undone": True}
