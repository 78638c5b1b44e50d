"""The security tests S1 to S13 of the gate, by their numbers; those of lists are in `test_sqlite_lists`."""

import asyncio
import time
from collections.abc import AsyncIterator
from statistics import median
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everstep.domain.values import JsonValue
from everstep.doors.api.routes import ROUTES, Route
from everstep.doors.http.answer import Message
from everstep.doors.http.gate import OPEN
from everstep.doors.http.rate import AT_ONCE_MAX
from tests.unit.doors.api.window import ECHO, HOLD
from tests.unit.doors.http.visitor import Answer, Visitor, answer_of, visiting

UNKNOWN = {
    "task": "t_00000000000000000000000000",
    "pause": "p_00000000000000000000000000",
    "breaker": "b_0000000000000000",
    "token": "k_00000000000000000000000000",
    "digest": f"sha256:{'0' * 64}",
    "step": "a",
    "number": "1",
    "name": "none",
}
BODIES: dict[str, dict[str, JsonValue]] = {
    "tasks.fork": {"from_step": "a"},
    "tasks.patch": {"base_revision": 1, "ops": [{"op": "skip", "id": "a"}]},
    "handing.continue": {"tool": "test.echo", "arguments": {}},
    "handing.complete": {"result": "done"},
    "tasks.update": {"title": "Other"},
    "pauses.answer": {"answer": "cancel"},
    "access.change_token": {"scopes": ["read"]},
    "access.new_ticket": {"path": "/v1/tasks/{task}/events"},
}
ASK: dict[str, JsonValue] = {"name": "ask", "steps": [{"id": "a", "tool": "ask", "with": {"question": "Which?"}}]}


@pytest.fixture
async def visitor() -> AsyncIterator[Visitor]:
    async with visiting(real_streams=True) as one:
        yield one


def path_of(route: Route, names: dict[str, str]) -> str:
    return "/".join(quote(names[part[1:-1]], safe="") if part[:1] == "{" else part for part in route.path.split("/"))


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


# --- S1: no way in without a credential ---


def variants(path: str) -> list[str]:
    head, _, tail = path.rpartition("/")
    return [path, f"{head}%2f{tail}", path.upper(), f"/{path}", f"{head}//{tail}", f"{path};x", f"{path}/health",
            f"{path}health", f"{path}/../health", f"{path}%00", f"{path}?health"]  # fmt: skip


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
async def test_s1_nobody_comes_in_without_a_good_token(route: Route, visitor: Visitor) -> None:
    expired = await visitor.issue(expires_in_ms=1000)
    await visitor.engine.clock.advance("2s")
    for path in variants(path_of(route, UNKNOWN)):
        is_open = (route.method, path.partition("?")[0]) in OPEN
        for token in (None, "es_wrong", expired, visitor.token[:-1], f"{visitor.token}x", visitor.token.swapcase()):
            answer = await visitor.ask(route.method, path, token=token)
            assert answer.status == 401 or (is_open and token is None), (path, token, answer)


# --- S2: names ---

