"""One MCP server: started when it is needed, asked, asked again after it died. The client side of the protocol.

It knows nothing of tools, plans or tasks: `adapters/tools/mcp` makes tools of it.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from everstep.adapters.remote.link import CALL_S, START_S, Broken, Link
from everstep.domain.failure import EffectState
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Misconfigured, ToolError, Transient, Uncertain

VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""What we speak; the first is what we ask for."""
RESTART_S: Final = (1.0, 30.0)
"""How long a server that died is left alone: at first, and at most; doubled each time."""
STEADY_S: Final = 300.0
"""A server that lived so long has started well."""
PAGES_MAX: Final = 100
CLIENT: Final[JsonObject] = {"name": "everstep", "version": "1"}
_NO_SUCH: Final = -32601
_BAD_PARAMS: Final = -32602


class Refused(ToolError):
    """The server answered with an error of the protocol."""

    def __init__(self, name: str, error: dict[str, Any]) -> None:
        self.number = error.get("code")
        self.data: JsonValue = error.get("data")
        wrong = self.number in {_NO_SUCH, _BAD_PARAMS}
        super().__init__(
            f"'{name}' answered {self.number}: {str(error.get('message'))[:500]}",
            code="mcp_arguments" if wrong else "mcp_error",
            details={"number": self.number, "message": str(error.get("message"))[:500]},
            effect_state=EffectState.NONE if wrong else EffectState.UNKNOWN,
        )
        self.category = "configuration" if wrong else "logic"


