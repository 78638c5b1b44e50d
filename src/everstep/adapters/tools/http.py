"""`http.*`: requests through the guard. Reading is on by itself; writing goes where the configuration says.

A target of the configuration may name a header for the idempotency key, or a URL that tells whether a request has
arrived: then a lost answer need not be asked about.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote, urlencode

from everstep.adapters.files import Expected, Workspace
from everstep.adapters.net import (
    BODY_BYTES,
    REDIRECTS_MAX,
    Asked,
    Client,
    Headers,
    Request,
    asked_by,
    parse_url,
)
from everstep.adapters.paths import names_of
from everstep.adapters.threads import Threads
from everstep.adapters.tools.http_answer import HttpAnswer, content, judge, name_in, plain
from everstep.adapters.tools.http_specs import SPECS
from everstep.adapters.tools.http_token import Tokens
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.values import JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Denied, Health, Misconfigured, Probed, ToolError, ToolSpec

_REFUSED: Final = frozenset(
    {
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
_READS: Final = frozenset({"http.get", "http.head", "http.download"})


Secret: TypeAlias = Callable[[str, str | None], str | None]


@record
class HttpTarget:
    """A place that the configuration names: who reaches it may write there."""

    url: str
    auth: str = ""
    """`secret:NAME`: a token that goes along."""
    token_url: str = ""
    """Where the secret is exchanged for a token that runs out."""
    idempotency_header: str = ""
    probe: str = ""
    """`https://…/{key}`: 200, it has arrived; 404, it has not."""
    health: str = ""

    def holds(self, url: str) -> bool:
        """Whether a URL is at or below this one."""
        mine, other = parse_url(self.url), parse_url(url)
        at = mine.target.partition("?")[0].rstrip("/")
        path = other.target.partition("?")[0]
        same = (mine.scheme, mine.host, mine.port) == (other.scheme, other.host, other.port)
        return same and (path == at or path.startswith(f"{at}/"))


class HttpTools(ToolAdapter):
    """Requests, and what their answers mean."""

    def __init__(
        self,
        client: Client,
        targets: Mapping[str, HttpTarget],
        threads: Threads,
        secret: Secret = lambda *_: None,
        *,
        learn: Callable[[str, str], None] = lambda *_: None,
    ) -> None:
        """`secret` gives the value behind a name, if this owner may use it; no owner: the operator's own."""
        self._tokens = Tokens(client, learn)
        self._client = client
        self._targets = targets
        self._threads = threads
        self._secret = secret

    def tools(self) -> Sequence[ToolSpec]:
        """One per method, and the download."""
        return tuple(SPECS)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """URLs, headers and bodies that cannot be sent."""
        problems = []
        arguments: dict[str, Any] = call.arguments
        try:
            parse_url(str(arguments.get("url", "http://a/")))
        except ToolError as error:
            problems.append(("/url", str(error)))
        for name, value in (arguments.get("headers") or {}).items():
            if name.lower() in _REFUSED:
                problems.append((f"/headers/{name}", "is set by everstep, or by nobody"))
            elif not _is_token(name) or not _is_line(value):
                problems.append(
                    (f"/headers/{name}", "is no header: it holds a line break or another control character")
                )
        given = [name for name in ("json", "text", "form", "artifact") if name in arguments]
        if len(given) > 1:
            problems.append((f"/{given[1]}", f"goes not together with '{given[0]}'"))
        if call.tool == "http.download" and "path" in arguments:
            try:
                names_of(str(arguments["path"]))
            except ToolError as error:
                problems.append(("/path", str(error)))
        return problems

    def effect_of(self, call: Call) -> Effect | None:
        """A target that knows the key is idempotent, one that can be asked is verifiable."""
        target = self._target(call)
        if target is None or call.tool not in {"http.post", "http.patch"}:
            return None
        return Effect.IDEMPOTENT if target.idempotency_header else Effect.VERIFIABLE if target.probe else None

    def target(self, call: Call) -> str:
        """The host: one that is down says nothing of others."""
        try:
            return parse_url(str(call.arguments.get("url", ""))).place
        except ToolError:
            return call.tool

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Send, and judge the answer."""
        arguments: dict[str, Any] = call.arguments
        target = self._target(call)
        own = {name.lower() for name in arguments.get("headers") or {}}
        sent = () if "auth" in arguments or "authorization" in own else await self._signed(target, ctx.owner)
        handle = arguments.get("artifact")
        request = self._request(call, ctx, sent, b"" if handle is None else await ctx.kept(handle))
        try:
            if call.tool == "http.download":
                return await self._download(request, call, ctx)
            reply = await self._client.send(request)
            ctx.usage(bytes_in=reply.size_bytes, bytes_out=len(request.body))
            judge(reply, arguments.get("expect"))
            return {**plain(reply), **content(call.tool, reply)}
        except HttpAnswer as error:
            if error.status_code != 401 or target is None or not target.token_url or not sent or error.effect_state:
                raise
            refused = sent[0][1].partition(" ")[2]
            again = partial(self._tokens.renew, target.token_url, self._secret_of(target, ctx.owner), refused)
            raise Denied(str(error), code="http_401", refresh=again) from error

    async def probe(self, call: Call) -> Probed:
        """Ask the target whether a request with this key has arrived."""
        target = self._target(call)
        if target is None or not target.probe:
            return Probed(result="unknown")
        url = target.probe.replace("{key}", quote(call.idempotency_key, safe=""))
        asked = Asked(literal=True, configured=True, came_from="the configuration")
        headers = await self._signed(target, None)
        reply = await self._client.send(Request(method="GET", url=url, asked=asked, headers=headers, total_s=9.0))
        if reply.status == 200:
            return Probed(result="done", output={**plain(reply), **content(call.tool, reply)})
        return Probed(result="not_done" if reply.status == 404 else "unknown")

    async def health(self) -> Health:
        """The targets that say where to ask."""
        asked = Asked(literal=True, configured=True, came_from="the configuration")
        unwell: dict[str, str] = {}
        for name, target in self._targets.items():
            if not target.health:
                continue
            try:
                headers = await self._signed(target, None)
                request = Request(method="GET", url=target.health, asked=asked, headers=headers, total_s=4.0)
                reply = await self._client.send(request)
                judge(reply, None)
            except (ToolError, HttpAnswer) as error:
                unwell[parse_url(target.url).place] = f"{name}: {error}"
        if not any(one.health for one in self._targets.values()):
            return Health()
        return Health(status="degraded" if unwell else "healthy", detail="; ".join(unwell.values()), unwell=unwell)

    async def close(self) -> None:
        """Let connections go."""
        await self._client.close()

    # --- parts ---

    def _target(self, call: Call) -> HttpTarget | None:
        try:
            url = str(call.arguments.get("url", ""))
            return next((target for target in self._targets.values() if target.holds(url)), None)
        except ToolError:
            return None

    def _request(self, call: Call, ctx: Ctx, signed: Headers, artifact: bytes) -> Request:
        arguments: dict[str, Any] = call.arguments
        body, kind = _body(arguments, artifact)
        headers = [("Accept-Encoding", "gzip"), ("User-Agent", "everstep")]
        headers += [("Content-Type", kind)] if kind else []
        own = {name.lower() for name in arguments.get("headers") or {}}
        headers = [one for one in headers if one[0].lower() not in own]
        headers += [*(arguments.get("headers") or {}).items()]
        target = self._target(call)
        if target is not None and target.idempotency_header:
            headers.append((target.idempotency_header, call.idempotency_key))
        if auth := arguments.get("auth"):
            headers.append(_credential(auth))
        headers += signed
        url = str(arguments["url"])
        if query := arguments.get("query"):
            url += ("&" if "?" in url else "?") + urlencode(query, doseq=True)
        return Request(
            method=call.tool.partition(".")[2].upper().replace("DOWNLOAD", "GET"),
            url=url,
            asked=asked_by(ctx, "url", "read" if call.tool in _READS else "write", configured=target is not None),
            headers=cast("Headers", tuple(headers)),
            body=body,
            max_bytes=arguments.get("max_bytes", BODY_BYTES),
            redirects=arguments.get("redirects", REDIRECTS_MAX),
        )

    async def _signed(self, target: HttpTarget | None, owner: str | None) -> Headers:
        """The target's own credential; whoever may not use it gets no answer from there."""
        if target is None or not target.auth:
            return ()
        value = self._secret_of(target, owner)
        if target.token_url:
            value = await self._tokens.get(target.token_url, value)
        return (_credential({"secret": value}),)

    def _secret_of(self, target: HttpTarget, owner: str | None) -> str:
        name = target.auth.removeprefix("secret:")
        value = self._secret(name, owner)
        if value is None:
            raise Misconfigured(f"there is no secret '{name}' for {target.url}", code="secret_missing")
        return value

    async def _download(self, request: Request, call: Call, ctx: Ctx) -> JsonValue:
        """The body becomes an artifact, or a file: whoever reads that finds the old content or the new."""
        kept = bytearray()
        reply = await self._client.send(replace(request, drain=kept.extend))
        judge(reply, cast("Any", call.arguments).get("expect"))
        ctx.usage(bytes_in=reply.size_bytes)
        path = str(call.arguments.get("path", ""))
        if not path:
            kind = (reply.header("content-type") or "").partition(";")[0].strip() or None
            left = ctx.artifact(name_in(reply.url), bytes(kept), kind)
            return {**plain(reply), "sha256": left.digest.removeprefix("sha256:"), "artifact": left.handle()}

        def work() -> JsonValue:
            with Workspace(ctx.workdir, stop=lambda: ctx.cancelled) as files:
                written = files.write(path, bytes(kept), key=call.idempotency_key, expected=Expected())
            return {"path": path, "sha256": written.sha256, "created": written.created}

        saved = await self._threads.call(work)
        assert isinstance(saved, dict)
        return {**plain(reply), **saved}


