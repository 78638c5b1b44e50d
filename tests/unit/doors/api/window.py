"""A caller at the api of an engine in memory. Every reply is looked at: strict JSON, the right headers."""

from collections.abc import Mapping
from typing import Any, cast

from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.values import JsonValue
from everstep.doors.api import Api, Request, Response, split_target
from everstep.settings import Settings, load_settings
from everstep.testing.engine import TestEngine
from everstep.wire.values import loads_strict

ANA = Who(owner="local", actor=Actor(kind=ActorKind.HUMAN, id="ana", via="http"))
BEN = Who(owner="local", actor=Actor(kind=ActorKind.LLM, id="ben", via="mcp"))
EVE = Who(owner="eve", actor=Actor(kind=ActorKind.HUMAN, id="eve", via="http"))

ECHO: dict[str, JsonValue] = {"name": "echo", "steps": [{"id": "a", "tool": "test.echo", "with": {"value": 1}}]}
HOLD: dict[str, JsonValue] = {"name": "hold", "steps": [{"id": "a", "tool": "test.hold"}]}


class Window:
    """Where one asks."""

    def __init__(self, engine: TestEngine, settings: Settings | None = None) -> None:
        self.engine = engine
        self.api = Api(engine.desk, settings=settings or load_settings({}, env={}), version="9.9", incarnation="w_1")

    def request(
        self, method: str, target: str, body: JsonValue = None, *, who: Who = ANA, local: bool = False, **headers: str
    ) -> Request:
        path, query = split_target(target)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Request(method=method, path=path, query=query, headers=named, body=body, who=who, local=local)

    async def ask(
        self, method: str, target: str, body: JsonValue = None, *, who: Who = ANA, local: bool = False, **headers: str
    ) -> Response:
        response = await self.api.handle(self.request(method, target, body, who=who, local=local, **headers))
        if response.body:
            loads_strict(response.body)
        assert response.status == 304 or response.headers["cache-control"] == "no-store"
        return response

    async def good(self, method: str, target: str, body: JsonValue = None, **more: Any) -> dict[str, Any]:
        response = await self.ask(method, target, body, **more)
        assert response.status < 300, response.body
        return cast("dict[str, Any]", response.json())

    async def refused(
        self, method: str, target: str, body: JsonValue = None, **more: Any
    ) -> tuple[int, dict[str, Any]]:
        """The status and the Error of a refusal; the envelope is checked here, once for all."""
        response = await self.ask(method, target, body, **more)
        said = cast("dict[str, Any]", response.json())
        error: dict[str, Any] = said["error"]
        assert response.status >= 400
        assert response.headers["content-type"] == "application/problem+json"
        assert said["type"] == f"urn:everstep:error:{error['code']}"
        assert (said["status"], said["detail"]) == (response.status, error["message"])
        assert said["title"]
        assert error["what_to_do"]
        return response.status, error

    async def start(self, plan: Mapping[str, JsonValue], **more: Any) -> dict[str, Any]:
        return await self.good("POST", "/v1/tasks", {"plan": dict(plan), **more})

    async def finish(self, task: str) -> dict[str, Any]:
        """The task a second of virtual time later."""
        await self.engine.clock.advance("1s")
        return await self.good("GET", f"/v1/tasks/{task}")


def codes(refusal: tuple[int, dict[str, Any]]) -> tuple[int, str]:
    """The status and the code."""
    return refusal[0], refusal[1]["code"]
