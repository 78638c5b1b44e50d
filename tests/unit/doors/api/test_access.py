"""Tokens, codes, sessions and tickets through the api: made once, shown once, used once where they say so."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep.doors.api.request import Request
from tests.unit.doors.api.window import ECHO
from tests.unit.doors.http.visitor import Visitor, visiting


@pytest.fixture
async def visitor() -> AsyncIterator[Visitor]:
    async with visiting() as one:
        one.engine.desk.url = "http://127.0.0.1:7717"
        yield one


async def made(visitor: Visitor, **body: Any) -> Any:
    return await visitor.good("POST", "/v1/tokens", body)


async def test_a_token_is_shown_once(visitor: Visitor) -> None:
    token = await made(visitor, name="ci", owner="ana", scopes=["read", "write"], expires_in=60)
    assert token["value"].startswith("es_")
    assert len(token["value"]) == 46
    assert (token["owner"], token["actor"]) == ("ana", {"kind": "service", "id": "ci", "via": "http"})
    listed = await visitor.ask("GET", "/v1/tokens")
    assert token["value"] not in listed.body.decode()
    assert {**token, "value": None} in [{**one, "value": None} for one in listed.json["items"]]
    me = await visitor.good("GET", "/v1/owner", token=token["value"])
    assert me["owner"] == "ana"
    assert me["scopes"] == ["read", "write"]
    assert (me["limits"]["live_tasks"], me["used"]["live_tasks"]) == (100, 0)


async def test_a_token_without_words_is_a_program_with_all_but_admin(visitor: Visitor) -> None:
    token = await made(visitor, name="ci")
    assert (token["owner"], token["scopes"], token["expires_at"]) == ("local", ["answer", "read", "write"], None)
    human = await made(visitor, name="ana", actor={"kind": "human", "id": "ana"})
    assert human["actor"]["kind"] == "human"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "a b"},
        {"name": "ci", "owner": "a/b"},
        {"name": "ci", "scopes": []},
        {"name": "ci", "scopes": ["root"]},
        {"name": "ci", "scopes": "read"},
        {"name": "ci", "actor": {"kind": "system"}},
        {"name": "ci", "actor": {"kind": "human", "id": 1}},
        {"name": "ci", "actor": {"via": "cli"}},
        {"name": "ci", "expires_in": 0},
        {"name": "ci", "expires_in": 1e12},
        {"name": "ci", "expires_in": -1.7976931348623157e308},
    ],
)
async def test_what_is_no_token_is_refused(visitor: Visitor, body: Any) -> None:
    before = (await visitor.good("GET", "/v1/tokens"))["items"]
    assert (await visitor.ask("POST", "/v1/tokens", body)).status == 400
    assert (await visitor.good("GET", "/v1/tokens"))["items"] == before


async def test_a_token_expires(visitor: Visitor) -> None:
    token = (await made(visitor, name="ci", expires_in=60))["value"]
    assert (await visitor.ask("GET", "/v1/tasks", token=token)).status == 200
    await visitor.engine.clock.advance("61s")
    assert (await visitor.ask("GET", "/v1/tasks", token=token)).status == 401


async def test_a_token_is_changed_and_revoked(visitor: Visitor) -> None:
    token = await made(visitor, name="ci")
    changed = await visitor.good("PATCH", f"/v1/tokens/{token['id']}", {"scopes": ["read"]})
    assert changed["scopes"] == ["read"]
    assert (await visitor.ask("POST", "/v1/tasks", {"plan": ECHO}, token=token["value"])).status == 403
    assert (await visitor.ask("DELETE", f"/v1/tokens/{token['id']}")).status == 204
    assert (await visitor.ask("GET", "/v1/tasks", token=token["value"])).status == 401
    assert (await visitor.ask("DELETE", f"/v1/tokens/{token['id']}")).code == "not_found"
    assert (await visitor.ask("PATCH", f"/v1/tokens/{token['id']}", {"scopes": ["read"]})).code == "not_found"


async def test_whoever_opens_the_link_first_is_signed_in(visitor: Visitor) -> None:
    link = await visitor.good("POST", "/v1/sign-in-codes", {})
    url, code = link["url"].split("#code=")
    assert url == "http://127.0.0.1:7717/"
    assert len(code) == 22
    signed_in = await visitor.good("POST", "/v1/sessions", {"code": code}, token=None)
    session = signed_in["value"]
    assert (signed_in["kind"], (await visitor.good("GET", "/v1/owner", token=session))["owner"]) == ("session", "local")
    again = await visitor.ask("POST", "/v1/sessions", {"code": code}, token=None)
    assert (again.status, again.code) == (401, "unauthenticated")
    assert (await visitor.ask("GET", "/v1/tasks", token=code)).status == 401
    assert (await visitor.ask("DELETE", "/v1/sessions/current", token=session)).status == 204
    assert (await visitor.ask("GET", "/v1/owner", token=session)).status == 401
    assert (await visitor.ask("DELETE", "/v1/sessions/current")).code == "not_found"


async def test_a_code_is_good_for_ten_minutes(visitor: Visitor) -> None:
    code = (await visitor.good("POST", "/v1/sign-in-codes", {}))["url"].split("#code=")[1]
    await visitor.engine.clock.advance("601s")
    assert (await visitor.ask("POST", "/v1/sessions", {"code": code}, token=None)).status == 401


async def test_a_session_ends_when_it_is_not_used_and_at_last_anyway(visitor: Visitor) -> None:
    async def sign_in() -> str:
        code = (await visitor.good("POST", "/v1/sign-in-codes", {}))["url"].split("#code=")[1]
        return str((await visitor.good("POST", "/v1/sessions", {"code": code}, token=None))["value"])

    used, idle = await sign_in(), await sign_in()
    for _ in range(65):
        await visitor.engine.clock.advance("11h")
        assert (await visitor.ask("GET", "/v1/owner", token=used)).status == 200
    assert (await visitor.ask("GET", "/v1/owner", token=idle)).status == 401
    await visitor.engine.clock.advance("11h")
    assert (await visitor.ask("GET", "/v1/owner", token=used)).status == 401


async def test_what_a_token_made_goes_with_it(visitor: Visitor) -> None:
    admin = await made(visitor, name="boss", scopes=["read", "admin"])
    code = (await visitor.good("POST", "/v1/sign-in-codes", {}, token=admin["value"]))["url"].split("#code=")[1]
    session = (await visitor.good("POST", "/v1/sessions", {"code": code}, token=None))["value"]
    assert (await visitor.good("GET", "/v1/owner", token=session))["scopes"] == ["admin", "read"]
    await visitor.ask("DELETE", f"/v1/tokens/{admin['id']}")
    assert (await visitor.ask("GET", "/v1/owner", token=session)).status == 401


async def test_without_a_server_there_is_nothing_to_sign_in_to(visitor: Visitor) -> None:
    visitor.engine.desk.url = None
    assert (await visitor.ask("POST", "/v1/sign-in-codes", {})).code == "not_ready"


async def test_a_ticket_is_for_an_event_path_of_ones_own(visitor: Visitor) -> None:
    task = (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["id"]
    ticket = await visitor.good("POST", "/v1/tickets", {"path": f"/v1/tasks/{task}/events"})
    assert set(ticket) == {"ticket", "expires_at"}
    eve = await visitor.issue(owner="eve")
    for path in (f"/v1/tasks/{task}/events", "/v1/tasks/t_00000000000000000000000000/events"):
        refused = await visitor.ask("POST", "/v1/tickets", {"path": path}, token=eve)
        assert (refused.status, refused.code) == (404, "not_found")
    assert (await visitor.ask("POST", "/v1/tickets", {"path": "/v1/tasks"})).status == 400
    assert (await visitor.ask("GET", "/v1/owner", token=ticket["ticket"])).status == 401


def test_the_local_user_may_do_everything() -> None:
    from tests.unit.doors.api.window import ANA

    request = Request(method="GET", path="/", query={}, headers={}, body=None, who=ANA, local=True)
    assert request.by.scopes == {"read", "write", "answer", "admin"}
