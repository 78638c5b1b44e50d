"""Plans and tools for tests of the engine: a few words each."""

import asyncio
from collections import Counter
from typing import Any

from everstep.authoring.plan import Plan
from everstep.authoring.tool import tool
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.task import Task
from everstep.facade.views import Result
from everstep.testing.engine import TestEngine


class Tools:
    """Tools that count their calls; `held` calls wait until released."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.holding = asyncio.Event()
        self.release = asyncio.Event()
        self.raises: dict[str, list[Exception | None]] = {}

    def all(self) -> list[object]:
        """Every tool, bound to this record of calls."""

        @tool("test.echo", effect="pure")
        async def echo(value: Any = None, label: str = "echo") -> dict[str, Any]:
            """Return what came in."""
            self._count(label)
            return {"value": value}

        @tool("test.hold", effect="pure")
        async def hold(label: str = "hold") -> dict[str, str]:
            """Wait until released."""
            self._count(label)
            self.holding.set()
            await self.release.wait()
            return {"label": label}

        @tool("test.once")
        async def once(label: str = "once") -> dict[str, str]:
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
    before: JsonValue = 0
    steps: list[JsonValue] = []
    for label in labels:
        steps.append({"id": label, "tool": "test.echo", "with": {"value": before, "label": label}})
        before = f"${{{label}}}"
    return Plan.from_dict({"name": "chain", "steps": steps, "outputs": {"last": before}})


def final(*steps: JsonObject) -> dict[str, JsonValue]:
    """These as the `finally` steps of a plan."""
    return {"finally": [*steps]}


async def finish(engine: TestEngine, task: Task, after: str = "10m") -> Result:
    """The result, whatever it takes in virtual time."""
    waiting = asyncio.create_task(task.result(on_pause="return"))
    await engine.clock.advance(after)
    return await asyncio.wait_for(waiting, 60)


def plan_of(*steps: JsonObject, **keys: JsonValue) -> Plan:
    """A plan of these steps."""
    return Plan.from_dict({"name": "p", "steps": list(steps), **keys})


def echo(id: str, value: JsonValue = None, **keys: JsonValue) -> JsonObject:
    """A step that returns what came in, and is counted by its id."""
    return {"id": id, "tool": "test.echo", "with": {"value": value, "label": id}, **keys}
