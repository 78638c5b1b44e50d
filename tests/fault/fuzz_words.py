"""What nobody would say: requests that are nearly right, by a seed. Paths, headers, bodies, frames, JSON-RPC."""

import json
import random
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import quote

from everstep.doors.api.routes import ROUTES, Route
from tests.fault.no_result import text_of

Kind = Literal["path", "header", "body", "rpc", "frame"]
KINDS: Final[tuple[Kind, ...]] = ("path", "header", "body", "body", "rpc", "rpc", "frame")
Header = tuple[bytes, bytes]

PLAN: Final[dict[str, Any]] = {
    "name": "p", "inputs": {"n": "integer"}, "outputs": {"v": "${a}"},
    "steps": [{"id": "a", "tool": "text.join", "with": {"texts": ["a", "b"]}},
              {"id": "b", "tool": "sim.sleep", "with": {"seconds": 0}, "when": "a != null", "retry": {"times": 1}}],
}  # fmt: skip
TEXTS: Final = (
    "", " ", "\x00", "'", '"; DROP TABLE tasks; --', "../../etc/passwd", "${steps.a}", "{{7*7}}", "t_", "p_0", "é" * 99,
    "a" * 5_000, "0", "-1", "9" * 400, "null", "1e309", "\u202e", "\ud800", "\r\nx: y", "%00", "1d", "P1D", "*", "a=b",
    "2027-01-15T08:00:00Z", "9999-99-99T99:99:99Z", "0-00000000", "ffffffffffffffff-ffffffff", "sha256:" + "0" * 64,
    "running", "approve", "immediate", "task.completed", "fuzzed", "sim.sleep", "sim", "~", ".", "/", "//", "\\", "💥",
)  # fmt: skip
NUMBERS: Final = (0, -1, 1, 2**31, 2**53, -(2**53), 2**63, 10**30, 1.5, -0.0, 1e308, 0.1)
FIELDS: Final[dict[str, Sequence[Any]]] = {
    "plan": (PLAN,), "plan_name": ("nap", "fuzzed"), "inputs": ({"n": 1}, {"n": "1"}, {"m": 1}),
    "plan_text": (json.dumps(PLAN), "name: p\nsteps: [&a [*a]]", "a: !!python/object:os.system x"),
    "answer": ("approve", "resume", "retry", "answer", "cancel"), "mode": ("graceful", "immediate"),
    "scopes": (["read"], ["write", "admin"]), "labels": ({"a": "b"},), "on": (False,), "event": ("over",),
    "ops": ([{"op": "replace", "step": "a", "value": {}}], [{"op": "remove", "id": "b"}]), "path": ("/v1/events",),
    "limits": ({"calls": 1}, {"wall_time": "1s"}), "priority": ("high", "low"), "base_revision": (1, 2),
}  # fmt: skip
WAITS: Final = ("0", "", "x", "-1", "1.5")
"""Who asks to wait is let wait: that is no hang."""
METHODS: Final = (
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "get",
    "PROPFIND",
    "G@T",
)
NAMES: Final = (
    "authorization", "host", "origin", "content-type", "content-length", "content-encoding", "transfer-encoding",
    "if-match", "if-none-match", "idempotency-key", "accept", "range", "last-event-id", "connection", "upgrade",
    "expect", "cookie", "x-forwarded-for", "x-request-id", "mcp-protocol-version", "mcp-session-id", "mcp-method",
    "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol", "accept-encoding", "te", "trailer",
)  # fmt: skip
VALUES: Final = (
    b"", b"*/*", b"text/event-stream", b"application/json", b"application/json; charset=utf-7", b"gzip", b"chunked",
    b"bytes=0-0", b"bytes=5-1", b"bytes=-99999999999", b'"3"', b'W/"3"', b"*", b"-1", b"99999999999999999999", b"0x10",
    b"Bearer", b"Bearer es_wrong", b"Basic YTpi", b"null", b"http://evil.test", b"evil.test", b"[::1", b"close",
    b"websocket", b"100-continue", b"\xff\xfe", b"\xc3\xa9", b"a" * 9_000, b"2026-07-28", b"2025-11-25", b"\tx", b"13",
)  # fmt: skip
FRAMING: Final = {b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"connection"}
"""Who lies about these may have to wait for himself."""
METHODS_RPC: Final = (
    "initialize", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read",
    "resources/templates/list", "resources/subscribe", "completion/complete", "logging/setLevel", "tasks/get",
    "tasks/result", "tasks/list", "tasks/cancel", "tasks/update", "server/discover", "notifications/initialized",
    "notifications/cancelled", "roots/list", "sampling/createMessage", "", "__init__", "tools/call/../list",
)  # fmt: skip
META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
KEYS_RPC: Final = (
    "name",
    "arguments",
    "uri",
    "taskId",
    "cursor",
    "ref",
    "argument",
    "level",
    "requestId",
    "_meta",
    "task",
)


@dataclass(frozen=True)
class Case:
    """What is sent on a connection of its own."""

    kind: Kind
    raw: bytes
    method: str = ""
    path: str = ""
    then: bytes = b""
    """What follows once the server has agreed to speak otherwise."""
    whole: bool = True
    """It may be that more was promised than is sent: then nobody has to answer."""


