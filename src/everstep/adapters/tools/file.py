"""`file.*`: files of the task's workspace, and nothing beyond it.

Everything happens in a thread, below `adapters/files`. Writing is idempotent: the same call again finds its own
content there, and removes what a killed call left behind.
"""

import codecs
import stat
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from everstep.adapters.files import Content, Expected, Workspace
from everstep.adapters.paths import names_of
from everstep.adapters.threads import Threads
from everstep.adapters.tools.family import closed, spec_of
from everstep.adapters.tools.listing import ENTRIES_MAX, kind_of, listing
from everstep.domain.ids import Instant, Millis
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Denied, Misconfigured, Prior, ToolError, ToolSpec
from everstep.wire.times import to_text

READ_BYTES: Final = 1 << 20
READ_BYTES_MAX: Final = 8 << 20
CONFIG_BYTES_MAX: Final = 1 << 20
TIMEOUT_MS: Final = Millis(30_000)
BYTES_A_SECOND: Final = 100e6
"""What a usual disk takes, flushed."""

_PATH: Final[JsonObject] = {
    "type": "string",
    "minLength": 1,
    "x-everstep-kind": "checked",
    "description": "Path inside the workspace, with / between folders",
}
_SHA256: Final[JsonObject] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_SIZE: Final[JsonObject] = {"type": "integer", "minimum": 0}
_KIND: Final[JsonObject] = {"enum": ["file", "folder", "link", "other"]}


class FileTools(ToolAdapter):
    """Reading, listing, writing."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    def tools(self) -> Sequence[ToolSpec]:
        """All of them."""
        return tuple(_SPECS)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """A path that no file of the workspace can have."""
        try:
            names_of(str(call.arguments.get("path", ".")))
        except ToolError as exc:
            return [("/path", str(exc))]
        return ()

    def estimate(self, call: Call) -> Prior | None:
        """What is written takes as long as it is large; alike are sizes within a factor of eight."""
        if call.tool != "file.write":
            return None
        size = len(str(call.arguments["text"]))
        middle_s = 0.006 + size / BYTES_A_SECOND
        return Prior(
            p10_s=middle_s / 3, p50_s=middle_s, p90_s=middle_s * 5, size_class=f"8^{max(size, 1).bit_length() // 3}"
        )

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Do it in a thread, in the task's own folder."""
        arguments: dict[str, Any] = call.arguments

        def work() -> JsonValue:
            with Workspace(ctx.workdir, stop=lambda: ctx.cancelled) as files:
                if call.tool == "file.write":
                    return _write(files, call.idempotency_key, arguments)
                return _READS[call.tool](files, **arguments)

        return await self._threads.call(work)


def _read(files: Workspace, path: str, range: dict[str, int] | None = None) -> JsonValue:
    start = (range or {}).get("start", 0)
    length = (range or {}).get("length", READ_BYTES)
    content = files.read(path, start, length)
    return {
        "path": path,
        "text": _text(path, content, start),
        "bytes": content.size_bytes,
        "sha256": content.sha256,
        "truncated": len(content.data) < content.size_bytes,
    }


def _text(path: str, content: Content, start: int) -> str:
    """The bytes as text; a character cut by the range is left out."""
    data = content.data
    while start and data and data[0] & 0xC0 == 0x80 and len(content.data) - len(data) < 3:
        data = data[1:]
    is_end = start + len(content.data) >= content.size_bytes
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=is_end)
    except UnicodeDecodeError as exc:
        raise Misconfigured(f"'{path}' is not UTF-8 text (byte {start + exc.start})", code="file_not_text") from exc


def _stat(files: Workspace, path: str) -> JsonValue:
    status = files.find(path)
    if status is None:
        return {"path": path, "exists": False, "type": None, "bytes": None, "sha256": None, "modified_at": None}
    is_file = stat.S_ISREG(status.st_mode)
    return {
        "path": path,
        "exists": True,
        "type": kind_of(status.st_mode),
        "bytes": status.st_size if is_file else None,
        "sha256": files.read(path, 0, 0).sha256 if is_file else None,
        "modified_at": to_text(Instant(status.st_mtime_ns // 1_000_000)),
    }


def _write(files: Workspace, key: str, arguments: dict[str, Any]) -> JsonValue:
    path, text, condition = arguments["path"], arguments["text"], arguments.get("if")
    if path.rpartition("/")[2].casefold() == "pyproject.toml":
        _keep_configuration(files, path, text)
    expected = Expected(absent=condition == "absent", sha256=None if condition == "absent" else condition)
    written = files.write(path, text.encode(), key=key, expected=expected)
    return {"path": path, "bytes": written.size_bytes, "sha256": written.sha256, "created": written.created}


def _keep_configuration(files: Workspace, path: str, text: str) -> None:
    """A `pyproject.toml` that configures everstep decides what tools may do, so no tool decides over it."""
    old = files.read(path, 0, CONFIG_BYTES_MAX).data.decode(errors="replace") if files.find(path) else ""
    if _configures(old) or _configures(text):
        raise Denied(f"'{path}' has a section [tool.everstep]; only people change that", code="policy_denied")


def _configures(text: str) -> bool:
    try:
        tools = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError:
        return "everstep" in text  # broken now, perhaps mended later
    return isinstance(tools, dict) and "everstep" in tools


_READS: Final[dict[str, Callable[..., JsonValue]]] = {"file.read": _read, "file.stat": _stat, "file.list": listing}

_spec: Final = partial(
    spec_of, isolation="thread", timeout_ms=TIMEOUT_MS, prior=Prior(p10_s=0.002, p50_s=0.006, p90_s=0.05)
)
_SPECS: Final = (
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
    _spec(
        "file.write",
        "Write a file",
        "Write a text file of the workspace as a whole. Missing folders are made.",
        takes={
            "path": _PATH,
            "text": {"type": "string", "description": "The new content"},
            "if": {
                "anyOf": [{"const": "absent"}, _SHA256],
                "description": "Only if there is no such file yet, or it has this SHA-256",
            },
        },
        needs=("path", "text"),
        gives=closed(
            {
                "path": {"type": "string"},
                "bytes": _SIZE,
                "sha256": _SHA256,
                "created": {"type": "boolean", "description": "Whether there was no such file before"},
            }
        ),
        effect=Effect.IDEMPOTENT,
    ),
)
