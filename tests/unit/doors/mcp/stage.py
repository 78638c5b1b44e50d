"""The MCP door on an engine in memory: everything but the SDK."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypedDict

from everstep import Misconfigured, Plan, Transient, Uncertain, tool
from everstep.bootstrap import Source
from everstep.doors.api import Api
from everstep.doors.mcp.bridge import LEGACY, MODERN
from everstep.doors.mcp.calls import Calls
from everstep.doors.mcp.channel import Caller, OwnChannel
from everstep.doors.mcp.desk import Client, DoorDesk, DoorLimits
from everstep.doors.mcp.prompts import Prompts
from everstep.doors.mcp.published import Book, Published
from everstep.doors.mcp.resources import Resources
from everstep.doors.mcp.tasks import Tasks
from everstep.settings import load_settings
from everstep.testing import TestEngine
from tests.unit.worked_example import STEPS

SOURCE = {"source": "http://a.test/x"}
CALLER = Caller(owner="local", name="tester")
NEW = Client(caller=CALLER, era=MODERN, elicits=True, tasks=True)
OLD = Client(caller=CALLER, era=LEGACY, elicits=True)


class Size(TypedDict):
    """What `size` needs."""

    width: int
    height: int


class Work:
    """The tools of the pipeline, and what was called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.hold: asyncio.Event | None = None
        self.called = asyncio.Event()

    def tools(self) -> list[object]:
        @tool.pure("fetch_data")
        async def fetch_data(source: str) -> dict:  # type: ignore[type-arg]
            """Read records"""
            self.calls.append(f"fetch {source}")
            self.called.set()
            if self.hold is not None:
                await self.hold.wait()
            if "mirror" not in source:
                raise Transient("connection refused")
            return {"lines": ["a,1"]}

        @tool.pure("transform_data")
        async def transform_data(data: dict, format: str = "rows") -> dict:  # type: ignore[type-arg]
            """Shape records"""
            self.calls.append("transform")
            return {"rows": [["a", 1]], "size": len(data), "format": format}

        @tool("store_data")
        async def store_data(payload: list) -> dict:  # type: ignore[type-arg]
            """Save rows"""
            self.calls.append("store")
            return {"stored": len(payload)}

        @tool.pure("big.thing")
        async def big(size: int) -> str:
            """Make a long text"""
            self.calls.append("big")
            return "x" * size

        @tool.pure("say")
        async def say(text: str, more: str = "") -> dict:  # type: ignore[type-arg]
            """Say it again"""
            self.calls.append(f"say {text}")
            return {"said": text, "more": more}

        @tool.pure("area")
        async def area(size: Size) -> int:
            """Multiply"""
            return size["width"] * size["height"]

        @tool("risky")
        async def risky() -> dict:  # type: ignore[type-arg]
            """Send, perhaps"""
            raise Uncertain("the line broke")

        async def guide(topic: str) -> str:
            self.calls.append(f"guide {topic}")
            if topic == "none":
                raise Misconfigured("there is no such guide")
            return f"All about {topic}."

        guides = Source(template="docs://guides/{topic}", function=guide)
        return [fetch_data, transform_data, store_data, big, say, area, risky, guides]


def plan_of(*steps: Mapping[str, Any], **keys: Any) -> Plan:
    said: dict[str, Any] = {"name": "data-pipeline", "description": "move records", "steps": [*steps], **keys}
    return Plan.from_dict(said)


def pipeline(**keys: Any) -> Plan:
    """The plan of the worked example."""
    return plan_of(*STEPS, inputs={"source": "string"}, **keys)


class Stage:
    """A door, and who is at it."""

    def __init__(self, engine: TestEngine, work: Work, desk: DoorDesk) -> None:
        self.engine = engine
        self.work = work
        self.desk = desk
        self.prompts = Prompts(desk)
        self.calls = Calls(desk)
        self.tasks = Tasks(desk)
        self.resources = Resources(desk)
        self.progress: list[tuple[int, int, str]] = []

    async def tell(self, done: int, total: int, text: str) -> None:
        self.progress.append((done, total, text))

    async def prompt(self, arguments: Mapping[str, str] | None = None, client: Client = NEW) -> dict[str, Any]:
        given = SOURCE if arguments is None else arguments
        return await self.prompts.get(client, "data-pipeline", given, self.tell)

    async def call(self, name: str, task: str | None = None, client: Client = NEW, **arguments: Any) -> dict[str, Any]:
        return await self.calls.call(client, name, arguments, {} if task is None else {"_task_id": task})

    async def texts(self, arguments: Mapping[str, str] | None = None) -> list[str]:
        return [one["content"]["text"] for one in (await self.prompt(arguments))["messages"]]

    async def all_tasks(self) -> list[dict[str, Any]]:
        status, body = await self.desk.channel.request(CALLER, _ask("GET", "/v1/tasks"))
        assert status == 200
        return list(json.loads(body)["items"])

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        _, said = await self.desk.channel.request(CALLER, _ask(method, path, body))
        return json.loads(said) if said else None


def _ask(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    from everstep.doors.mcp.channel import Ask

    return Ask(method=method, path=path, body=body)


@asynccontextmanager
async def stage(
    plan: Plan | None = None,
    *,
    task_support: bool = True,
    continue_by: str = "client",
    config: Mapping[str, Any] | None = None,
    limits: DoorLimits | None = None,
    **book: Any,
) -> AsyncIterator[Stage]:
    """An engine in memory, and the door before it."""
    work = Work()
    async with TestEngine(work.tools(), config=config) as engine:
        api = Api(engine.desk, settings=load_settings({}, env={}), version="9.9")
        published = Published(
            plan=(plan or pipeline()).spec, task_support=task_support, continue_by=continue_by, **book
        )
        offered = Book([published], ["big.thing", "say"])
        yield Stage(engine, work, DoorDesk(OwnChannel(api), offered, limits or DoorLimits(), engine.clock.now))
