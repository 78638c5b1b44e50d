"""The gate denies wrong tokens, scopes and bodies, and who asks too often; and lets in whom the table allows."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from everstep.doors.api.routes import ROUTES
from everstep.doors.http import gate as gates
from everstep.doors.http.answer import Receive, Scope, Send
from everstep.doors.http.gate import OPEN, Mount, check_scopes
from tests.unit.doors.api.window import ECHO, HOLD
from tests.unit.doors.http.visitor import Visitor, answer_of, visiting


@pytest.fixture
async def visitor() -> AsyncIterator[Visitor]:
    async with visiting() as one:
        yield one


async def greet(scope: Scope, receive: Receive, send: Send) -> None:
    """An app of somebody else: says who asks, after having read what was sent."""
    message = await receive()
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept", "subprotocol": "everstep.v1"})
        await asyncio.Event().wait()
    while message.get("more_body"):
        message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["everstep.principal"].owner.encode()})


# --- who may come in ---


async def test_a_token_lets_in_and_none_does_not(visitor: Visitor) -> None:
    assert (await visitor.good("GET", "/v1/tasks"))["items"] == []
    refused = await visitor.ask("GET", "/v1/tasks", token=None)
    assert (refused.status, refused.code) == (401, "unauthenticated")
    assert refused.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "said", ["Bearer es_wrong", "Bearer", "", "Basic {token}", "{token}", "Bearer  {token} x", "Token {token}"]
)
async def test_a_wrong_token_is_never_a_stranger(visitor: Visitor, said: str) -> None:
    header = {"authorization": said.format(token=visitor.token)} if said else {"authorization": " "}
    for path in ("/v1/tasks", "/v1/health"):
        refused = await visitor.ask("GET", path, token=None, headers=header)
        assert (refused.status, refused.code) == (401, "unauthenticated")


async def test_strangers_get_two_facts_of_health_and_others_all(visitor: Visitor) -> None:
    assert await visitor.good("GET", "/v1/health", token=None) == {"status": "ok", "ready": True}
    assert await visitor.good("GET", "/v1/ready", token=None) == {"status": "ok", "ready": True}
    assert (await visitor.good("GET", "/v1/health"))["version"] == "9.9"


async def test_every_path_known_or_not_looks_the_same_to_a_stranger(visitor: Visitor) -> None:
    answers = [
        await visitor.ask(method, path, token=None)
        for method, path in [("GET", "/v1/tasks"), ("POST", "/v1/nothing"), ("GET", "/"), ("DELETE", "/v1/health")]
    ]
    assert {(one.status, one.code) for one in answers} == {(401, "unauthenticated")}
    assert (await visitor.ask("GET", "/v1/nothing")).code == "not_found"
    assert (await visitor.ask("DELETE", "/v1/health")).code == "method_not_allowed"


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("read", "GET", "/v1/tasks"),
        ("write", "POST", "/v1/tasks"),
        ("answer", "POST", "/v1/inbox/p_1/answer"),
        ("admin", "PUT", "/v1/halt"),
    ],
)
async def test_a_route_asks_for_its_scope(visitor: Visitor, scope: str, method: str, path: str) -> None:
    others = await visitor.issue(*({"read", "write", "answer", "admin"} - {scope}))
    refused = await visitor.ask(method, path, {}, token=others)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert refused.json["error"]["details"] == {"scope": scope}
    assert (await visitor.ask(method, path, {}, token=await visitor.issue(scope))).status not in (401, 403)


@pytest.mark.req("Dep.1")
async def test_without_the_scope_write_plans_are_checked_but_not_started(visitor: Visitor) -> None:
    token = await visitor.issue("read", "answer")
    assert (await visitor.good("POST", "/v1/plans/check", {"plan": ECHO}, token=token))["valid"]
    assert "task" in await visitor.good("POST", "/v1/estimates", {"plan": ECHO}, token=token)
    assert (await visitor.ask("POST", "/v1/tasks", {"plan": ECHO}, token=token)).code == "forbidden"


@pytest.mark.req("Dep.1")
async def test_taking_write_away_does_not_stop_a_running_task(visitor: Visitor) -> None:
    token = await visitor.issue()
    task = await visitor.good("POST", "/v1/tasks", {"plan": HOLD}, token=token)
    access = visitor.engine.desk.access
    (mine,) = [one for one in await access.list() if one.hash == gates_digest(token)]
    await access.change(mine.id, frozenset({"read"}))
    assert (await visitor.ask("POST", "/v1/tasks", {"plan": ECHO}, token=token)).code == "forbidden"
    assert (await visitor.good("GET", f"/v1/tasks/{task['id']}", token=token))["status"] == "running"


def gates_digest(token: str) -> bytes:
    from everstep.facade.access import digest

    return digest(token)


def test_a_way_in_without_a_scope_stops_the_start_up() -> None:
    check_scopes(ROUTES, {})
    with pytest.raises(RuntimeError, match="'/mcp' declares no scope"):
        check_scopes(ROUTES, {"/mcp": Mount(app=greet, scope="")})
    assert {("GET", "/v1/health"), ("GET", "/v1/ready")} <= OPEN


# --- what crosses it ---


async def test_bodies_are_json_within_bounds(visitor: Visitor) -> None:
    async def code(body: bytes, **headers: str) -> tuple[int, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await visitor.ask("POST", "/v1/tasks", body, headers=named)
        return answer.status, answer.code

    assert await code(b"{}", content_type="text/plain") == (415, "unsupported_media_type")
    assert await code(b"{}", content_type="") == (415, "unsupported_media_type")
    assert await code(b"{}", content_encoding="gzip") == (415, "unsupported_media_type")
    assert await code(b"{") == (400, "bad_request")
    assert await code(b'{"a":NaN}') == (400, "bad_request")
    assert await code(b"[]") == (400, "bad_request")
    assert await code(b'{"status":"completed"}') == (422, "unknown_field")
    assert await code(b" " * 1_048_577) == (413, "too_large")
    assert await code(b"{}", content_length="9999999999") == (413, "too_large")
    assert (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["status"]


async def test_a_header_that_decides_something_is_said_once(visitor: Visitor) -> None:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": "/v1/tasks",
        "raw_path": b"/v1/tasks",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"Host", b"localhost"), (b"authorization", b"Bearer x")],
    }
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    await visitor.gate(scope, lambda: asyncio.sleep(0, {"type": "http.disconnect"}), send)
    assert answer_of(said).status == 400


async def test_too_many_requests_are_told_when_to_come_back() -> None:
    async with visiting(serve__rate="3/1m") as visitor:
        other = await visitor.issue()
        answers = [await visitor.ask("GET", "/v1/tasks") for _ in range(4)]
        assert [one.status for one in answers] == [200, 200, 200, 429]
        assert (answers[-1].code, answers[-1].headers["retry-after"]) == ("rate_limited", "20")
        assert (await visitor.ask("GET", "/v1/tasks", token=other)).status == 200


async def test_a_request_that_takes_too_long_ends() -> None:
    async with visiting(serve__request_timeout="100ms") as visitor:
        made = await visitor.good("POST", "/v1/tasks", {"plan": ECHO})
        await visitor.engine.clock.advance("1s")
        task = await visitor.good("GET", f"/v1/tasks/{made['id']}")
        refused = await visitor.ask("GET", f"/v1/tasks/{task['id']}/events?after={task['seq']}&wait=25")
        assert (refused.status, refused.code) == (503, "overloaded")


async def test_a_bug_behind_the_gate_shows_nothing_of_itself() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError("secret insides")

    async with visiting(mounts={"/mcp": Mount(app=broken, scope="read")}) as visitor:
        answer = await visitor.ask("GET", "/mcp")
        assert (answer.status, answer.code) == (500, "internal")
        assert b"secret" not in answer.body


# --- what is behind it ---


async def test_another_door_is_behind_the_same_gate() -> None:
    async with visiting(mounts={"/mcp": Mount(app=greet, scope="read")}) as visitor:
        assert (await visitor.ask("POST", "/mcp", {})).body == b"local"
        assert (await visitor.ask("GET", "/mcp/more")).body == b"local"
        assert (await visitor.ask("GET", "/mcpx")).code == "not_found"
        assert (await visitor.ask("POST", "/mcp", {}, token=None)).status == 401
        assert (await visitor.ask("POST", "/mcp", {}, token=await visitor.issue("answer"))).status == 403
        assert (await visitor.ask("POST", "/mcp", b" " * 1_048_577)).code == "too_large"


async def test_a_stream_knows_who_watches() -> None:
    async with visiting(streams=greet) as visitor:
        task = await visitor.good("POST", "/v1/tasks", {"plan": ECHO})
        events = f"/v1/tasks/{task['id']}/events"
        answer = await visitor.ask("GET", events, headers={"accept": "text/event-stream"})
        assert answer.body == b"local"
        assert "events" in (await visitor.ask("GET", events)).json
        refused = await visitor.knock("/v1/tasks", {"host": "localhost", "authorization": f"Bearer {visitor.token}"})
        assert answer_of(refused).code == "bad_request"
        refused = await visitor.knock(events, {"host": "localhost"})
        assert answer_of(refused).code == "unauthenticated"


@pytest.mark.parametrize("change", ["revoked", "narrowed"])
async def test_s13_a_token_that_is_revoked_loses_what_it_has_open(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "LOOK_S", 0.01)
    opened = asyncio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        opened.set()
        await greet(scope, receive, send)

    async with visiting(streams=stream) as visitor:
        task = await visitor.good("POST", "/v1/tasks", {"plan": HOLD})
        token = await visitor.issue()
        events = f"/v1/tasks/{task['id']}/events"
        socket = asyncio.create_task(visitor.knock(events, {"host": "localhost", "authorization": f"Bearer {token}"}))
        waiting = asyncio.create_task(visitor.ask("GET", f"{events}?after=99&wait=25", token=token))
        watch = asyncio.create_task(visitor.gate.watch())
        access = visitor.engine.desk.access
        (mine,) = [one for one in await access.list() if one.hash == gates_digest(token)]
        await asyncio.wait_for(opened.wait(), 60)
        if change == "revoked":
            await access.revoke(mine.id)
        else:
            await access.change(mine.id, frozenset({"write"}))
        messages = await asyncio.wait_for(socket, 60)
        assert [one["type"] for one in messages] == ["websocket.accept", "websocket.close"]
        assert messages[-1]["code"] == 4401
        assert (await asyncio.wait_for(waiting, 60)).status in (401, 410)
        watch.cancel()
        assert (await visitor.ask("GET", "/v1/tasks", token=token)).status in (401, 403)
        assert (await visitor.ask("GET", "/v1/tasks")).status == 200
