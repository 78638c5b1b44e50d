"""`file.*` as they are called: arguments, answers, effects."""

from dataclasses import replace
from functools import partial
from typing import Final

from everstep.adapters.tools.family import ARTIFACT, closed, spec_of
from everstep.adapters.tools.listing import ENTRIES_MAX
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject
from everstep.ports.tool import Prior, ToolSpec

READ_BYTES: Final = 1 << 20
READ_BYTES_MAX: Final = 8 << 20
TIMEOUT_MS: Final = Millis(30_000)

_PATH: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "x-everstep-kind": "checked",
    "description": "Path inside the workspace, with / between folders",
}
_SHA256: Final[JsonObject] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_SIZE: Final[JsonObject] = {"type": "integer", "minimum": 0}
_KIND: Final[JsonObject] = {"enum": ["file", "folder", "link", "other"]}


_spec: Final = partial(
    spec_of,
    isolation="thread",
    permissions=("fs.read",),
    timeout_ms=TIMEOUT_MS,
    prior=Prior(p10_s=0.002, p50_s=0.006, p90_s=0.05),
)
READS: Final = (
    _spec(
        "file.read",
        "Read a file",
        "Read a text file of the workspace, or a part of it.",
        takes={
            "path": _PATH,
            "range": {
                **closed(
                    {
                        "start": {"type": "integer", "minimum": 0, "default": 0},
                        "length": {
                            "type": "integer",
                            "minimum": 1,
                            "maximum": READ_BYTES_MAX,
                            "default": READ_BYTES,
                        },
                    },
                    (),
                ),
                "description": "Which bytes; the first MiB unless said",
            },
        },
        needs=("path",),
        gives=closed(
            {
                "path": {"type": "string"},
                "text": {"type": "string"},
                "bytes": {**_SIZE, "description": "Size of the whole file"},
                "sha256": {**_SHA256, "description": "Hash of the whole file"},
                "truncated": {"type": "boolean", "description": "Whether the file has more than this text"},
            }
        ),
    ),
    _spec(
        "file.list",
        "List files",
        f"The files and folders below a folder of the workspace, by path; at most {ENTRIES_MAX}.",
        takes={
            "path": {**_PATH, "default": "."},
            "glob": {
                "type": "string",
                "default": "*",
                "description": "Which names: *.md; with a / in it, which paths below the folder: notes/*.md",
            },
            "depth": {
                "type": "integer",
                "minimum": 1,
                "maximum": 64,
                "default": 1,
                "description": "How many folders deep",
            },
        },
        needs=(),
        gives=closed(
            {
                "path": {"type": "string"},
                "entries": {
                    "type": "array",
                    "items": closed(
                        {
                            "path": {"type": "string"},
                            "type": _KIND,
                            "bytes": {"type": ["integer", "null"]},
                        }
                    ),
                },
                "truncated": {"type": "boolean"},
            }
        ),
    ),
    _spec(
        "file.stat",
        "Look at a file",
        "Whether something is at a path of the workspace, and what.",
        takes={"path": _PATH},
        needs=("path",),
        gives=closed(
            {
                "path": {"type": "string"},
                "exists": {"type": "boolean"},
                "type": {"anyOf": [_KIND, {"type": "null"}]},
                "bytes": {"type": ["integer", "null"]},
                "sha256": {"type": ["string", "null"]},
                "modified_at": {"type": ["string", "null"], "format": "date-time"},
            }
        ),
    ),
)


_OPTIONAL: Final = frozenset({"if", "overwrite", "recursive"})


def _change(name: str, title: str, description: str, *, takes: JsonObject, gives: JsonObject) -> ToolSpec:
    either = {"text", "artifact"} if "artifact" in takes else set()
    needs = [argument for argument in takes if argument not in _OPTIONAL | either]
    spec = _spec(name, title, description, takes=takes, needs=needs, gives=closed(gives), effect=Effect.IDEMPOTENT)
    content: JsonObject = {"anyOf": [{"required": [one]} for one in sorted(either, reverse=True)]} if either else {}
    return replace(spec, undoable=True, permissions=("fs.write",), input_schema={**spec.input_schema, **content})


