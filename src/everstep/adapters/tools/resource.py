"""`resource.read`: MCP resources, from functions of this program or from servers that the operator names."""

import base64
import inspect
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import unquote

from everstep.adapters.threads import Threads
from everstep.adapters.tools.family import closed, spec_of
from everstep.domain.record import record
from everstep.domain.resources import filled, scheme_of
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Misconfigured, ToolSpec

URIS_MAX: Final = 64
_PART: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CONTENT: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "uri": {"type": "string"},
        "media_type": {"type": "string"},
        "text": {"type": "string"},
        "blob": {"type": "string", "description": "What is no text, in base64"},
    },
    "required": ["uri", "media_type"],
}
_READ: Final = spec_of(
    "resource.read",
    "Read resources",
    "Read MCP resources by their addresses.",
    takes={
        "uris": {
            "type": "array",
            "minItems": 1,
            "maxItems": URIS_MAX,
            "items": {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {
                        "type": "object",
                        "properties": {"uri": {"type": "string"}, "vars": {"type": "object"}},
                        "required": ["uri"],
                        "additionalProperties": False,
                    },
                ]
            },
            "description": "Addresses; or templates such as docs://guides/{topic} with `vars`, put in encoded",
            "x-everstep-kind": "checked",
        }
    },
    needs=("uris",),
    gives=closed({"contents": {"type": "array", "items": _CONTENT}}),
)


@record
class Source:
    """A function that gives what stands at addresses of one form."""

    template: str
    function: Callable[..., Any]

    def variables(self, uri: str) -> dict[str, str] | None:
        """What the template's variables stand for in an address; None if it is another one's."""
        parts = _PART.split(self.template)
        form = "".join(re.escape(part) if at % 2 == 0 else f"(?P<{part}>[^/]+)" for at, part in enumerate(parts))
        found = re.fullmatch(form, uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}


@runtime_checkable
class Library(Protocol):
    """Somebody elsewhere who has resources."""

    def schemes(self) -> Collection[str]:
        """The beginnings of their addresses."""

    async def read(self, uri: str) -> Sequence[JsonObject]:
        """What stands there, as MCP spells it; raises ToolErrors."""


class ResourceTools(ToolAdapter):
    """Functions first, then the server that lists the scheme."""

    def __init__(self, sources: Sequence[Source], threads: Threads, libraries: Iterable[Library] = ()) -> None:
        self._sources = sources
        self._threads = threads
        self._libraries = {scheme: one for one in libraries for scheme in one.schemes()}

    def tools(self) -> Sequence[ToolSpec]:
        """The one."""
        return (_READ,)

    def schemes(self) -> Collection[str]:
        """What can be read here, by the beginnings of addresses."""
        return {*(scheme_of(source.template) for source in self._sources), *self._libraries}

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:  # noqa: ARG002
        """All of them, in their order; the first that fails ends it."""
        contents: list[JsonValue] = []
        uris = call.arguments["uris"]
        assert isinstance(uris, list)
        for one in uris:
            contents += await self._read(_address(one))
        return {"contents": contents}

    async def _read(self, uri: str) -> list[JsonValue]:
        for source in self._sources:
            values = source.variables(uri)
            if values is not None:
                return [_content(uri, await self._given(source, values))]
        library = self._libraries.get(scheme_of(uri))
        if library is None:
            raise Misconfigured(f"nothing serves '{uri}'", code="unknown_resource")
        return [_told(uri, one) for one in await library.read(uri)]

    async def _given(self, source: Source, values: Mapping[str, str]) -> object:
        if inspect.iscoroutinefunction(source.function):
            return await source.function(**values)
        return await self._threads.call(lambda: source.function(**values))


def _address(one: JsonValue) -> str:
    if isinstance(one, str):
        return one
    assert isinstance(one, dict)
    values = one.get("vars")
    return filled(str(one["uri"]), values if isinstance(values, dict) else {})


def _content(uri: str, value: object) -> JsonValue:
    if isinstance(value, bytes):
        return {"uri": uri, "media_type": "application/octet-stream", "blob": base64.b64encode(value).decode()}
    if isinstance(value, str):
        return {"uri": uri, "media_type": "text/plain", "text": value}
    return {"uri": uri, "media_type": "application/json", "text": json.dumps(value, ensure_ascii=False)}


def _told(uri: str, one: JsonObject) -> JsonValue:
    kept: JsonObject = {"uri": str(one.get("uri") or uri), "media_type": str(one.get("mimeType") or "text/plain")}
    return {**kept, **{name: str(one[name]) for name in ("text", "blob") if name in one}}