@dataclass(kw_only=True)
class RemoteServer:
    """Whoever asks first starts it; several may ask at the same time."""

    name: str
    link: Callable[[], Link]
    listeners: list[Callable[[str, JsonObject], None]] = field(default_factory=list)
    """Told of the server's notifications."""
    start_s: float = START_S
    greeting: JsonObject = field(default_factory=dict)
    """What it said of itself: capabilities, serverInfo, instructions."""
    starts: int = 0
    _live: Link | None = None
    _waiting: "dict[int, asyncio.Future[JsonObject]]" = field(default_factory=dict)
    _progress: dict[int, Callable[[float, float | None, str | None], None]] = field(default_factory=dict)
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _last: int = 0
    _rest_s: float = 0.0
    _started_at: float = 0.0
    _not_before: float = 0.0

    # --- what one asks for ---

    async def call(
        self,
        tool: str,
        arguments: JsonObject,
        *,
        timeout_s: float = CALL_S,
        meta: JsonObject | None = None,
        progress: Callable[[float, float | None, str | None], None] | None = None,
        start: int | None = None,
    ) -> JsonObject:
        """`tools/call`: its whole result, `isError` included. With `start`, of that start of the server only."""
        params: JsonObject = {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})}
        live = await self._started()
        if start is not None and start != self.starts:  # what was seen of the one before need not hold for this one
            raise Transient(f"'{self.name}' was started again", code="mcp_down")
        return await self._ask(live, "tools/call", params, timeout_s=timeout_s, progress=progress)

    async def up(self) -> int:
        """Start it if it is down; which start this is. Raises ToolErrors."""
        await self._started()
        return self.starts

    async def listed(self, what: str) -> list[JsonObject]:
        """All pages of a list: `tools`, `resources`, `resourceTemplates`, `prompts`."""
        method = "resources/templates/list" if what == "resourceTemplates" else f"{what}/list"
        found: list[JsonObject] = []
        cursor: JsonValue = None
        for _ in range(PAGES_MAX):
            page = await self.request(method, {"cursor": cursor} if cursor else {})
            items = page.get(what)
            found += [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return found
        raise Misconfigured(f"'{self.name}' lists {what} without an end", code="mcp_error")

    async def ping(self) -> float:
        """Seconds until it answered."""
        began = time.monotonic()
        await self.request("ping", timeout_s=5.0)
        return time.monotonic() - began

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout_s: float = CALL_S,
        progress: Callable[[float, float | None, str | None], None] | None = None,
    ) -> JsonObject:
        """Ask and wait for the answer; raises ToolErrors, `Refused` for an error of the protocol."""
        live = await self._started()
        return await self._ask(live, method, params, timeout_s=timeout_s, progress=progress)

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Tell it something; raises ToolErrors."""
        await (await self._started()).send(_message(method, params))

    async def close(self) -> None:
        """End it; the next request starts it again."""
        live, self._live = self._live, None
        if live is not None:
            self._fail(Broken(f"'{self.name}' was closed"))
            await live.close()

    @property
    def containment(self) -> JsonObject | None:
        """What stands around it."""
        return None if self._live is None else self._live.containment

    # --- its life ---

    async def _started(self) -> Link:
        async with self._starting:
            if self._live is not None:
                return self._live
            left = self._not_before - time.monotonic()
            if left > 0:
                raise Transient(f"'{self.name}' ended and is started again", code="mcp_down", retry_after=left)
            return await self._start()

    async def _start(self) -> Link:
        link = self.link()
        self._live, self._started_at = link, time.monotonic()
        self.starts += 1
        try:
            await link.open(lambda message: self._heard(link, message), lambda error: self._lost(link, error))
            await self._greet(link)
        except BaseException as error:
            self._rest(link)
            with contextlib.suppress(ToolError):
                await link.close()
            if isinstance(error, ToolError):
                error.effect_state = EffectState.NONE  # nothing was called yet
            raise
        return link

    async def _greet(self, link: Link) -> None:
        params: JsonObject = {"protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT}
        self.greeting = await self._ask(link, "initialize", params, timeout_s=self.start_s, progress=None)
        version = self.greeting.get("protocolVersion")
        if version not in VERSIONS:
            raise Misconfigured(f"'{self.name}' speaks {version!r}, which we do not", code="mcp_version")
        link.version = str(version)
        await link.send(_message("notifications/initialized", None))

    def _lost(self, link: Link, error: ToolError) -> None:
        if link is self._live:
            self._rest(link)
            self._fail(error)

    def _rest(self, link: Link) -> None:
        """It died: it is left alone for a while, longer each time."""
        if link is not self._live:
            return
        self._live = None
        lived = time.monotonic() - self._started_at
        self._rest_s = RESTART_S[0] if lived > STEADY_S or not self._rest_s else min(self._rest_s * 2, RESTART_S[1])
        self._not_before = time.monotonic() + self._rest_s

    def _fail(self, error: ToolError) -> None:
        for answer in [*self._waiting.values()]:
            if not answer.done():
                answer.set_exception(error)

    # --- messages ---

    async def _ask(
        self,
        link: Link,
        method: str,
        params: JsonObject | None,
        *,
        timeout_s: float,
        progress: Callable[[float, float | None, str | None], None] | None,
    ) -> JsonObject:
        self._last += 1
        number = self._last
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        if progress is not None:
            self._progress[number] = progress
            meta = (params or {}).get("_meta")
            params = {**(params or {}), "_meta": {**(meta if isinstance(meta, dict) else {}), "progressToken": number}}
        try:
            async with asyncio.timeout(timeout_s):
                await link.send({"id": number, **_message(method, params)})
                return await answer
        except TimeoutError:
            await self._give_up(link, number, "timeout")
            raise Uncertain(
                f"'{self.name}' did not answer {method} within {timeout_s:g} s", code="mcp_timeout"
            ) from None
        except asyncio.CancelledError:
            await self._give_up(link, number, "cancelled")
            raise
        finally:
            self._waiting.pop(number, None)
            self._progress.pop(number, None)
            answer.cancel()

    async def _give_up(self, link: Link, number: int, why: str) -> None:
        with contextlib.suppress(ToolError):
            await link.send(_message("notifications/cancelled", {"requestId": number, "reason": why}))

    def _heard(self, link: Link, message: JsonObject) -> None:
        number, method = message.get("id"), message.get("method")
        if isinstance(method, str):
            params = message.get("params")
            told = params if isinstance(params, dict) else {}
            if number is None:
                self._notice(method, told)
            else:
                self._answer(link, number, method)
            return
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            return
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            answer.set_exception(Refused(self.name, error))
        elif isinstance(result, dict):
            answer.set_result(result)
        else:
            answer.set_exception(Broken(f"'{self.name}' gave an answer that is none", code="mcp_error"))

    def _notice(self, method: str, told: JsonObject) -> None:
        token, done, total = told.get("progressToken"), told.get("progress"), told.get("total")
        if method == "notifications/progress" and isinstance(token, int) and token in self._progress:
            if isinstance(done, int | float):
                words = told.get("message")
                self._progress[token](
                    float(done),
                    float(total) if isinstance(total, int | float) else None,
                    words if isinstance(words, str) else None,
                )
            return
        for listener in self.listeners:
            listener(method, told)

    def _answer(self, link: Link, number: JsonValue, method: str) -> None:
        """What a server may ask of us: whether we are there. We offer no model, no folders, no forms."""
        said: JsonObject = {"jsonrpc": "2.0", "id": number}
        if method == "ping":
            said["result"] = {}
        else:
            said["error"] = {"code": _NO_SUCH, "message": f"{method} is not offered here"}
        task = asyncio.ensure_future(link.send(said))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


def _message(method: str, params: JsonObject | None) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})}
