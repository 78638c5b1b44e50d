"""The world of the machine: tools whose calls stand still until somebody says how they end."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from everstep import Ctx, Impossible, Misconfigured, Transient, Uncertain, tool
from everstep.domain.record import record
from everstep.ports.tool import ToolError

RAISES: Final[dict[str, Callable[[], ToolError]]] = {
    "none": lambda: Transient("not now"),
    "unknown": lambda: Uncertain("the line went dead"),
    "config": lambda: Misconfigured("not like this"),
    "made": lambda: Impossible("done, and wrong", effect_state="made"),
}
"""How a call may end other than well: by what it tells of its effect."""


@record
class Made:
    """One call as the world saw it."""

    step: str
    attempt: int
    key: str


class World:
    """All calls so far, and those that have not ended."""

    def __init__(self) -> None:
        self.calls: list[Made] = []
        self._open: dict[str, asyncio.Future[object]] = {}

    @property
    def open(self) -> set[str]:
        return set(self._open)

    def end(self, step: str, how: str, value: object = None) -> None:
        """Let a call end."""
        call = self._open[step]
        if how == "ok":
            call.set_result(value)
        else:
            call.set_exception(RAISES[how]())

    def keys(self, step: str) -> list[str]:
        return [made.key for made in self.calls if made.step == step]

    def tools(self) -> list[Any]:
        return [self._tool(effect) for effect in ("pure", "idempotent", "once")]

    def _tool(self, effect: str) -> Any:
        @tool(f"model.{effect}", effect=effect, timeout="24h")
        async def work(*, ctx: Ctx) -> Any:
            self.calls.append(Made(step=ctx.step_id, attempt=ctx.attempt, key=ctx.idempotency_key))
            ended = self._open[ctx.step_id] = asyncio.get_running_loop().create_future()
            try:
                return await ended
            finally:
                if self._open.get(ctx.step_id) is ended:
                    del self._open[ctx.step_id]

        return work
