"""`search.local` (files of the workspace, offline) and `search.web` (a SearXNG-compatible endpoint).

What comes from the web is checked row by row: only http(s), no markup, no control characters, nothing endless.
"""

import asyncio
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from everstep.adapters.net import Asked, Client, Reply, Request, parse_url
from everstep.adapters.threads import Threads
from everstep.adapters.tools.family import closed, spec_of
from everstep.adapters.tools.http_answer import judge
from everstep.adapters.tools.result_cache import Kept, ResultCache
from everstep.domain.failure import Failure
from everstep.domain.ids import Millis
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Health, Misconfigured, ToolError, ToolSpec
from everstep.settings import Settings

CONNECT_S: Final = 3.0
TOTAL_S: Final = 10.0
HEALTH_S: Final = 4.0
BODY_BYTES: Final = 5_000_000
TITLE_CHARS: Final = 300
SNIPPET_CHARS: Final = 1_000
_TAGS: Final = re.compile(r"<[^<>]{0,1000}>")
_SPACE: Final = re.compile(r"\s+")


class SearchTools(ToolAdapter):
    """Both; the second only where a provider is configured."""

    def __init__(
        self, client: Client, providers: Mapping[str, str], threads: Threads, cache: ResultCache | None = None
    ) -> None:
        self._client = client
        self._cache = cache or ResultCache(fresh_s=86_400.0, stale_s=7 * 86_400.0)
        self._providers = providers
        self._threads = threads

    def tools(self) -> Sequence[ToolSpec]:
        """What there is."""
        return (_LOCAL, _WEB) if self._providers else (_LOCAL,)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """A provider nobody named."""
        provider = call.arguments.get("provider")
        if isinstance(provider, str) and provider not in self._providers:
            return [("/provider", f"names no provider; there are: {', '.join(self._providers)}")]
        return ()

    def target(self, call: Call) -> str:
        """Each provider has a breaker of its own."""
        return self._provider(call) if call.tool == "search.web" else call.tool

    def degrade(self, call: Call, level: int, cause: Failure) -> Call | None:  # noqa: ARG002
        """Half the results, then three."""
        limit = call.arguments.get("limit", 10)
        assert isinstance(limit, int)
        fewer = {1: limit // 2, 2: 3}.get(level, 0)
        if call.tool != "search.web" or not 0 < fewer < limit:
            return None
        return Call(call.tool, {**call.arguments, "limit": fewer}, call.effect, call.idempotency_key)

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Search."""
        arguments: dict[str, Any] = call.arguments
        if call.tool == "search.web":
            return await self._web(call, ctx)
        from everstep.adapters.search_index import search  # brings a second SQLite: only who searches files pays for it

        limit, glob = arguments.get("limit", 10), arguments.get("glob", "*")
        return await self._threads.call(lambda: search(ctx.workdir, arguments["query"], glob=glob, limit=limit))

    async def health(self) -> Health:
        """Which providers can be reached; no query is spent."""
        if not self._providers:
            return Health(status="healthy", detail="the local index needs nothing")
        said = await asyncio.gather(*map(self._reach, self._providers.values()))
        unwell = {name: why for name, why in zip(self._providers, said, strict=True) if why}
        detail = "; ".join(f"{name}: {why}" for name, why in unwell.items())
        return Health(status="degraded" if unwell else "healthy", detail=detail, unwell=unwell)

    async def _reach(self, url: str) -> str:
        """Why a provider cannot be reached; empty: it can."""
        asked = Asked(literal=True, configured=True, came_from="the configuration")
        request = Request(method="HEAD", url=url, asked=asked, connect_s=CONNECT_S, total_s=HEALTH_S)
        try:
            reply = await self._client.send(request)
        except ToolError as error:
            return str(error)
        return f"it answered {reply.status}" if reply.status >= 500 else ""

    def _provider(self, call: Call) -> str:
        return str(call.arguments.get("provider") or next(iter(self._providers)))

    async def _web(self, call: Call, ctx: Ctx) -> JsonValue:
        arguments: dict[str, Any] = call.arguments
        provider = self._provider(call)
        query = {"q": _normal(arguments["query"]), "format": "json", "pageno": arguments.get("page", 1)}
        query |= {name: arguments[name] for name in ("language", "time_range") if name in arguments}
        key = f"{ctx.owner} {provider} {urlencode({**query, 'q': query['q'].casefold()})}"

        async def fetch() -> JsonObject:
            return await self._asked(provider, urlencode(query), ctx)

        if arguments.get("cache") == "off":
            kept = Kept(value=await fetch(), age_s=0.0, cached=False)
        else:
            kept = await self._cache.get(key, fetch)
        results = kept.value["results"]
        assert isinstance(results, list)
        return {
            "results": results[: arguments.get("limit", 10)],
            "dropped": kept.value["dropped"],
            "provider": provider,
            "cached": kept.cached,
            "age_s": round(kept.age_s, 1),
            "stale": kept.stale,
        }

    async def _asked(self, provider: str, query: str, ctx: Ctx) -> JsonObject:
        url = self._providers[provider]
        request = Request(
            method="GET",
            url=f"{url}{'&' if '?' in url else '?'}{query}",
            asked=Asked(literal=True, configured=True, came_from="the configuration"),
            headers=(("Accept", "application/json"), ("Accept-Encoding", "gzip"), ("User-Agent", "everstep")),
            max_bytes=BODY_BYTES,
            connect_s=CONNECT_S,
            total_s=TOTAL_S,
        )
        reply = await self._client.send(request)
        ctx.usage(bytes_in=reply.size_bytes)
        rows = _rows(reply, provider)
        good: list[JsonValue] = [row for row in map(cleaned, rows) if row is not None]
        return {"results": good, "dropped": len(rows) - len(good)}


def providers_of(settings: Settings) -> dict[str, str]:
    """Search engines by name, the first one first."""
    return {name: str(url) for name, table in settings.tables("search.providers").items() for url in table.values()}


def search_of(settings: Settings, client: Client, threads: Threads) -> SearchTools:
    """The family, made as the settings say."""
    fresh, stale = (settings.said[f"search.{name}"].value for name in ("cache", "stale"))
    assert isinstance(fresh, int)
    assert isinstance(stale, int)
    cache = ResultCache(fresh_s=fresh / 1000, stale_s=stale / 1000)
    return SearchTools(client, providers_of(settings), threads, cache)


def _rows(reply: Reply, provider: str) -> list[JsonValue]:
    if reply.status == 403:
        raise _not_json(f"{provider} answered 403: its JSON format is probably off")
    judge(reply, None)
    try:
        said = json.loads(reply.body)
    except (ValueError, RecursionError):
        raise _not_json(f"{provider} did not answer in JSON") from None
    rows = said.get("results") if isinstance(said, dict) else None
    if not isinstance(rows, list):
        raise _not_json(f"{provider} answered without 'results'")
    return rows


def _not_json(what: str) -> Misconfigured:
    return Misconfigured(what, code="search_not_json", what_to_do="allow `json` in the provider's search.formats")


def cleaned(row: JsonValue) -> JsonObject | None:
    """One result, fit to be shown; None if it is none."""
    if not isinstance(row, dict) or not isinstance(row.get("url"), str):
        return None
    try:
        url = str(parse_url(str(row["url"])))
    except ToolError:
        return None
    title, snippet = _plain(row.get("title"), TITLE_CHARS), _plain(row.get("content"), SNIPPET_CHARS)
    published = row.get("publishedDate")
    if not title and not snippet:
        return None
    return {
        "title": title,
        "url": url,
        "snippet": snippet,
        "published": published[:40] if isinstance(published, str) else None,
    }


def _plain(text: JsonValue, most: int) -> str:
    """Text without markup, control and direction characters."""
    if not isinstance(text, str):
        return ""
    from html import unescape

    shorter = unescape(_TAGS.sub(" ", text[: 20 * most]))
    kept = "".join(
        c if unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Co"} else " " for c in _TAGS.sub(" ", shorter)
    )
    return _SPACE.sub(" ", kept).strip()[:most]


def _normal(query: str) -> str:
    return _SPACE.sub(" ", unicodedata.normalize("NFC", query)).strip()


_QUERY: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 1_000, "description": "What to look for"}
_LIMIT: Final[JsonObject] = {
    "type": "integer",
    "minimum": 1,
    "maximum": 50,
    "default": 10,
    "description": "The most results",
}
_LOCAL: Final = spec_of(
    "search.local",
    "Search files",
    "Find text, Markdown and HTML files of the workspace by their words; offline.",
    takes={
        "query": _QUERY,
        "glob": {"type": "string", "default": "*", "description": "Which files: *.md, or notes/*"},
        "limit": _LIMIT,
    },
    needs=("query",),
    gives=closed(
        {
            "results": {
                "type": "array",
                "items": closed(
                    {
                        "path": {"type": "string"},
                        "title": {"type": "string"},
                        "snippet": {"type": "string"},
                        "score": {"type": "number"},
                    }
                ),
            },
            "indexed": {"type": "integer", "description": "Files that were searched"},
            "skipped": {"type": "integer", "description": "Files that are too large, or no text"},
        }
    ),
    isolation="thread",
    permissions=("fs.read",),
    timeout_ms=Millis(60_000),
)
_WEB: Final = replace(
    spec_of(
        "search.web",
        "Search the web",
        "Ask a search engine of the configuration.",
        takes={
            "query": _QUERY,
            "limit": _LIMIT,
            "language": {"type": "string", "pattern": "^[A-Za-z-]{2,12}$", "description": "Such as de, or en-GB"},
            "time_range": {"enum": ["day", "week", "month", "year"], "description": "How old results may be"},
            "page": {"type": "integer", "minimum": 1, "maximum": 20, "default": 1, "description": "Which page"},
            "provider": {"type": "string", "x-everstep-kind": "literal", "description": "A name of [search.providers]"},
            "cache": {
                "enum": ["on", "off"],
                "default": "on",
                "description": "Whether a result of today is good enough",
            },
        },
        needs=("query",),
        gives=closed(
            {
                "results": {
                    "type": "array",
                    "items": closed(
                        {
                            "title": {"type": "string"},
                            "url": {"type": "string"},
                            "snippet": {"type": "string"},
                            "published": {"type": ["string", "null"]},
                        }
                    ),
                },
                "dropped": {"type": "integer", "description": "Rows that were no usable results"},
                "provider": {"type": "string"},
                "cached": {"type": "boolean"},
                "age_s": {"type": "number"},
                "stale": {"type": "boolean"},
            }
        ),
        timeout_ms=Millis(11_000),
    ),
    pool="search",
    permissions=("net.http",),
    rate="search.* 30/1m:10",
    step_timeout_ms=Millis(45_000),
)
