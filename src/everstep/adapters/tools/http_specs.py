"""`http.*` as they are called: arguments, answers, effects."""

from dataclasses import replace
from functools import partial
from typing import Final

from everstep.adapters.net.message import BODY_BYTES, REDIRECTS_MAX
from everstep.adapters.tools.family import ARTIFACT, closed, spec_of
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject
from everstep.ports.tool import ToolSpec

BYTES_MAX: Final = 256 << 20
TIMEOUT_MS: Final = Millis(35_000)
STEP_TIMEOUT_MS: Final = Millis(120_000)

_URL: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "x-everstep-kind": "checked",
    "description": "http:// or https://",
}
_TEXTS: Final[JsonObject] = {"type": "object", "additionalProperties": {"type": "string"}}
_ASKS: Final[JsonObject] = {
    "url": _URL,
    "query": {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean", "array"]},
        "description": "Added to the URL, escaped",
    },
    "headers": {**_TEXTS, "description": "Headers of the request; not those that belong to the connection"},
    "auth": {
        **closed(
            {
                "secret": {"type": "string", "x-everstep-kind": "secret"},
                "scheme": {"enum": ["Bearer", "Basic", "Token", "X-API-Key"], "default": "Bearer"},
            },
            ("secret",),
        ),
        "description": "A credential: the name of a secret, and how it is sent",
    },
    "expect": {
        "type": "array",
        "items": {"type": "integer", "minimum": 100, "maximum": 599},
        "description": "Which statuses are a success; 200 to 299 unless said",
    },
    "max_bytes": {
        "type": "integer",
        "minimum": 0,
        "maximum": BYTES_MAX,
        "default": BODY_BYTES,
        "description": "The most bytes of an answer, unpacked",
    },
    "redirects": {
        "type": "integer",
        "minimum": 0,
        "maximum": REDIRECTS_MAX,
        "default": REDIRECTS_MAX,
        "description": "How many redirects are followed",
    },
}
_SENDS: Final[JsonObject] = {
    "json": {"description": "The body, as JSON"},
    "text": {"type": "string", "description": "The body, as text"},
    "form": {**_TEXTS, "description": "The body, as a form"},
    "artifact": {**ARTIFACT, "description": "The body: an artifact of an earlier step"},
}
_GIVES: Final[JsonObject] = {
    "status": {"type": "integer"},
    "url": {"type": "string"},
    "headers": {"type": "object"},
    "content_type": {"type": ["string", "null"]},
    "bytes": {"type": "integer"},
    "redirects": {"type": "array", "items": {"type": "string"}},
    "elapsed_ms": {"type": "integer"},
}
_ANSWER: Final = closed({**_GIVES, "json": {}, "text": {"type": ["string", "null"]}})
_SAVED: Final = closed(
    {
        **_GIVES,
        "sha256": {"type": "string"},
        "path": {"type": "string"},
        "created": {"type": "boolean"},
        "artifact": ARTIFACT,
    },
    (*_GIVES, "sha256"),
)
_PATH: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "x-everstep-kind": "checked",
    "description": "Path inside the workspace; without one, what comes is kept as an artifact",
}


def _spec(verb: str, title: str, description: str, *, effect: Effect, takes: JsonObject | None = None) -> ToolSpec:
    spec = spec_of(
        f"http.{verb}",
        title,
        description,
        takes={**_ASKS, **(takes or {})},
        needs=("url",),
        gives=_SAVED if verb == "download" else _ANSWER,
        effect=effect,
        timeout_ms=TIMEOUT_MS,
    )
    permissions = ("net.http", "fs.write") if verb == "download" else ("net.http",)
    return replace(
        spec,
        permissions=permissions,
        step_timeout_ms=STEP_TIMEOUT_MS,
        pool="http",
        rate="http.* 5/1s:5",
        probeable=verb in {"post", "patch"},
    )


_send: Final = partial(_spec, takes=_SENDS)
SPECS: Final = (
    _spec("get", "Fetch a page", "Fetch what is at a URL: JSON or text.", effect=Effect.PURE),
    _spec("head", "Look at a page", "What a server says of a URL, without its content.", effect=Effect.PURE),
    _spec(
        "download",
        "Download a file",
        "Keep what is at a URL as a file of the workspace, or as an artifact.",
        effect=Effect.IDEMPOTENT,
        takes={"path": _PATH},
    ),
    _send("put", "Put something there", "Replace what is at a URL.", effect=Effect.IDEMPOTENT),
    _send("delete", "Delete something there", "Remove what is at a URL.", effect=Effect.IDEMPOTENT),
    _send("post", "Send a request", "Send data to a URL.", effect=Effect.ONCE),
    _send("patch", "Change something there", "Change a part of what is at a URL.", effect=Effect.ONCE),
)