@dataclass(frozen=True)
class There:
    """What a seed can name that is really there."""

    port: int
    token: str
    tasks: Sequence[str]
    session: str
    """Of the older revision of MCP."""


def case_of(seed: int, there: There) -> Case:
    """What this seed says."""
    chance = random.Random(f"fuzz {seed}")
    kind = chance.choice(KINDS)
    return SAYING[kind](chance, there)


def text(chance: random.Random) -> str:
    return chance.choice(TEXTS) if chance.random() < 0.8 else "".join(chance.choices(TEXTS, k=3))


def value(chance: random.Random, depth: int = 0) -> Any:
    """JSON of any shape."""
    match chance.randrange(8 if depth < 4 else 5):
        case 0 | 1:
            return text(chance)
        case 2:
            return chance.choice(NUMBERS)
        case 3:
            return chance.choice((None, True, False))
        case 4:
            return chance.choice(([], {}, [[]], "", 0))
        case 5 | 6:
            return {text(chance)[:40]: value(chance, depth + 1) for _ in range(chance.randrange(4))}
        case _:
            return [value(chance, depth + 1) for _ in range(chance.randrange(4))]


def mutated(chance: random.Random, whole: Any) -> Any:
    """Something that is right, but for one place."""
    if isinstance(whole, dict) and whole and chance.random() < 0.8:
        key = chance.choice([*whole])
        match chance.randrange(5):
            case 0:
                return {name: inner for name, inner in whole.items() if name != key}
            case 1:
                return {**whole, text(chance)[:40]: value(chance)}
            case _:
                return {**whole, key: mutated(chance, whole[key])}
    if isinstance(whole, list) and whole and chance.random() < 0.8:
        at = chance.randrange(len(whole))
        return [*whole[:at], mutated(chance, whole[at]), *whole[at + 1 :]]
    return value(chance)


def dumped(whole: Any) -> bytes:
    return json.dumps(whole, ensure_ascii=False).encode(errors="surrogatepass")


def request(method: str, target: bytes, headers: Sequence[Header], body: bytes = b"") -> bytes:
    """As it goes over the wire."""
    lines = b"".join(b"%s: %s\r\n" % (name, said) for name, said in headers)
    return b"%s %s HTTP/1.1\r\n%s\r\n%s" % (method.encode(), target, lines, body)


def usual(there: There, body: bytes = b"") -> list[Header]:
    found = [(b"host", b"127.0.0.1:%d" % there.port), (b"authorization", f"Bearer {there.token}".encode()),
             (b"connection", b"close")]  # fmt: skip
    if body:
        found += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    return found


def filled(chance: random.Random, route: Route, there: There, *, wild: float) -> str:
    """A path, with something in place of what it names."""
    parts = []
    for part in route.path.split("/"):
        if part == "{task}" and chance.random() > wild:
            parts.append(chance.choice(there.tasks))
        elif part.startswith("{"):
            said = text(chance) if chance.random() < wild else chance.choice(("a", "1", "b", "sim.sleep", "nap"))
            parts.append(quote(said.encode(errors="surrogatepass"), safe="") or "x")
        else:
            parts.append(part)
    return "/".join(parts)


def of_path(chance: random.Random, there: There) -> Case:
    """Paths and queries."""
    route, method = chance.choice(ROUTES), "GET"
    if chance.random() < 0.3:
        method = chance.choice(METHODS)
    path = filled(chance, route, there, wild=0.5)
    if chance.random() < 0.1:
        path = chance.choice(("*", "//", "/v1//tasks", "/v1/tasks/", "/V1/tasks", "http://evil.test/v1/tasks", "/mcp/x",
                              "/v1/tasks/%2e%2e/x", "/v1/../v1/tasks", "/assets/../x", "/%zz", "/"))  # fmt: skip
    names = [*route.query, *chance.choices(TEXTS, k=1)]
    asked = []
    for name in chance.choices(names, k=chance.randrange(4)):
        said = chance.choice(WAITS) if name == "wait" else text(chance)
        asked.append("=".join(quote(one.encode(errors="surrogatepass")) for one in (name, said)))
    target = path.encode() + (b"?" + "&".join(asked).encode() if asked else b"")
    if chance.random() < 0.1:
        at = chance.randrange(len(target))
        target = target[:at] + chance.choice((b" ", b"\x00", b"\xff", b"#", b"%", b"?")) + target[at:]
    return Case("path", request(method, target, usual(there)), method, path)


def of_header(chance: random.Random, there: There) -> Case:
    """Headers."""
    route = chance.choice(ROUTES)
    body = dumped({"plan": PLAN, "inputs": {"n": 1}}) if route.body else b""
    headers = usual(there, body)
    for _ in range(chance.randrange(1, 4)):
        name = chance.choice(NAMES).encode() if chance.random() < 0.9 else dumped(text(chance))[:30]
        said = chance.choice(VALUES) if chance.random() < 0.8 else chance.randbytes(chance.randrange(20))
        others = [one for one in headers if one[0] != name]
        headers = [*(headers if chance.random() < 0.3 else others), (name, said)]
    if chance.random() < 0.02:
        headers += [(b"x-%d" % n, b"y") for n in range(5_000)]
    path = filled(chance, route, there, wild=1.0 if route.method == "DELETE" else 0.1)
    odd = {name.lower() for name, _ in headers[3:]} & FRAMING or any(b"\n" in part for one in headers for part in one)
    changed = (b"connection", b"close") not in headers or bool(odd)
    return Case("header", request(route.method, path.encode(), headers, body), route.method, path, whole=not changed)


