"""`http.*` against real sockets: answers of every kind, servers that mean harm, and whose word opens what."""

import asyncio
import hashlib
import random
import socket
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from everstep import Plan
from everstep.adapters.net.client import Client
from everstep.adapters.net.guard import Asked, Guard, parse_network
from everstep.adapters.net.message import IDLE_S, PER_HOST, Request
from everstep.adapters.threads import Threads
from everstep.adapters.tools.http import HttpTarget, HttpTools
from everstep.domain.failure import Failure
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue
from everstep.engine.classify import classify
from everstep.facade.runnable import as_plan
from everstep.ports.tool import Denied, Origin, ToolError
from everstep.testing import TestEngine
from everstep.testing.conformance.sample import Sample
from everstep.testing.conformance.tool import check_adapter, failed
from everstep.testing.rig import (
    Behaviour,
    HttpRig,
    answer,
    drip,
    endless,
    many_headers,
    nonsense,
    packed,
    reset,
    silence,
)
from everstep.wire.schema import compile_schema
from tests.unit.contexts import call_of, context
from tests.unit.passing import ends


@pytest.fixture
async def rig() -> AsyncIterator[HttpRig]:
    async with HttpRig() as one:
        one.on("/text", answer(200, "höflich".encode()))
        one.on("/json", answer(200, {"n": [1, 2]}))
        yield one


@pytest.fixture
async def tools(rig: HttpRig) -> AsyncIterator[HttpTools]:
    made = tools_for(rig)
    yield made
    await made.close()


def tools_for(rig: HttpRig, **target: str) -> HttpTools:
    targets = {"rig": HttpTarget(url=rig.url("/"), **target)}
    return HttpTools(Client(guard=Guard()), targets, Threads())


async def called(tools: HttpTools, name: str, *, workdir: Path = Path(), **arguments: JsonValue) -> JsonObject:
    specs = {spec.name: spec for spec in tools.tools()}
    call = call_of(name, arguments)
    assert compile_schema(specs[name].input_schema)(call.arguments) == []
    assert tools.validate(call) == []
    result = await tools.execute(call, context(workdir=workdir, origin=Origin(trusted=True, written=arguments)))
    schema = specs[name].output_schema
    assert schema is not None
    assert compile_schema(schema)(result) == []
    assert isinstance(result, dict)
    return result


async def test_text_and_json(rig: HttpRig, tools: HttpTools) -> None:
    text = await called(tools, "http.get", url=rig.url("/text"), query={"a": "b c", "n": [1, 2]})
    assert (text["status"], text["text"], text["bytes"]) == (200, "höflich", 8)
    assert rig.asked[-1].target == "/text?a=b+c&n=1&n=2"
    assert (await called(tools, "http.get", url=rig.url("/json")))["json"] == {"n": [1, 2]}
    head = await called(tools, "http.head", url=rig.url("/json"))
    assert (head["json"], head["content_type"]) == (None, "application/json")
    rig.on("/form", answer(201, b"made", Location="/elsewhere"))
    made = await called(tools, "http.post", url=rig.url("/form"), form={"a": "1"}, headers={"X-Mine": "yes"})
    assert (made["status"], rig.asked[-1].body, rig.asked[-1].headers["x-mine"]) == (201, b"a=1", "yes")


async def test_a_target_gets_its_own_credential(rig: HttpRig) -> None:
    """Of whoever may use it; a call that brings one keeps its own, and nothing follows to another host."""
    targets = {"rig": HttpTarget(url=rig.url("/json"), auth="secret:token", health=rig.url("/json"))}
    known = {("token", "local"): "s3cret-token", ("token", None): "s3cret-token"}
    tools = HttpTools(Client(guard=Guard()), targets, Threads(), lambda name, owner: known.get((name, owner)))
    await called(tools, "http.get", url=rig.url("/json"))
    assert rig.asked[-1].headers["authorization"] == "Bearer s3cret-token"
    await called(tools, "http.get", url=rig.url("/json"), headers={"Authorization": "Basic mine"})
    assert rig.asked[-1].headers["authorization"] == "Basic mine"
    await called(tools, "http.get", url=rig.url("/text"))
    assert "authorization" not in rig.asked[-1].headers
    assert (await tools.health()).status == "healthy"
    call = call_of("http.get", {"url": rig.url("/json")})
    with pytest.raises(ToolError) as refused:
        await tools.execute(call, context(owner="somebody", origin=Origin(trusted=True, written=call.arguments)))
    assert refused.value.code == "secret_missing"
    await tools.close()


