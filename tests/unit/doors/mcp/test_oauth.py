"""Tokens of an OAuth server at `/mcp`: whose tasks they reach, what they may do, and which are not good."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import jwt
import mcp_types as t
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from everstep import Engine
from everstep.domain.errors import SettingsError
from everstep.doors.mcp.oauth import PLACE, oauth_in
from everstep.settings import load_settings

US = "http://localhost/mcp"


class Issuer(ThreadingHTTPServer):
    """Somebody's OAuth server: it publishes its keys, and signs."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Pages)
        self.name = f"http://127.0.0.1:{self.server_port}"
        self.claimed = self.name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.looks = 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": "one", "alg": "ES256", "use": "sig"}]}

    def token(self, sub: str, *, kid: str = "one", key: Any = None, alg: str = "ES256", **claims: Any) -> str:
        usual = {"iss": self.name, "aud": US, "sub": sub, "exp": int(time.time()) + 600, "scope": "read write answer"}
        said = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        signed: Any = None if alg == "none" else key or self.key
        return jwt.encode(said, signed, algorithm=alg, headers={"kid": kid})


class _Pages(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        place = "/.well-known/openid-configuration"  # RFC 8414 is tried first, and is not there
        facts = {"issuer": self.server.claimed, "jwks_uri": f"{self.server.name}/keys"}
        said = {place: facts, "/keys": self.server.keys()}.get(self.path)
        self.server.looks += self.path == "/keys"
        body = json.dumps(said).encode()
        self.send_response(200 if said is not None else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as server:
        yield server
        server.shutdown()


@asynccontextmanager
async def open_to(issuer: Issuer, folder: Path) -> AsyncIterator[Any]:
    said = {"store": str(folder / "store.db"), "mcp.oauth.issuer": issuer.name, "mcp.oauth.audience": US}
    async with Engine(config=load_settings(said, env={}, cwd=folder)) as engine:
        yield engine.asgi()


def asking(app: Any, token: str | None) -> httpx2.AsyncClient:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), headers=headers, base_url="http://localhost")


@asynccontextmanager
async def official(app: Any, token: str) -> AsyncIterator[ClientSession]:
    async with (
        asking(app, token) as http,
        streamable_http_client(US, http_client=http, terminate_on_close=False) as streams,
        ClientSession(streams[0], streams[1]) as client,
    ):
        await asyncio.wait_for(client.initialize(), 60)
        yield client


PLAN = {"name": "p", "steps": [{"id": "a", "tool": "json.parse", "with": {"text": "1"}}]}


async def seen(client: ClientSession) -> list[Any]:
    found = await client.call_tool("list_tasks", {})
    assert found.structured_content is not None
    return [*found.structured_content["tasks"]]


async def test_whoever_signed_in_elsewhere_has_tasks_of_their_own(tmp_path: Path, issuer: Issuer) -> None:
    async with open_to(issuer, tmp_path) as app:
        async with official(app, issuer.token("ana")) as ana:
            made = await ana.call_tool("run_plan", {"plan": PLAN, "inputs": {}})
            assert not made.is_error, made
            assert len(await seen(ana)) == 1
        async with official(app, issuer.token("eve")) as eve:
            assert await seen(eve) == []
        async with official(app, (tmp_path / "store.token").read_text().strip()) as local:
            assert await seen(local) == [], "our own tokens are good beside them"
        async with official(app, issuer.token("ana", scope="read")) as ana:
            with pytest.raises(MCPError, match="lacks the scope 'write'"):
                await ana.call_tool("run_plan", {"plan": PLAN, "inputs": {}})
            wanted = {"name": "run_plan", "arguments": {"plan": PLAN, "inputs": {}}, "task": {"ttl": 60_000}}
            as_task = t.CallToolRequest(params=t.CallToolRequestParams.model_validate(wanted))
            with pytest.raises(MCPError, match="lacks the scope 'write'"):
                await ana.send_request(as_task, t.CallToolResult)
            assert "run_plan" in [one.name for one in (await ana.list_tools()).tools]
            assert len(await seen(ana)) == 1, "lists and polls need no more"
        async with official(app, issuer.token("ana", scope="read write")) as ana:
            with pytest.raises(MCPError, match="lacks the scope 'answer'"):
                await ana.call_tool("answer_pause", {"answer": "approve"})


async def test_a_token_that_is_not_good_is_never_somebody(tmp_path: Path, issuer: Issuer) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    shared = str(issuer.keys()["keys"][0]["x"])
    bad = {
        "expired": issuer.token("ana", exp=int(time.time()) - 3600),
        "for another audience": issuer.token("ana", aud="https://other.test/mcp"),
        "of another issuer": issuer.token("ana", iss="https://other.test"),
        "of nobody": issuer.token(""),
        "for ever": issuer.token("ana", exp=None),
        "signed by another": issuer.token("ana", key=other),
        "signed with what everybody knows": issuer.token("ana", key=shared, alg="HS256"),
        "not signed": issuer.token("ana", alg="none"),
        "of a key that nobody has": issuer.token("ana", kid="two"),
        "no token": "x.y.z",
    }
    async with open_to(issuer, tmp_path) as app:
        for why, token in bad.items():
            async with asking(app, token) as http:
                answer = await http.post("/mcp", json={})
                assert answer.status_code == 401, why
                place = f'Bearer resource_metadata="http://localhost{PLACE}"'
                assert answer.headers["www-authenticate"] == place
        assert issuer.looks == 1, "what nobody knows makes us ask once, not each time"
        async with asking(app, issuer.token("ana", scope="admin")) as http:
            assert (await http.post("/mcp", json={})).status_code == 403
        async with asking(app, issuer.token("ana")) as http:
            assert (await http.get("/v1/tasks")).status_code == 401, "it is good at /mcp alone"
        async with asking(app, None) as http:
            facts = (await http.get(PLACE)).json()
            assert (facts["resource"], facts["authorization_servers"]) == (US, [issuer.name])
            assert (await http.get(PLACE + "x")).status_code == 401


async def test_a_server_that_speaks_for_another_is_not_believed(tmp_path: Path, issuer: Issuer) -> None:
    issuer.claimed = "https://other.test"
    async with open_to(issuer, tmp_path) as app, asking(app, issuer.token("ana")) as http:
        answer = await http.post("/mcp", json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")


@pytest.mark.parametrize(
    ("issuer", "audience"), [("https://a.test", ""), ("", US), ("http://a.test", US), ("a.test", US)]
)
def test_half_a_server_or_one_that_anybody_could_play_stops_the_start_up(issuer: str, audience: str) -> None:
    with pytest.raises(SettingsError, match="can be trusted"):
        oauth_in(load_settings({"mcp.oauth.issuer": issuer, "mcp.oauth.audience": audience}, env={}))