def of_body(chance: random.Random, there: There) -> Case:
    """Bodies."""
    route = chance.choice([one for one in ROUTES if one.method != "GET"])
    fields = [*route.body] or ["note"]
    match chance.randrange(6):
        case 0:
            body = text_of(chance.randrange(1, 10**6) * 500 + 1).encode(errors="surrogatepass")
        case 1:
            body = chance.randbytes(chance.randrange(1, 300))
        case 2:
            body = dumped(value(chance))
        case _:
            said = {
                name: chance.choice(FIELDS.get(name, TEXTS))
                for name in chance.sample(fields, chance.randint(1, len(fields)))
            }
            said.pop("on", None)
            body = dumped(mutated(chance, said) if chance.random() < 0.6 else said)
    path = filled(chance, route, there, wild=1.0 if route.method == "DELETE" else 0.1)
    if path == "/v1/halt" and b"true" in body:
        path = "/v1/signals"  # whoever halts everything would be the last one heard
    return Case("body", request(route.method, path.encode(), usual(there, body), body), route.method, path)


def of_rpc(chance: random.Random, there: There) -> Case:
    """JSON-RPC."""
    method = chance.choice(METHODS_RPC)
    params: Any = {name: value(chance) for name in chance.sample(KEYS_RPC, chance.randrange(4))}
    modern = chance.random() < 0.5
    if modern:
        params["_meta"] = META if chance.random() < 0.8 else mutated(chance, META)
    message: Any = {
        "jsonrpc": "2.0",
        "id": chance.choice((str, int))(chance.randrange(10**9)),
        "method": method,
        "params": params,
    }
    if chance.random() < 0.5:
        message = mutated(chance, message)
    if chance.random() < 0.1:
        message = [message, value(chance)]
    body = dumped(message) if chance.random() < 0.9 else dumped(message)[: chance.randrange(50)] or b"{"
    headers = [*usual(there, body), (b"accept", b"application/json, text/event-stream")]
    headers += [(b"mcp-protocol-version", b"2026-07-28" if modern else b"2025-11-25")] if chance.random() < 0.9 else []
    if not modern and chance.random() < 0.9:
        headers.append((b"mcp-session-id", there.session.encode()))
    headers += [(b"mcp-method", method.encode())] if modern and chance.random() < 0.9 else []
    return Case("rpc", request("POST", b"/mcp", headers, body), "POST", "/mcp")


def frame(chance: random.Random, opcode: int, payload: bytes, *, wild: bool) -> bytes:
    """One frame of a WebSocket; if it is wild, something about it is not as it should be."""
    first, masked, length = 0x80 | opcode, 0x80, len(payload)
    match chance.randrange(6) if wild else 6:
        case 0:
            first |= chance.choice((0x40, 0x20, 0x10))
        case 1:
            masked = 0
        case 2:
            length = chance.choice((2**63 - 1, 2**64 - 1, 70_000, 2**31, length + 1))
        case 3:
            first &= 0x0F
        case 4:
            first = 0x80 | chance.randrange(16)
        case _:
            pass
    head = bytes([first])
    head += bytes([masked | length]) if length < 126 else bytes([masked | 127]) + length.to_bytes(8, "big")
    key = bytes(4)  # a mask of zeros masks nothing
    return head + (key if masked else b"") + payload


def of_frame(chance: random.Random, there: There) -> Case:
    """A WebSocket, and then whatever."""
    path = f"/v1/tasks/{chance.choice(there.tasks)}/events?after=0" if chance.random() < 0.7 else "/v1/events"
    headers = [*usual(there)[:2], (b"upgrade", b"websocket"), (b"connection", b"upgrade"),
               (b"sec-websocket-key", b64encode(chance.randbytes(16))), (b"sec-websocket-version", b"13")]  # fmt: skip
    said = b""
    for _ in range(chance.randrange(1, 8)):
        payload = chance.choice(
            (b'{"type":"ping"}', dumped(value(chance)), chance.randbytes(chance.randrange(130)), b"")
        )
        said += frame(chance, chance.choice((1, 1, 2, 8, 9, 10, 0)), payload[:60_000], wild=chance.random() < 0.4)
    if chance.random() < 0.1:
        said = chance.randbytes(200)
    close = frame(chance, 8, b"\x03\xe8", wild=False)
    return Case("frame", request("GET", path.encode(), headers), "GET", path, said + close)


SAYING: Final[dict[Kind, Callable[[random.Random, There], Case]]] = {
    "path": of_path, "header": of_header, "body": of_body, "rpc": of_rpc, "frame": of_frame,
}  # fmt: skip