async def test_a_download_is_a_whole_file(rig: HttpRig, tools: HttpTools, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(500_000)
    rig.on("/file", packed(content))
    saved = await called(tools, "http.download", url=rig.url("/file"), path="got/it.bin", workdir=tmp_path)
    assert (tmp_path / "got/it.bin").read_bytes() == content
    assert (saved["sha256"], saved["bytes"]) == (hashlib.sha256(content).hexdigest(), len(content))
    with pytest.raises(ToolError) as refused:
        await called(tools, "http.get", url=rig.url("/file"))
    assert refused.value.code == "http_not_text"


async def test_a_download_without_a_path_is_an_artifact(rig: HttpRig, tools: HttpTools) -> None:
    rig.on("/reports/q%201.csv", answer(200, b"a,b", **{"Content-Type": "text/csv; charset=utf-8"}))
    saved = await called(tools, "http.download", url=rig.url("/reports/q%201.csv"))
    digest = hashlib.sha256(b"a,b").hexdigest()
    assert saved["artifact"] == {"name": "q 1.csv", "digest": f"sha256:{digest}", "media_type": "text/csv", "bytes": 3}
    assert saved["sha256"] == digest


@pytest.mark.req("6.2", "E.1", "E.2", "E.3")
@pytest.mark.parametrize(
    ("status", "category", "effect"),
    [
        *((s, "transient", "none") for s in (408, 425, 429, 503)),
        *((s, "transient", "unknown") for s in (500, 502, 504)),
        *((s, "configuration", "none") for s in (400, 404, 405, 410, 415, 418, 422, 501)),
        *((s, "permission", "none") for s in (401, 403, 407, 451)),
        *((s, "logic", "none") for s in (409, 412, 423)),
        *((s, "resource", "none") for s in (413, 507)),
    ],
)
async def test_what_a_status_means(rig: HttpRig, tools: HttpTools, status: int, category: str, effect: str) -> None:
    rig.on("/s", answer(status, b"no", Retry_After="7"))
    with pytest.raises(Exception, match=f"answered {status}: no") as raised:
        await called(tools, "http.get", url=rig.url("/s"))
    failure = classify(raised.value, tool="http.get", adapter_says=None)
    assert (failure.code, failure.category, failure.effect_state) == (f"http_{status}", category, effect)
    assert failure.retry_after_ms == 7_000
    assert (await called(tools, "http.get", url=rig.url("/s"), expect=[status]))["status"] == status


@pytest.mark.req("6.2", "E.1", "TR.2")
async def test_connections_that_break(rig: HttpRig, tools: HttpTools) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        await fails(tools, closed, "net_refused", "none")
    rig.on("/reset", reset)
    await fails(tools, rig.url("/reset"), "net_reset", "unknown")
    rig.on("/nonsense", nonsense)
    await fails(tools, rig.url("/nonsense"), "net_reset", "unknown")
    rig.on("/headers", many_headers)
    await fails(tools, rig.url("/headers"), "net_reset", "unknown")


async def fails(tools: HttpTools, url: str, code: str, effect: str) -> None:
    with pytest.raises(ToolError) as raised:
        await called(tools, "http.get", url=url)
    assert (raised.value.code, raised.value.effect_state) == (code, effect), raised.value


@pytest.mark.req("6.2", "6.4", "TR.2")
@pytest.mark.parametrize(("behaviour", "code"), [(silence, "net_read"), (drip(0.05), "net_read")])
async def test_servers_that_take_their_time(rig: HttpRig, tools: HttpTools, behaviour: object, code: str) -> None:
    rig.on("/slow", behaviour)  # type: ignore[arg-type]
    began = time.monotonic()
    request = Request(method="GET", url=rig.url("/slow"), asked=Asked(literal=True), total_s=2.0)
    with pytest.raises(ToolError) as raised:
        await tools._client.send(request)
    assert (raised.value.code, raised.value.effect_state) == (code, "unknown")
    assert time.monotonic() - began > 1.9


async def test_answers_without_end_are_cut(rig: HttpRig, tools: HttpTools) -> None:
    rig.on("/endless", endless)
    await fails(tools, rig.url("/endless"), "reply_too_large", "unknown")
    rig.on("/bomb", packed(b"\0" * 9_000_000))
    await fails(tools, rig.url("/bomb"), "reply_too_large", "unknown")


@pytest.mark.req("R.3")
async def test_connections_are_used_again_five_to_a_host(rig: HttpRig, tools: HttpTools) -> None:
    await asyncio.gather(*(called(tools, "http.get", url=rig.url("/json")) for _ in range(50)))
    assert rig.count("/json") == 50
    assert rig.connections <= 5
    assert not tools._client._hosts, "nothing is kept of hosts that nobody asks"
    assert (PER_HOST, IDLE_S) == (5, 60.0)


# --- redirects and names ---


async def test_redirects_are_followed_and_counted(rig: HttpRig, tools: HttpTools) -> None:
    rig.on("/a", answer(302, Location="/b?x=1"))
    rig.on("/b", answer(303, Location="text"))
    got = await called(tools, "http.get", url=rig.url("/a"))
    assert (got["text"], got["redirects"]) == ("höflich", [rig.url("/b?x=1"), rig.url("/text")])
    rig.on("/loop", answer(301, Location="/loop"))
    await fails(tools, rig.url("/loop"), "http_redirects", "none")
    assert rig.count("/loop") == 6
    rig.on("/moved", answer(307, Location="/json"))
    rig.on("/see", answer(303, Location="/json"))
    await called(tools, "http.post", url=rig.url("/moved"), json={"a": 1})
    assert (rig.asked[-1].method, rig.asked[-1].body) == ("POST", b'{"a": 1}')
    await called(tools, "http.post", url=rig.url("/see"), json={"a": 1})
    assert (rig.asked[-1].method, rig.asked[-1].body) == ("GET", b"")


@pytest.mark.req("W.4")
@pytest.mark.parametrize(("status", "effect"), [(301, "unknown"), (302, "unknown"), (303, "unknown"), (307, "none")])
@pytest.mark.parametrize("then", ["refused", "denied", "busy", "closed", "on and on"])
async def test_what_was_sent_and_answered_with_another_place_may_have_been_made(
    rig: HttpRig, tools: HttpTools, status: int, effect: str, then: str
) -> None:
    """A server that has taken an order says where to look; that this place does not answer does not undo the order."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refusing = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    places = {"refused": refusing, "denied": "http://169.254.169.254/", "on and on": "/order"}
    rig.on("/order", answer(status, Location=places.get(then, f"/{then}")))
    rig.on("/busy", answer(503))
    rig.on("/closed", answer(401))
    failure = await failing(tools, "http.post", rig.url("/order"))
    assert failure.effect_state == effect, failure  # 307: it is to be sent on as it was, and was taken nowhere


@pytest.mark.req("W.4")
async def test_an_order_that_was_answered_badly_is_not_sent_again(rig: HttpRig, tmp_path: Path) -> None:
    """The whole way: one request reaches the server, and somebody is asked."""
    rig.on("/order", answer(303, Location="/gone"))
    rig.on("/gone", answer(429))
    plan = Plan("order")
    plan.step("send", "http.post", {"url": rig.url("/order"), "json": {"a": 1}})
    config: JsonObject = {"http": {"targets": {"rig": {"url": rig.url("/")}}}}
    async with TestEngine([], workspace=tmp_path, config=config) as engine:
        task = await engine.start(plan)
        await ends(engine, task)
        assert (rig.count("/order"), engine.inbox.only().type) == (1, "uncertainOutcome")


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (answer(200, b"\xff\xfe\xfd"), "http_not_text"),
        (answer(200, b"x", Content_Encoding="br"), "http_encoding"),
        (answer(304), "http_unexpected"),
    ],
)
async def test_an_answer_that_cannot_be_used_was_an_answer(
    rig: HttpRig, tools: HttpTools, behaviour: Behaviour, code: str
) -> None:
    rig.on("/order", behaviour)
    failure = await failing(tools, "http.post", rig.url("/order"))
    assert (failure.code, failure.effect_state) == (code, "made")


async def failing(tools: HttpTools, name: str, url: str) -> Failure:
    """What a call means that fails."""
    with pytest.raises(Exception) as caught:
        await called(tools, name, url=url, json={"a": 1})
    return classify(caught.value, tool=name)


@pytest.mark.parametrize(
    "place",
    [
        "http://127.0.0.2:1/",
        "http://169.254.169.254/latest/",
        "//127.0.0.3/",
        "http://[::1]:1/",
        "http://0x7f.1/",
        "ftp://a/",
    ],
)
async def test_a_redirect_to_another_host_is_data(rig: HttpRig, tools: HttpTools, place: str) -> None:
    rig.on("/out", answer(302, Location=place))
    with pytest.raises(ToolError) as refused:
        await called(tools, "http.get", url=rig.url("/out"))
    assert refused.value.code in {"policy_denied", "net_url"}


async def test_credentials_stay_with_their_host(rig: HttpRig) -> None:
    async with HttpRig(host="127.0.0.2") as other:
        other.on("/", answer(200, b"ok"))
        rig.on("/out", answer(302, Location=other.url("/")))
        guard = Guard(networks=(parse_network("127.0.0.2/32"),))
        tools = HttpTools(Client(guard=guard), {}, Threads())
        await called(tools, "http.get", url=rig.url("/out"), auth={"secret": "s3cret-value"}, headers={"Cookie": "c"})
        assert rig.asked[-1].headers["authorization"] == "Bearer s3cret-value"
        assert not {"authorization", "cookie"} & other.asked[-1].headers.keys()
        await tools.close()


async def test_a_name_that_changes_its_mind(rig: HttpRig) -> None:
    """DNS rebinding: what was checked is what is connected to, and what is checked is every answer."""
    answers = iter([["8.8.8.8", "127.0.0.1"], ["127.0.0.1"]])

    async def resolve(host: str, port: int) -> Sequence[str]:
        return next(answers)

    tools = HttpTools(Client(guard=Guard(), resolve=resolve), {}, Threads())
    for _ in range(2):
        call = call_of("http.get", {"url": f"http://rebind.test:{rig.port}/text"})
        with pytest.raises(Denied):
            await tools.execute(call, context(origin=Origin(trusted=True, written={"url": "${item.url}"})))
    assert rig.connections == 0


async def test_a_kept_connection_opens_nothing_for_data(rig: HttpRig) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    tools = HttpTools(Client(guard=Guard(), resolve=resolve), {}, Threads())
    url = f"http://name.test:{rig.port}/text"
    await called(tools, "http.get", url=url)
    with pytest.raises(Denied):
        await tools.execute(call_of("http.get", {"url": url}), context(origin=Origin(trusted=False)))
    assert rig.count() == 1
    await tools.close()


# --- arguments ---


@pytest.mark.parametrize(
    "arguments",
    [
        {"headers": {"Host": "evil"}},
        {"headers": {"Content-Length": "1"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"X": "a\r\nY: b"}},
        {"headers": {"X\r\nY": "a"}},
        {"headers": {"X": "a\0b"}},
        {"headers": {"": "a"}},
        {"json": 1, "text": "a"},
    ],
)
def test_arguments_that_are_not_sent(arguments: JsonObject) -> None:
    tools = HttpTools(Client(guard=Guard()), {}, Threads())
    assert tools.validate(call_of("http.post", {"url": "http://a/", **arguments}))


async def test_the_contract(rig: HttpRig, tools: HttpTools) -> None:
    cases = [
        Sample(tool="http.put", arguments={"url": rig.url("/json"), "json": [1]}),
        Sample(tool="http.get", arguments={"url": "http://127.1/"}, fits=False),
        Sample(tool="http.get", arguments={"url": "http://a/", "headers": {"Host": "b"}}, fits=False),
    ]
    assert failed(await check_adapter(tools, cases)) == []


# --- targets of the configuration ---


@pytest.mark.req("Comm.2")
async def test_a_target_that_knows_keys(rig: HttpRig) -> None:
    tools = tools_for(
        rig, idempotency_header="Idempotency-Key", probe=rig.url("/orders/{key}"), health=rig.url("/json")
    )
    call = call_of("http.post", {"url": rig.url("/json")}, key="k1")
    assert tools.effect_of(call) is Effect.IDEMPOTENT
    await tools.execute(call, context())
    assert rig.asked[-1].headers["idempotency-key"] == "k1"
    assert (await tools.health()).status == "healthy"
    asks = tools_for(rig, probe=rig.url("/orders/{key}"))
    assert asks.effect_of(call) is Effect.VERIFIABLE
    assert (await asks.probe(call)).result == "not_done"
    rig.on("/orders/k1", [answer(200, {"id": 7}), answer(500)])
    seen = await asks.probe(call)
    assert isinstance(seen.output, dict)
    assert (seen.result, seen.output["json"]) == ("done", {"id": 7})
    assert (await asks.probe(call)).result == "unknown"
    elsewhere = call_of("http.post", {"url": rig.url("/json").replace(str(rig.port), "1")})
    assert asks.effect_of(elsewhere) is None
    await tools.close()
    await asks.close()


# --- as a plan calls them ---


def get(url: str) -> JsonObject:
    return {"name": "fetching", "steps": [{"id": "got", "tool": "http.get", "with": {"url": url}}]}


@pytest.mark.req("DoD.11")
async def test_a_literal_loopback_url_of_a_trusted_plan(rig: HttpRig, tmp_path: Path) -> None:
    file = tmp_path / "fetching.plan.yaml"
    file.write_text(f"name: fetching\nsteps:\n  - {{id: got, tool: http.get, with: {{url: '{rig.url('/json')}'}}}}\n")
    async with TestEngine() as engine:
        assert (await (await engine.start(file)).result()).status == "completed"
        stranger = Plan.from_dict(get(rig.url("/json")))
        assert not as_plan(stranger).trusted
        refused = await (await engine.start(stranger)).result()
    assert refused.error is not None
    assert refused.error["code"] == "policy_denied"
    assert f"127.0.0.1:{rig.port} came from an untrusted plan" in str(refused.error["message"])
    assert refused.error["details"] == {
        "fix": {"file": "everstep.toml", "line": f'[policy] networks = ["127.0.0.1/32:{rig.port}"]'}
    }
    assert rig.count() == 1


async def test_a_host_from_data_needs_the_operators_word(rig: HttpRig) -> None:
    plan = Plan("fetching", inputs={"url": str})
    plan.step("got", "http.get", {"url": plan.inputs.url})
    async with TestEngine() as engine:
        refused = await (await engine.start(plan, {"url": rig.url("/json")})).result()
    assert refused.error is not None
    assert "came from ${inputs.url}" in str(refused.error["message"])
    allowed: JsonObject = {"policy.networks": [f"127.0.0.1/32:{rig.port}"]}
    async with TestEngine(config=allowed) as engine:
        assert (await (await engine.start(plan, {"url": rig.url("/json")})).result()).status == "completed"


@pytest.mark.req("2.5", "8.2")
async def test_a_busy_server_is_asked_four_times(rig: HttpRig) -> None:
    rig.on("/busy", [answer(503), answer(503), answer(503), answer(200, b"at last")])
    plan = Plan("fetching")
    plan.step("got", "http.get", {"url": rig.url("/busy")})
    async with TestEngine() as engine:
        task = await engine.start(plan)
        assert [one.status for one in await ends(engine, task)] == ["completed"]
    assert rig.count("/busy") == 4
