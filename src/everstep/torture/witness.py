"""A family of tools with somebody beside it who writes down every call; by default nothing is called at all.

A stand-in returns what was ordered for its step, else a value that fits. Its effect is the line that it writes, so a
crash can be answered from the log, and a tool that can look looks there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from everstep.ports.adapter import Completed
from everstep.ports.tool import Call, Ctx, Probed, ToolAdapter
from everstep.torture.history import Effect, read_effects
from everstep.torture.shaped import read_of, with_parts
from everstep.torture.world import EffectLog

OURS: Final = frozenset({"ask", "plan.run", "prompt.get"})
"""Tools that belong to the engine: they ask somebody, or start another plan."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What stand-ins return: as somebody said, by step; else by schema and by what the plan reads."""

    said: dict[str, Any]
    texts: tuple[str, ...]
    real: bool = False


class Witness(Completed):
    """One family."""

    def __init__(self, adapter: ToolAdapter, orders: Orders, log: EffectLog, path: Path) -> None:
        super().__init__(adapter)
        self._orders = orders
        self._log = log
        self._path = path
        self._schemas = {spec.name: spec.output_schema for spec in adapter.tools()}
        if not orders.real:
            self.probe: Callable[..., Any] = self._look
            self.validate: Callable[..., Any] = lambda call: ()  # noqa: ARG005

    async def execute(self, call: Call, ctx: Ctx) -> Any:  # noqa: ANN401 -- whatever the family returns
        """Written down, made, written down."""
        if call.tool in OURS:
            return await super().execute(call, ctx)
        if self._orders.real:
            self._log.write("start", ctx, None)
            output = await super().execute(call, ctx)
            self._log.write("end", ctx, output if isinstance(output, str | int | float | list | dict) else None)
            return output
        output = self._ordered(call, ctx)
        self._log.write("start", ctx, output)
        self._log.write("end", ctx, output)
        return output

    def _ordered(self, call: Call, ctx: Ctx) -> Any:  # noqa: ANN401 -- any JSON
        step, of_list, _ = ctx.step_id.partition("[")
        read = read_of(self._orders.texts, step)
        if of_list:  # what is read of a list is read of its items
            read = [part[1:] if part and isinstance(part[0], int) else part for part in read]
        fitting = with_parts(self._schemas.get(call.tool), read)
        said = self._orders.said.get(step, fitting)
        return {**fitting, **said} if isinstance(said, dict) and isinstance(fitting, dict) else said

    async def _look(self, call: Call) -> Probed:
        made = made_under(self._path, call.idempotency_key)
        return Probed(result="not_done") if made is None else Probed(result="done", output=made.output)


def made_under(path: Path, key: str) -> Effect | None:
    """The last that was written of a call under this key."""
    return next((effect for effect in reversed(read_effects(path)) if effect.key == key), None)