NAMES = [
    # host, origin, sec-fetch-site, scheme -> status
    ("127.0.0.1:7717", None, None, "http", 200),
    ("localhost:7717", None, None, "http", 200),
    ("localhost", None, None, "http", 200),
    ("LOCALHOST:1", None, None, "http", 200),
    ("[::1]:7717", None, None, "http", 200),
    ("127.0.0.1:9999", None, None, "http", 200),
    ("tasks.example.test", None, None, "http", 200),
    ("tasks.example.test:444", None, None, "http", 200),
    ("exact.example.test:8443", None, None, "http", 200),
    ("exact.example.test:8444", None, None, "http", 421),
    ("exact.example.test", None, None, "http", 421),
    ("localhost.evil.test", None, None, "http", 421),
    ("localhost.", None, None, "http", 421),
    ("127.0.0.1.", None, None, "http", 421),
    ("127.0.0.1.evil.test", None, None, "http", 421),
    ("evil.test", None, None, "http", 421),
    ("evil.test:7717", None, None, "http", 421),
    ("user@localhost", None, None, "http", 421),
    ("localhost@evil.test", None, None, "http", 421),
    ("localhost:7717@evil.test", None, None, "http", 421),
    ("", None, None, "http", 421),
    ("0.0.0.0:7717", None, None, "http", 421),
    ("127.1:7717", None, None, "http", 421),
    ("2130706433", None, None, "http", 421),
    ("[::ffff:127.0.0.1]", None, None, "http", 421),
    ("::1", None, None, "http", 421),
    ("localhost:77177777", None, None, "http", 421),
    ("localhost/", None, None, "http", 421),
    ("localhost#evil", None, None, "http", 421),
    ("127.0.0.1:7717", "http://127.0.0.1:7717", "same-origin", "http", 200),
    ("127.0.0.1:7717", "http://127.0.0.1:7718", None, "http", 403),
    ("127.0.0.1:7717", "http://localhost:7717", None, "http", 403),
    ("127.0.0.1:7717", "https://127.0.0.1:7717", None, "http", 403),
    ("127.0.0.1:7717", "null", None, "http", 403),
    ("127.0.0.1:7717", "http://evil.test", None, "http", 403),
    ("127.0.0.1:7717", "http://127.0.0.1:7717.evil.test", None, "http", 403),
    ("127.0.0.1:7717", "http://evil.test#http://127.0.0.1:7717", None, "http", 403),
    ("127.0.0.1:7717", "https://page.example.test", None, "http", 200),
    ("127.0.0.1:7717", "https://page.example.test:444", None, "http", 403),
    ("127.0.0.1:7717", None, "cross-site", "http", 403),
    ("127.0.0.1:7717", None, "same-site", "http", 403),
    ("127.0.0.1:7717", None, "none", "http", 200),
    ("tasks.example.test", "https://tasks.example.test", None, "https", 200),
    ("tasks.example.test", "http://tasks.example.test", None, "https", 403),
]


@pytest.mark.parametrize(("host", "origin", "site", "scheme", "status"), NAMES)
async def test_s2_only_our_own_names_and_pages(
    host: str, origin: str | None, site: str | None, scheme: str, status: int
) -> None:
    hosts: list[JsonValue] = ["tasks.example.test", "exact.example.test:8443"]
    origins: list[JsonValue] = ["https://page.example.test"]
    async with visiting(serve__allowed_hosts=hosts, serve__allowed_origins=origins) as visitor:
        sent = {"host": host, "origin": origin or "", "sec-fetch-site": site or ""}
        for path in ("/v1/tasks", "/v1/health"):
            answer = await visitor.ask("GET", path, headers=sent, scheme=scheme)
            assert answer.status == status, (sent, answer)
            assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_s2_behind_a_proxy_pages_come_over_tls() -> None:
    async with visiting(serve__behind_tls_proxy=True, serve__allowed_hosts=["tasks.example.test"]) as visitor:
        for origin, status in (("https://tasks.example.test", 200), ("http://tasks.example.test", 403)):
            sent = {"host": "tasks.example.test", "origin": origin}
            assert (await visitor.ask("GET", "/v1/tasks", headers=sent)).status == status


async def test_s2_there_are_no_cookies_and_no_token_in_a_url(visitor: Visitor) -> None:
    for where in (f"/v1/tasks?token={visitor.token}", f"/v1/tasks?access_token={visitor.token}"):
        assert (await visitor.ask("GET", where, token=None)).status == 401
    cookie = {"cookie": f"token={visitor.token}; session={visitor.token}"}
    answer = await visitor.ask("GET", "/v1/tasks", token=None, headers=cookie)
    assert (answer.status, "set-cookie" in answer.headers) == (401, False)


# --- S3, S9: one parser, closed schemas ---

WRITING = [route for route in ROUTES if route.method != "GET"]
INTERNAL = ["status", "epoch", "seq", "id", "owner", "worker", "created_at", "created_by", "recoveries", "generation",
            "trusted", "file", "path", "workspace", "__proto__", "constructor"]  # fmt: skip


@pytest.mark.parametrize("route", WRITING, ids=name_of)
async def test_s3_a_body_of_another_type_is_refused(route: Route, visitor: Visitor) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json",
                 "application/json-patch+json", "application/xml", "application/jsonx", ""):  # fmt: skip
        sent = {"content-type": kind}
        answer = await visitor.ask(route.method, path_of(route, UNKNOWN), b'{"note":"x"}', headers=sent)
        assert answer.code == "unsupported_media_type", (kind, answer)


