"""`mcp.<server>.<tool>`: tools of MCP servers that the operator's configuration names.

What a call may do is the operator's word; a server's hints can only make it stricter, unless the operator trusts them.
What the server says of a tool is pinned with the first contact, and a tool that changed is not called.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from everstep.adapters.isolation.bounds import Walls
from everstep.adapters.remote.link import CALL_S
from everstep.adapters.remote.pins import Pins, definition_of, digest_of, hint, proposed, shown
from everstep.adapters.remote.server import RemoteServer
from everstep.adapters.tools.family import VERSION, closed
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.usage import Measured
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Denied, Health, Impossible, Misconfigured, ToolError, ToolSpec

OUTPUT_BYTES: Final = 1_000_000
TOLD_BYTES: Final = 8_000
"""So much of what a failed tool said is kept as it came."""
LIST_CHANGED: Final = "notifications/tools/list_changed"
_OPEN: Final[JsonObject] = {"type": "object"}


@record
class Offer:
    """What the operator says of one server."""

    name: str
    tools: tuple[str, ...] = ()
    effects: Mapping[str, Effect] = field(default_factory=dict)
    trust_hints: bool = False
    resources: tuple[str, ...] = ()
    """Schemes of addresses that are read there."""
    walls: Walls = Walls()
    asks: bool = True
    """Whether it is asked before a call of which nobody has said what it may do."""


class TooMuch(ToolError):
    """The tool said more than a step keeps."""

    category = "resource"


class McpTools(ToolAdapter):
    """One server's tools, as far as the operator lets them in."""

    def __init__(self, server: RemoteServer, offer: Offer, pins: Pins, *, usable: Callable[[JsonObject], bool]) -> None:
        """`usable` says whether arguments can be checked by a schema; one that cannot is left to the server."""
        self._server = server
        self._offer = offer
        self._pins = pins
        self._pinned = pins.read()
        self._specs = {f"mcp.{offer.name}.{tool}": self._spec(tool, usable) for tool in offer.tools}
        self._seen: dict[str, bool] = {}
        """The tools of the running server, and whether each is what was agreed to."""
        self._seen_of = 0
        server.listeners.append(self._noticed)

    def tools(self) -> Sequence[ToolSpec]:
        """Those of the list."""
        return [*self._specs.values()]

    def target(self, call: Call) -> str:  # noqa: ARG002
        """The server: it is up or not for all its tools."""
        return f"mcp.{self._offer.name}"

    async def health(self) -> Health:
        """Whether it answers."""
        try:
            latency = await self._server.ping()
        except ToolError as error:
            return Health(status="unhealthy", detail=str(error))
        return Health(status="healthy", latency_s=latency)

    async def close(self) -> None:
        """End it."""
        await self._server.close()

    def schemes(self) -> Sequence[str]:
        """What `resource.read` may read here, by the beginnings of addresses."""
        return self._offer.resources

    async def read(self, uri: str) -> Sequence[JsonObject]:
        """What stands at an address."""
        found = (await self._server.request("resources/read", {"uri": uri})).get("contents")
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Ask the server, if the tool is still the one that was agreed to."""
        tool = call.tool.removeprefix(f"mcp.{self._offer.name}.")
        try:
            await self._agreed(tool)
        except ToolError as error:
            raise _before(error) from error
        self._contained(trusted=ctx.origin.trusted)
        result = await self._server.call(
            tool,
            call.arguments,
            start=self._seen_of,
            timeout_s=max(ctx.remaining(), 0.001),
            meta={"everstep/idempotency_key": call.idempotency_key},
            progress=lambda done, total, words: ctx.progress(done / total if total else 0.0, words),
        )
        if self._server.containment is not None:
            ctx.measured(Measured(containment=self._server.containment))
        return _told(call.tool, result)

    async def _agreed(self, tool: str) -> None:
        if self._seen_of != await self._server.up() or not self._seen:
            await self._look()
        same = self._seen.get(tool)
        if same is None:
            raise Misconfigured(f"'{self._offer.name}' has no tool '{tool}'", code="mcp_no_tool")
        if not same:
            raise Denied(
                f"'{tool}' of '{self._offer.name}' is not what was agreed to: its description or schema changed",
                code="tool_changed",
                what_to_do=f"look at it, then: everstep mcp accept {self._offer.name}",
            )

    def _contained(self, *, trusted: bool) -> None:
        """A server is started once for all plans; one that is not walled in serves only those that are trusted."""
        held, name = self._server.containment, f"mcp.{self._offer.name}"
        if held is not None and held["missing"] and self._offer.walls.needed(name, trusted=trusted) == "restricted":
            raise Denied(
                f"'{name}' runs without walls that this plan needs: {', '.join(map(str, _listed(held['missing'])))}",
                code="containment_unavailable",
                what_to_do=f'if it may run without: [containment] require = {{"{name}" = "limited"}}',
            )

    async def _look(self) -> None:
        """What the server lists now; what nobody has seen yet is agreed to by being named in the configuration."""
        start = self._server.starts  # if it is started again meanwhile, it has to be looked at again
        found = {str(one.get("name")): definition_of(one) for one in await self._server.listed("tools")}
        new = {tool: found[tool] for tool in self._offer.tools if tool in found and tool not in self._pinned}
        if new:
            self._pinned |= new
            self._pins.write(self._pinned.values())
        agreed = {tool: digest_of(definition) for tool, definition in self._pinned.items()}
        self._seen = {tool: digest_of(definition) == agreed.get(tool) for tool, definition in found.items()}
        self._seen_of = start

    def _noticed(self, method: str, _told: JsonObject) -> None:
        if method == LIST_CHANGED:
            self._seen.clear()

    def _spec(self, tool: str, usable: Callable[[JsonObject], bool]) -> ToolSpec:
        definition = self._pinned.get(tool, {})
        effect = self._offer.effects.get(tool)
        if effect is None and self._offer.trust_hints and definition:
            effect = proposed(definition)[0]
        judged = tool in self._offer.effects or effect not in {None, Effect.ONCE}
        takes = definition.get("inputSchema")
        words = shown(definition.get("description"))
        return ToolSpec(
            name=f"mcp.{self._offer.name}.{tool}",
            version=VERSION,
            title=shown(definition.get("title")) or tool,
            description=f"{self._offer.name} says: {words}" if words else f"A tool of '{self._offer.name}'.",
            input_schema=takes if isinstance(takes, dict) and usable(takes) else _OPEN,
            output_schema=_GIVES,
            effect=effect or Effect.ONCE,
            isolation="process",
            timeout_ms=Millis(round(CALL_S * 1000)),
            approve=(self._offer.asks and not judged) or hint(definition, "destructiveHint"),
            pool=f"mcp.{self._offer.name}",
            permissions=("mcp.call",),
        )


def _before(error: ToolError) -> ToolError:
    """The same before anything was called. A copy: others who wait for the server may have been told this very one."""
    told = ToolError(str(error), code=error.code, what_to_do=error.what_to_do, details=error.details)
    told.category = error.category
    told.retry_after = error.retry_after
    return told


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _told(tool: str, result: dict[str, Any]) -> JsonValue:
    found = result.get("content")
    content: list[Any] = [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []
    texts = [str(part.get("text")) for part in content if part.get("type") == "text"]
    size = sum(len(str(part)) for part in content) + len(str(result.get("structuredContent") or ""))
    if size > OUTPUT_BYTES:
        what = f"'{tool}' said {size} characters, more than the {OUTPUT_BYTES} that are kept"
        details: JsonObject = {"limit": "output", "used": size, "max": OUTPUT_BYTES, "remote": True}
        raise TooMuch(what, code="mcp_too_large", details=details, effect_state="made")
    if result.get("isError"):
        said = shown("\n".join(texts)) or "it says no more"
        told: JsonObject = {"content": content} if size <= TOLD_BYTES else {}
        raise Impossible(f"'{tool}' failed: {said}", code="mcp_tool_error", details=told, effect_state="made")
    return {"text": "\n".join(texts), "content": content, "structured": result.get("structuredContent")}


_GIVES: Final = closed(
    {
        "text": {"type": "string", "description": "All texts of the answer"},
        "content": {"type": "array", "items": {"type": "object"}, "description": "The answer as it came"},
        "structured": {"description": "What it gave as data, if it did"},
    }
)
