"""Plans and tools for tests of the engine: a few words each."""

import asyncio
from collections import Counter

from everstep.authoring.plan import Plan
from everstep.authoring.tool import FunctionTool, tool
from everstep.domain.values import JsonObject, JsonValue


class Tools:
    """Tools that count their calls; `held` calls wait until released."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.holding = asyncio.Event()
        self.release = asyncio.Event()
        self.raises: dict[str, list[Exception | None]] = {}

    def all(self) -> list[FunctionTool[..., object]]:
        """Every tool, bound to this record of calls."""

        @tool("test.echo", effect="pure")
        async def echo(value: JsonValue = None, label: str = "echo") -> JsonObject:
            """Return what came in."""
            self._count(label)
            return {"value": value}

        @tool("test.hold", effect="pure")
        async def hold(label: str = "hold") -> JsonObject:
            """Wait until released."""
            self._count(label)
            self.holding.set()
            await self.release.wait()
            return {"label": label}

        @tool("test.once")
        async def once(label: str = "once") -> JsonObject:
            """Something that must not be repeated; waits until released."""
            self._count(label)
            self.holding.set()
            await self.release.wait()
            return {"label": label}

        return [echo, hold, once]

    def _count(self, label: str) -> None:
        self.calls[label] += 1
        scripted = self.raises.get(label)
        if scripted:
            error = scripted.pop(0) if len(scripted) > 1 else scripted[0]
            if error is not None:
                raise error


def chain(*labels: str) -> Plan:
    """Echo steps in line, each bound to the one before."""
    plan = Plan("chain")
    before: object = 0
    for label in labels:
        before = plan.step(label, "test.echo", {"value": before, "label": label})
    plan.output(last=before)
    return plan