@pytest.mark.parametrize("route", WRITING, ids=name_of)
async def test_s9_nobody_sets_what_only_the_engine_knows(route: Route, visitor: Visitor) -> None:
    for field in INTERNAL:
        if field in route.body:
            continue
        answer = await visitor.ask(route.method, path_of(route, UNKNOWN), {field: "x"})
        assert (answer.status, answer.code) == (422, "unknown_field"), (field, answer)


# --- S4, S12: another owner's is as if it were not there ---


async def belongings(visitor: Visitor) -> dict[str, str]:
    """One of everything that an owner can have."""
    task = (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["id"]
    await visitor.good("POST", "/v1/tasks", {"plan": ASK})
    await visitor.engine.clock.advance("1s")
    pause = (await visitor.good("GET", "/v1/inbox"))["items"][0]["id"]
    digest = (await visitor.good("GET", f"/v1/tasks/{task}/steps/a"))["output"]["digest"]
    return {**UNKNOWN, "task": task, "pause": pause, "digest": digest, "step": "a", "number": "1"}


def told(answer: Answer) -> tuple[int, dict[str, str], Any]:
    """All of an answer but what differs from one request to the next."""
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    body = answer.json if answer.body else None
    if isinstance(body, dict) and "error" in body:
        body["error"]["id"] = ""
    return answer.status, headers, body


OF_AN_OWNER = [route for route in ROUTES if {"{task}", "{pause}", "{breaker}"} & set(route.path.split("/"))]


@pytest.mark.parametrize("route", OF_AN_OWNER, ids=name_of)
async def test_s4_another_owners_object_answers_as_one_that_never_was(route: Route, visitor: Visitor) -> None:
    theirs = await belongings(visitor)
    eve = await visitor.issue(owner="eve")
    body = None if route.method in ("GET", "DELETE") else BODIES.get(route.handler, {})
    foreign = await visitor.ask(route.method, path_of(route, theirs), body, token=eve)
    for number in range(12):
        never = {**theirs, "task": f"t_{number:026d}", "pause": f"p_{number:026d}", "breaker": f"b_{number:016d}"}
        unknown = await visitor.ask(route.method, path_of(route, never), body, token=eve)
        assert told(foreign) == told(unknown)
    assert foreign.status == 404
    for value in (theirs["task"], theirs["pause"], "local"):
        assert value not in foreign.body.decode()


async def test_s4_lists_show_nothing_of_others(visitor: Visitor) -> None:
    theirs = await belongings(visitor)
    eve = await visitor.issue(owner="eve")
    for path in ("/v1/tasks", "/v1/inbox", "/v1/errors", "/v1/breakers", f"/v1/tasks?parent={theirs['task']}",
                 f"/v1/tasks?q={theirs['task']}", "/v1/export?format=json", "/v1/events?after=0&limit=10"):  # fmt: skip
        answer = await visitor.ask("GET", path, token=eve)
        assert answer.status in (200, 400, 410), (path, answer)
        assert theirs["task"] not in answer.body.decode()
    for path in (f"/v1/inbox?task={theirs['task']}", f"/v1/errors?task={theirs['task']}"):
        never = path.replace(theirs["task"], UNKNOWN["task"])
        assert told(await visitor.ask("GET", path, token=eve)) == told(await visitor.ask("GET", never, token=eve))


async def test_s4_it_takes_as_long_too(visitor: Visitor) -> None:
    theirs = await belongings(visitor)
    eve = await visitor.issue(owner="eve")
    spent: dict[str, list[float]] = {theirs["task"]: [], UNKNOWN["task"]: []}
    for _ in range(60):
        for task, times in spent.items():
            begin = time.perf_counter()
            await visitor.ask("GET", f"/v1/tasks/{task}", token=eve)
            times.append(time.perf_counter() - begin)
    foreign, unknown = (median(times) for times in spent.values())
    assert abs(foreign - unknown) < 0.001


async def test_s4_an_admin_of_another_owner_sees_no_tasks_either(visitor: Visitor) -> None:
    theirs = await belongings(visitor)
    eve = await visitor.issue("read", "admin", owner="eve")
    assert (await visitor.good("GET", "/v1/tasks", token=eve))["items"] == []
    assert (await visitor.ask("GET", f"/v1/tasks/{theirs['task']}", token=eve)).status == 404


async def test_s12_a_foreign_stream_is_an_unknown_one(visitor: Visitor) -> None:
    theirs = await belongings(visitor)
    eve = await visitor.issue(owner="eve")
    sent = {"host": "localhost", "authorization": f"Bearer {eve}"}
    answers = [
        answer_of(await visitor.knock(f"/v1/tasks/{task}/events", sent)) for task in (theirs["task"], UNKNOWN["task"])
    ]
    assert told(answers[0]) == told(answers[1])
    assert answers[0].status == 404
    asked = {"accept": "text/event-stream"}
    paged = [
        await visitor.ask("GET", f"/v1/tasks/{task}/events", token=eve, headers=asked)
        for task in (theirs["task"], UNKNOWN["task"])
    ]
    assert told(paged[0]) == told(paged[1])


# --- S5: ids are parsed, not trimmed ---


@given(before=st.text(max_size=3), after=st.text(max_size=3))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_s5_what_only_contains_an_id_is_none(before: str, after: str) -> None:
    async with visiting() as visitor:
        task = (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["id"]
        said = f"{before}{task}{after}"
        answer = await visitor.ask("GET", f"/v1/tasks/{quote(said, safe='', errors='surrogatepass')}")
        assert answer.status == (200 if said == task else 404), (said, answer)


@pytest.mark.parametrize("owner", ["loca", "local2", "Local", "local.", "xlocal"])
async def test_s5_an_owner_is_compared_whole(owner: str, visitor: Visitor) -> None:
    theirs = await belongings(visitor)
    token = await visitor.issue(owner=owner)
    assert (await visitor.ask("GET", f"/v1/tasks/{theirs['task']}", token=token)).status == 404


# --- S6: keys are input too ---


async def test_s6_unknown_keys_and_altered_cursors_are_refused(visitor: Visitor) -> None:
    hostile = ["status'--", "owner", "1=1", "tasks.owner", "id;drop", "$where", "label[", "sort,", "limit[]", "%00"]
    for key in hostile:
        assert (await visitor.ask("GET", f"/v1/tasks?{quote(key)}=x")).status == 400
    for value in ("' OR 1=1 --", '"', "\\", "%", "_", "*", "a' UNION SELECT 1", "\x00", "ä", "x" * 2000):
        for key in ("plan", "tool", "q", "parent"):
            answer = await visitor.ask("GET", f"/v1/tasks?{key}={quote(value)}")
            assert (answer.status, answer.json["items"]) == (200, [])
        for key in ("status", "reason", "sort", "since", "until", "limit", "cursor", "needs_you"):
            assert (await visitor.ask("GET", f"/v1/tasks?{key}={quote(value)}")).status == 400
        assert (await visitor.ask("GET", f"/v1/tasks?label={quote(value)}:x")).status in (200, 400)


# --- S7: exhaustion ---


async def test_s7_only_so_many_requests_of_a_token_at_once(visitor: Visitor) -> None:
    made = await visitor.good("POST", "/v1/tasks", {"plan": ECHO})
    await visitor.engine.clock.advance("1s")
    seq = (await visitor.good("GET", f"/v1/tasks/{made['id']}"))["seq"]
    poll = f"/v1/tasks/{made['id']}/logs?wait=5&after={seq}"
    waiting = [asyncio.create_task(visitor.ask("GET", poll)) for _ in range(AT_ONCE_MAX + 1)]
    done, left = await asyncio.wait(waiting, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    assert {one.result().code for one in done} == {"rate_limited"}
    other = await visitor.issue()
    assert (await visitor.ask("GET", "/v1/tasks", token=other)).status == 200
    for one in left:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_s7_what_is_packed_or_deep_or_endless_is_refused(visitor: Visitor) -> None:
    deep = b"[" * 2000 + b"]" * 2000
    assert (await visitor.ask("POST", "/v1/tasks", b'{"plan":' + deep + b"}")).status in (400, 422)
    packed = {"content-encoding": "gzip"}
    assert (await visitor.ask("POST", "/v1/tasks", b"\x1f\x8b", headers=packed)).code == "unsupported_media_type"
    assert (await visitor.ask("POST", "/v1/tasks", b" " * 1_048_577)).code == "too_large"


# --- S8: nothing of the inside shows ---


async def test_s8_no_refusal_shows_the_inside(visitor: Visitor, tmp_path: object) -> None:
    task = (await visitor.good("POST", "/v1/tasks", {"plan": HOLD}))["id"]
    asked: list[tuple[str, str, JsonValue | bytes]] = [
        ("GET", "/v1/none", None),
        ("TRACE", "/v1/tasks", None),
        ("GET", "/v1/tasks?x=1", None),
        ("GET", "/v1/tasks?cursor=x", None),
        ("GET", f"/v1/tasks/{UNKNOWN['task']}", None),
        ("GET", f"/v1/tasks/{task}/steps/none", None),
        ("GET", f"/v1/tasks/{task}/events?after=999", None),
        ("POST", "/v1/tasks", b"{"),
        ("POST", "/v1/tasks", {}),
        ("POST", "/v1/tasks", {"x": 1}),
        ("POST", "/v1/tasks", {"plan": {"name": "x"}}),
        ("POST", "/v1/tasks", {"plan_name": "../../etc/passwd"}),
        ("POST", "/v1/tasks", {"plan_name": "none"}),
        ("POST", "/v1/tasks", {"plan": ECHO, "limits": {"calls": 10**9}}),
        ("DELETE", f"/v1/tasks/{task}", None),
        ("POST", f"/v1/tasks/{task}/retry", {}),
        ("POST", f"/v1/tasks/{task}/fork", {"from_step": "none"}),
        ("PATCH", f"/v1/tasks/{task}/plan", {"base_revision": 9, "ops": []}),
        ("POST", "/v1/sessions", {"code": "x"}),
        ("POST", "/v1/breakers/b_1/reset", {}),
        ("PUT", "/v1/halt", {"on": 1}),
    ]
    for method, path, body in asked:
        answer = await visitor.ask(method, path, body)
        assert 400 <= answer.status < 500, (method, path, answer)
        text = answer.body.decode()
        for inside in (
            "Traceback",
            ".py",
            "SELECT",
            "sqlite",
            "/home",
            "/root",
            "/tmp",
            "site-packages",
            visitor.token,
        ):
            assert inside not in text, (method, path, text)


# --- S10, S11: opening a WebSocket ---


@pytest.mark.parametrize(
    "origin",
    ["http://evil.test", "https://evil.test", "null", "http://localhost", "http://localhost:1", "https://localhost:7717",
     "http://localhost:7717.evil.test", "http://evil.test:7717", "file://", "chrome-extension://x", "http://127.0.0.1:7717",
     "ws://localhost:7717"],
)  # fmt: skip
async def test_s10_a_page_of_another_origin_opens_no_socket(origin: str, visitor: Visitor) -> None:
    task = (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["id"]
    sent = {"host": "localhost:7717", "authorization": f"Bearer {visitor.token}", "origin": origin}
    refused = answer_of(await visitor.knock(f"/v1/tasks/{task}/events", sent))
    assert (refused.status, refused.code) == (403, "origin_refused")


async def test_s11_a_ticket_is_good_once_here_and_now(visitor: Visitor) -> None:
    task = (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["id"]
    other = (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["id"]
    await visitor.engine.clock.advance("1s")
    path = f"/v1/tasks/{task}/events"

    async def ticket(**more: Any) -> str:
        return str((await visitor.good("POST", "/v1/tickets", {"path": path}, **more))["ticket"])

    async def come(value: str, at: str = path) -> list[Message]:
        sent = {"host": "localhost", "sec-websocket-protocol": f"everstep.v1, ticket.{value}"}
        return await visitor.knock(f"{at}?until=end", sent)

    good = await ticket()
    opened = await come(good)
    assert (opened[0]["type"], opened[0]["subprotocol"]) == ("websocket.accept", "everstep.v1")
    assert answer_of(await come(good)).code == "unauthenticated"
    strayed = await ticket()
    assert answer_of(await come(strayed, f"/v1/tasks/{other}/events")).code == "unauthenticated"
    assert answer_of(await come(strayed)).code == "unauthenticated"
    old = await ticket()
    await visitor.engine.clock.advance("61s")
    assert answer_of(await come(old)).code == "unauthenticated"
    assert answer_of(await come("nonsense")).code == "unauthenticated"
    assert (await visitor.ask("GET", path, token=await ticket())).status == 401
    eve = await visitor.issue(owner="eve")
    assert (await visitor.ask("POST", "/v1/tickets", {"path": path}, token=eve)).status == 404
    gone = await visitor.issue("read")
    theirs = await ticket(token=gone)
    (mine,) = [one for one in await visitor.engine.desk.access.list() if one.scopes == {"read"}]
    await visitor.engine.desk.access.revoke(mine.id)
    assert answer_of(await come(theirs)).code == "unauthenticated"
