"""The specs of `browser.*`."""

from dataclasses import replace
from typing import Final

from everstep.adapters.browser.acting import ACTIONS_SCHEMA, WAIT_SCHEMA
from everstep.adapters.tools.family import closed, spec_of
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject
from everstep.ports.tool import Prior, ToolSpec

_TIMEOUT: Final = Millis(30_000)
_URL: Final[JsonObject] = {"type": "string", "x-everstep-kind": "checked", "description": "The page"}
_SHARED: Final[JsonObject] = {
    "url": _URL,
    "wait": {**WAIT_SCHEMA, "description": "What must be there first: an element, a text, an address, silence"},
    "session": {
        "type": "string",
        "pattern": "^[a-z][a-z0-9_-]{0,30}$",
        "x-everstep-kind": "literal",
        "description": "Keeps cookies for later steps of this task that name it too",
    },
}
_TEXT: Final[JsonObject] = {"type": "string"}
_STATUS: Final[JsonObject] = {"type": ["integer", "null"]}

_PICTURE: Final[JsonObject] = closed(
    {"name": _TEXT, "digest": _TEXT, "media_type": _TEXT, "bytes": {"type": "integer"}}
)

_READ: Final = spec_of(
    "browser.read",
    "Read a page",
    "Open a page in a browser, with its scripts, and give its title, text and links.",
    takes={
        **_SHARED,
        "format": {"enum": ["text", "markdown"], "description": "How the text is given; text unless said"},
    },
    needs=("url",),
    gives=closed(
        {
            "title": _TEXT,
            "text": _TEXT,
            "truncated": {"type": "boolean"},
            "links": {"type": "array", "items": closed({"text": _TEXT, "url": _TEXT})},
            "final_url": _TEXT,
            "status": _STATUS,
        }
    ),
    isolation="process",
    timeout_ms=_TIMEOUT,
)
_SCREENSHOT: Final = spec_of(
    "browser.screenshot",
    "Picture a page",
    "Open a page in a browser and take a picture of it, passwords covered.",
    takes={
        **_SHARED,
        "area": {
            "anyOf": [{"enum": ["viewport", "full"]}, closed({"selector": {"type": "string", "minLength": 1}})],
            "description": "What is seen at first (unless said), all of it, or one element",
        },
        "format": {"enum": ["png", "jpeg"]},
        "path": {
            "type": "string",
            "x-everstep-kind": "checked",
            "description": "A file of the workspace that is to hold it too",
        },
    },
    needs=("url",),
    gives=closed(
        {
            "artifact": _PICTURE,
            "url": _TEXT,
            "taken_at": _TEXT,
            "path": {"type": ["string", "null"]},
        }
    ),
    isolation="process",
    timeout_ms=_TIMEOUT,
)
_ACT: Final = spec_of(
    "browser.act",
    "Act on a page",
    "Open a page in a browser, click, fill, choose and wait, and give what was asked for.",
    takes={**_SHARED, "actions": {**ACTIONS_SCHEMA, "description": "One after another: `{click: '#save'}`"}},
    needs=("url", "actions"),
    gives=closed({"extracted": {"type": "object"}, "final_url": _TEXT, "status": _STATUS, "screenshot": _PICTURE}),
    effect=Effect.ONCE,
    isolation="process",
    timeout_ms=_TIMEOUT,
)
SPECS: Final[tuple[ToolSpec, ...]] = tuple(
    replace(
        one,
        pool="browser",
        rate="browser.* 1/1s",
        permissions=("net.browser",),
        step_timeout_ms=Millis(90_000),
        prior=Prior(p10_s=0.5, p50_s=1.5, p90_s=8.0),
    )
    for one in (_READ, _SCREENSHOT, _ACT)
)