def _body(arguments: Mapping[str, Any], artifact: bytes) -> tuple[bytes, str | None]:
    if "artifact" in arguments:
        kind = str(arguments["artifact"]["media_type"])
        return artifact, kind if _is_line(kind) else "application/octet-stream"
    if "json" in arguments:
        return json.dumps(arguments["json"], ensure_ascii=False, allow_nan=False).encode(), "application/json"
    if "form" in arguments:
        return urlencode(arguments["form"], doseq=True).encode(), "application/x-www-form-urlencoded"
    if "text" in arguments:
        return str(arguments["text"]).encode(), "text/plain; charset=utf-8"
    return b"", None


def _credential(auth: Mapping[str, str]) -> tuple[str, str]:
    scheme, value = auth.get("scheme", "Bearer"), str(auth["secret"])
    if not _is_line(value):
        raise Misconfigured("the secret holds a line break", code="bad_argument")
    return ("X-API-Key", value) if scheme == "X-API-Key" else ("Authorization", f"{scheme} {value}")


def _is_token(name: str) -> bool:
    return bool(name) and name.isascii() and all(one.isalnum() or one in "!#$%&'*+-.^_`|~" for one in name)


def _is_line(value: str) -> bool:
    return all(
        character == "\t" or 0x20 <= ord(character) < 0x7F or 0xA0 <= ord(character) < 0x100 for character in value
    )
