"""What an answer over HTTP means to a step: a success or a failure, JSON or text."""

import json
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from everstep.adapters.net.message import Reply
from everstep.domain.catalogue import ERROR_CODES
from everstep.domain.failure import EffectState
from everstep.domain.handles import NAME_CHARS_MAX
from everstep.domain.values import JsonObject
from everstep.ports.tool import Misconfigured


def judge(reply: Reply, expect: Sequence[int] | None) -> None:
    """An answer that is not what was expected is a failure."""
    if reply.status in (expect or range(200, 300)):
        return
    code = f"http_{reply.status}"
    words = reply.body[:200].decode(errors="replace").strip()
    row = ERROR_CODES.get(code)
    if row is None:
        raise Misconfigured(f"{reply.url} answered {reply.status}", code="http_unexpected", effect_state="made")
    raise HttpAnswer(f"{reply.url} answered {reply.status}{': ' + words if words else ''}", reply)


class HttpAnswer(Exception):
    """An answer with the status of an error; `engine/classify` knows what such a status means."""

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.status_code = reply.status
        self.effect_state = EffectState.UNKNOWN if reply.taken else None
        """None: as its status says."""
        after = reply.header("retry-after")
        self.retry_after = after if after is not None and after.strip().isdecimal() else None


def plain(reply: Reply) -> JsonObject:
    return {
        "status": reply.status,
        "url": reply.url,
        "headers": {name.lower(): value for name, value in reply.headers},
        "content_type": reply.header("content-type"),
        "bytes": reply.size_bytes,
        "redirects": [*reply.redirects],
        "elapsed_ms": reply.elapsed_ms,
    }


def name_in(url: str) -> str:
    """What a file from there is called: the end of the path, as far as it can be shown."""
    last = unquote(urlsplit(url).path.rpartition("/")[2])
    plain_name = "".join(one for one in last if one.isprintable() and one != "/")[:NAME_CHARS_MAX]
    return plain_name.strip() or "download"


def content(tool: str, reply: Reply) -> JsonObject:
    """The body: JSON where it says so and is, else text."""
    if tool == "http.head":
        return {"json": None, "text": None}
    kind, _, rest = (reply.header("content-type") or "").partition(";")
    kind = kind.strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return {"json": json.loads(reply.body), "text": None}
        except (ValueError, RecursionError):
            pass  # shown as it is
    charset = rest.partition("charset=")[2].strip(" \"'") or "utf-8"
    try:
        return {"json": None, "text": reply.body.decode(charset)}
    except (UnicodeDecodeError, LookupError):
        raise Misconfigured(
            f"the answer of {reply.url} is {kind or 'no text'}, not text",
            code="http_not_text",
            effect_state="made",
            what_to_do="keep it with http.download",
        ) from None