_TEXT: Final[JsonObject] = {"type": "string", "description": "The content"}
_ARTIFACT: Final[JsonObject] = {
    **ARTIFACT,
    "description": "The content, in place of `text`: an earlier step's artifact",
}
_FROM: Final[JsonObject] = {**_PATH, "description": "Where it is"}
_TO: Final[JsonObject] = {**_PATH, "description": "Where it goes"}
_IF: Final[JsonObject] = {
    "anyOf": [{"const": "absent"}, _SHA256],
    "description": "Only if there is no such file yet, or it has this SHA-256",
}
_OVERWRITE: Final[JsonObject] = {
    "type": "boolean",
    "default": False,
    "description": "Whether a file that is there already may be replaced",
}
_EDITS: Final[JsonObject] = {
    "type": "array",
    "minItems": 1,
    "items": closed(
        {
            "find": {"type": "string", "minLength": 1},
            "replace": {"type": "string"},
            "count": {"type": "integer", "minimum": 1, "default": 1},
        },
        ("find", "replace"),
    ),
    "description": "What stands there, what shall stand there, and how often exactly it must be found",
}
_PLACED: Final[JsonObject] = {"path": {"type": "string"}, "bytes": _SIZE, "sha256": {"type": ["string", "null"]}}
_CREATED: Final[JsonObject] = {
    "created": {"type": "boolean", "description": "Whether there was nothing at this path before"}
}
_RECURSIVE: Final[JsonObject] = {
    "type": "boolean",
    "default": False,
    "description": "Whether a folder goes with all it holds",
}
_TAKES: Final[dict[str, JsonObject]] = {
    "write": {"path": _PATH, "text": _TEXT, "if": _IF},
    "append": {"path": _PATH, "text": {"type": "string", "description": "What is added at the end"}},
    "edit": {"path": _PATH, "edits": _EDITS},
    "copy": {"from": _FROM, "to": _TO, "overwrite": _OVERWRITE},
    "move": {"from": _FROM, "to": _TO, "overwrite": _OVERWRITE},
    "mkdir": {"path": _PATH},
    "delete": {"path": _PATH, "recursive": _RECURSIVE},
}
_OPS: Final[JsonObject] = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1_000,
    "items": {
        "anyOf": [
            closed({"op": {"const": op}, **takes}, ("op", *(n for n in takes if n not in _OPTIONAL)))
            for op, takes in _TAKES.items()
        ]
    },
    "x-everstep-kind": "checked",
    "description": "Changes, each with its `op`: write, append, edit, copy, move, mkdir, delete; all or none of them",
}
CHANGES: Final = (
    _change(
        "file.write",
        "Write a file",
        "Write a file of the workspace as a whole: a text, or an earlier step's artifact. Missing folders are made.",
        takes={**_TAKES["write"], "artifact": _ARTIFACT},
        gives={**_PLACED, **_CREATED},
    ),
    _change(
        "file.append",
        "Add to a file",
        "Add text at the end of a file of the workspace, once, however often the call is repeated.",
        takes={**_TAKES["append"], "artifact": _ARTIFACT},
        gives={**_PLACED, **_CREATED},
    ),
    _change(
        "file.edit",
        "Edit a file",
        "Replace texts in a file of the workspace; each must stand there exactly as often as said.",
        takes=_TAKES["edit"],
        gives={**_PLACED, "diff": {"type": "string"}},
    ),
    _change(
        "file.copy",
        "Copy a file",
        "Copy a file of the workspace.",
        takes=_TAKES["copy"],
        gives={**_PLACED, **_CREATED},
    ),
    _change(
        "file.move",
        "Move a file or folder",
        "Give a file or a folder of the workspace another name.",
        takes=_TAKES["move"],
        gives={**_PLACED, **_CREATED},
    ),
    _change(
        "file.mkdir",
        "Make a folder",
        "Make a folder of the workspace, and those above it.",
        takes=_TAKES["mkdir"],
        gives={"path": {"type": "string"}, **_CREATED},
    ),
    _change(
        "file.delete",
        "Delete a file or folder",
        "Remove a file or a folder of the workspace; it can be taken back for a while.",
        takes=_TAKES["delete"],
        gives={"path": {"type": "string"}, "deleted": {"type": "integer"}},
    ),
    _change(
        "file.apply",
        "Change several files",
        "Several changes as one: all are checked before the first, and all are taken back if one fails.",
        takes={"ops": _OPS},
        gives={"changed": {"type": "array", "items": {"type": "string"}}},
    ),
)
