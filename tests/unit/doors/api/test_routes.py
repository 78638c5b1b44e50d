"""The route table and what is in front of every handler: names, methods, readiness."""

import pytest

from everstep.domain.errors import EverstepError
from everstep.doors.api.handlers import HANDLERS
from everstep.doors.api.request import split_target
from everstep.doors.api.routes import ROUTES, Route, match
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import Window, codes

ADMIN = {"/metrics", "/v1/metrics", "/v1/tokens", "/v1/workers"}
"""What only an administrator may look at."""


def example(route: Route) -> str:
    return route.path.replace("{", "").replace("}", "")


def test_every_route_has_a_handler_and_every_handler_a_route() -> None:
    assert {route.handler for route in ROUTES} == set(HANDLERS)


def test_every_route_declares_a_scope_and_only_health_and_signing_in_are_open() -> None:
    assert {route.path for route in ROUTES if route.scope == "open"} == {"/v1/health", "/v1/ready", "/v1/sessions"}
    assert {route.scope for route in ROUTES if route.method == "POST"} == {"w", "answer", "r", "admin", "open"}
    assert {route.path for route in ROUTES if route.method == "GET" and route.scope == "admin"} == ADMIN
    assert {route.scope for route in ROUTES if route.method == "GET"} == {"open", "r", "admin"}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_is_found_by_its_path_and_by_nothing_else(route: Route) -> None:
    found = match(route.method, example(route))
    assert found.route is route
    assert all(name == value for name, value in found.params.items())
    with pytest.raises(EverstepError) as refused:
        match("TRACE", example(route))
    assert refused.value.code == "method_not_allowed"
    assert route.method in str(refused.value.details["allow"])
    with pytest.raises(EverstepError) as missing:
        match(route.method, example(route) + "/")
    assert missing.value.code == "not_found"


def test_escaped_parts_stay_parts() -> None:
    assert match("GET", "/v1/tasks/t_1/steps/pages%5B3%5D").params == {"task": "t_1", "step": "pages[3]"}
    assert match("GET", "/v1/tasks/a%2Fb").params == {"task": "a/b"}
    with pytest.raises(EverstepError):
        match("GET", "/v1/tasks/")


def test_a_query_key_given_twice_is_refused() -> None:
    assert split_target("/v1/tasks?q=a%20b&limit=1") == ("/v1/tasks", {"q": "a b", "limit": "1"})
    with pytest.raises(EverstepError, match="given twice"):
        split_target("/v1/tasks?q=a&q=b")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_nothing_unknown_is_ever_ignored(route: Route) -> None:
    async with TestEngine() as engine:
        window = Window(engine)
        refused = await window.refused(route.method, f"{example(route)}?surprise=1")
        assert codes(refused) == (400, "bad_request")
        assert refused[1]["details"]["unknown"] == ["surprise"]
        status, error = await window.refused(route.method, example(route), {"surprise": 1, "other": 2})
        assert (status, error["code"]) == (422, "unknown_field")
        assert [problem["path"] for problem in error["details"]["problems"]] == ["/surprise", "/other"]
        assert codes(await window.refused(route.method, example(route), [1])) == (400, "bad_request")


async def test_a_near_miss_gets_a_hint() -> None:
    async with TestEngine() as engine:
        window = Window(engine)
        _, error = await window.refused("GET", "/v1/tasks?statsu=running")
        assert "did you mean 'status'?" in error["message"]
        _, error = await window.refused("POST", "/v1/tasks", {"input": {}})
        assert error["details"]["problems"][0]["suggestion"] == "inputs"


async def test_what_only_the_local_door_may_say_is_unknown_elsewhere() -> None:
    async with TestEngine() as engine:
        window = Window(engine)
        assert codes(await window.refused("POST", "/v1/tasks", {"trusted": True})) == (422, "unknown_field")
        assert codes(await window.refused("POST", "/v1/tasks", {"trusted": True}, local=True)) == (400, "bad_request")


async def test_while_the_gate_is_closed_only_health_answers() -> None:
    engine = TestEngine()
    async with engine:
        window = Window(engine)
    for route in ROUTES:
        if route.scope == "open":
            continue
        response = await window.ask(route.method, example(route))
        assert (response.status, response.headers["retry-after"]) == (503, "1")
        assert response.json()["type"] == "urn:everstep:error:not_ready"


async def test_a_bug_of_ours_is_a_reply_without_its_details(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with TestEngine() as engine:
        window = Window(engine)

        async def broken(*_: object) -> None:
            raise ZeroDivisionError("secret path /etc")

        monkeypatch.setattr(engine.desk, "list", broken)
        status, error = await window.refused("GET", "/v1/tasks")
        assert (status, error["code"], error["category"]) == (500, "internal", "internal")
        assert "secret" not in str(error)
        assert "ZeroDivisionError" in caplog.text
