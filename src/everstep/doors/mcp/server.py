"""The SDK's side of the door. Importing the SDK takes about a second, so it happens inside functions only.

One server object serves both revisions: core tasks of 2025-11-25, and the Tasks extension of 2026-07-28.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from everstep.domain.errors import EverstepError
from everstep.domain.record import record
from everstep.doors.mcp.asking import ask_first
from everstep.doors.mcp.bridge import EXTENSION, LEGACY, MODERN, RELATED
from everstep.doors.mcp.calls import Calls
from everstep.doors.mcp.channel import Caller, Json
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.engine_tools import ENGINE_TOOLS
from everstep.doors.mcp.prompts import Prompts
from everstep.doors.mcp.refusals import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Refused,
    broken,
)
from everstep.doors.mcp.resources import Resources
from everstep.doors.mcp.tasks import Tasks

if TYPE_CHECKING:
    from mcp.server.context import ServerMiddleware
    from mcp.server.lowlevel import NotificationOptions, Server

INSTRUCTIONS: Final = (
    "Prompts named after workflows carry them out here as far as possible. If the last message lists tool calls, make "
    "them in order; put the task_id of the prompt's _meta into _meta._task_id of each call, or call continue_task. "
    "Afterwards complete the task with complete_task (or tasks/cancel with a result). get_task shows where it stands."
)
PROGRESS_EVERY_S: Final = 0.1
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"


@record
class Face:
    """What a server says of itself, and which methods it does not have."""

    name: str
    version: str
    instructions: str | None = None
    without: frozenset[str] = frozenset()


class McpDoor:
    """The four families of methods on one desk."""

    def __init__(self, desk: DoorDesk, *, owner: str, stdio: bool) -> None:
        self.desk = desk
        self.face: Face | None = None
        """Another's, where it only stands before another."""
        self.prompts = Prompts(desk)
        self.calls = Calls(desk)
        self.tasks = Tasks(desk)
        self.resources = Resources(desk)
        self._owner = owner
        self._stdio = stdio
        self._watching: set[asyncio.Task[None]] = set()

    def client(self, ctx: Any) -> Client:  # noqa: ANN401 -- the SDK's context
        """Who asks; from the connection alone, never from parameters."""
        capabilities = ctx.session.client_capabilities
        extensions = (getattr(capabilities, "extensions", None) or {}) if capabilities is not None else {}
        meta = (ctx.params or {}).get("_meta") or {}
        info = meta.get("io.modelcontextprotocol/clientInfo") or {}
        params = ctx.session.client_params
        name = info.get("name") or (params.client_info.name if params is not None else "client")
        owner = self._owner
        scope = getattr(ctx.request, "scope", None)
        principal = scope.get("everstep.principal") if isinstance(scope, dict) else None
        scopes = None
        if principal is not None:
            owner, scopes = principal.owner, principal.scopes
        return Client(
            caller=Caller(owner=owner, name=_printable(str(name))),
            era=MODERN if ctx.protocol_version == MODERN else LEGACY,
            elicits=bool(capabilities is not None and capabilities.elicitation is not None),
            tasks=ctx.protocol_version == MODERN and EXTENSION in extensions,
            stdio=self._stdio,
            scopes=scopes,
        )

    async def check(self) -> None:
        """Raises at the start: names that collide, plans whose tools are not there."""
        caller = Caller(owner=self._owner)
        await self.desk.check_plans(caller)
        self.desk.book.tools(await self.desk.known_tools(caller), ENGINE_TOOLS)

    def watch(self, client: Client, handle: str, tell: Callable[[Json], Awaitable[None]]) -> None:
        """Tell the session that made a task of its changes (2025-11-25)."""

        async def watching() -> None:
            async for task in self.tasks.changes(client, handle):
                await tell(task)

        errand = asyncio.ensure_future(watching())
        self._watching.add(errand)
        errand.add_done_callback(self._done)

    def _done(self, errand: "asyncio.Task[None]") -> None:
        self._watching.discard(errand)
        if not errand.cancelled():
            errand.exception()  # a session that has gone is no news

    def close(self) -> None:
        """Nobody is told any more."""
        for errand in self._watching:
            errand.cancel()


def _printable(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable() and letter not in ":@")[:64] or "client"


def make_server(door: McpDoor, version: str) -> "Server[Any]":
    """The server with all its methods, for both revisions."""
    import mcp_types as t
    from mcp.server.lowlevel import Server

    class TwoEras(Server[Any]):
        """Capabilities that are true for the revision that asks."""

        def get_capabilities(self, *args: Any, **named: Any) -> t.ServerCapabilities:  # noqa: ANN401 -- the SDK's
            version = named.get("protocol_version")
            found = super().get_capabilities(*args, **named)
            if version == MODERN:
                return found.model_copy(update={"extensions": {**(found.extensions or {}), EXTENSION: {}}})
            calls = t.ServerTasksRequestsCapability(tools=t.TasksToolsCapability(call=t.TasksCallCapability()))
            tasks = t.ServerTasksCapability(
                list=t.TasksListCapability(), cancel=t.TasksCancelCapability(), requests=calls
            )
            return found.model_copy(update={"tasks": tasks, "extensions": None})

    face = door.face or Face(name="everstep", version=version, instructions=INSTRUCTIONS)
    offered = {name: work for name, work in _handlers(door).items() if name not in face.without}
    server: Server[Any] = TwoEras(face.name, version=face.version, instructions=face.instructions, **offered)
    _add_tasks(server, door)
    server.middleware.append(cast("ServerMiddleware[Any]", _legacy_calls(door)))
    return server


def _changes() -> "NotificationOptions":
    """Lists that may change while somebody is connected."""
    from mcp.server.lowlevel import NotificationOptions

    return NotificationOptions(prompts_changed=True, tools_changed=True)


def _guarded(work: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    """What is refused, in the words of the SDK."""
    from mcp.shared.exceptions import MCPError

    async def guarded(ctx: Any, params: Any) -> Any:  # noqa: ANN401 -- the SDK's
        try:
            return await work(ctx, params)
        except Refused as refused:
            raise MCPError(refused.code, refused.message, refused.data) from refused
        except EverstepError as error:
            ours = broken(error)
            raise MCPError(ours.code, ours.message, ours.data) from error

    return guarded


def _typed(work: Callable[[Any, Any], Awaitable[Json]], kind: Any) -> Callable[[Any, Any], Awaitable[Any]]:  # noqa: ANN401 -- a model of the SDK
    """A result in the SDK's own type, which knows what each revision adds to it."""

    async def typed(ctx: Any, params: Any) -> Any:  # noqa: ANN401
        return kind.model_validate(await work(ctx, params))

    return typed


def _handlers(door: McpDoor) -> dict[str, Any]:
    import mcp_types as t

    async def list_prompts(_ctx: Any, _params: Any) -> Json:  # noqa: ANN401 -- the SDK's, as all below
        return {"prompts": door.prompts.offered()}

    async def get_prompt(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        client = door.client(ctx)
        client.may("write")
        return await door.prompts.get(client, params.name, params.arguments or {}, _teller(ctx))

    async def list_tools(ctx: Any, _params: Any) -> Json:  # noqa: ANN401
        return {"tools": await door.calls.offered(door.client(ctx))}

    async def call_tool(ctx: Any, params: Any) -> Any:  # noqa: ANN401
        meta = (ctx.params or {}).get("_meta") or {}
        client = door.client(ctx)
        client.may("write")
        arguments = dict(params.arguments or {})
        responses = (ctx.params or {}).get("inputResponses") or {}
        first = ask_first(door.desk, client, params.name, arguments=arguments, responses=responses)
        if first is not None:
            return t.InputRequiredResult.model_validate({"inputRequests": first})
        made = await door.calls.call(client, params.name, arguments, meta)
        return made if made.get("resultType") == "task" else t.CallToolResult.model_validate(made)

    async def list_resources(_ctx: Any, _params: Any) -> Json:  # noqa: ANN401
        return {"resources": door.resources.plans()}

    async def list_templates(_ctx: Any, _params: Any) -> Json:  # noqa: ANN401
        return {"resourceTemplates": door.resources.templates()}

    async def read_resource(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        return await door.resources.read(door.client(ctx), str(params.uri))

    async def listen(ctx: Any, params: Any) -> Any:  # noqa: ANN401
        return await _listen(door, ctx, params)

    return {
        "on_list_prompts": _guarded(_typed(list_prompts, t.ListPromptsResult)),
        "on_get_prompt": _guarded(_typed(get_prompt, t.GetPromptResult)),
        "on_list_tools": _guarded(_typed(list_tools, t.ListToolsResult)),
        "on_call_tool": _guarded(call_tool),
        "on_list_resources": _guarded(_typed(list_resources, t.ListResourcesResult)),
        "on_list_resource_templates": _guarded(_typed(list_templates, t.ListResourceTemplatesResult)),
        "on_read_resource": _guarded(_typed(read_resource, t.ReadResourceResult)),
        "on_subscriptions_listen": _guarded(listen),
    }


def _teller(ctx: Any) -> Callable[[int, int, str], Awaitable[None]]:  # noqa: ANN401 -- the SDK's
    """Progress, if it was asked for, and not too often."""
    last = 0.0

    async def tell(done: int, total: int, text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if done < total and now - last < PROGRESS_EVERY_S:
            return
        last = now
        await ctx.session.report_progress(float(done), float(total), text)

    return tell


def _add_tasks(server: "Server[Any]", door: McpDoor) -> None:
    """The methods of Tasks: each for the revisions that have it."""
    import mcp_types as t
    from pydantic import ConfigDict

    class Named(t.RequestParams):
        """Any parameters; they are looked at here."""

        model_config = ConfigDict(extra="allow")

    def bind(method: str, eras: frozenset[str], work: Callable[[Any, Client, Json], Awaitable[Any]]) -> None:
        async def handle(ctx: Any, _params: Any) -> Any:  # noqa: ANN401 -- the SDK's
            client = door.client(ctx)
            if client.era not in eras:
                raise Refused(METHOD_NOT_FOUND, "Method not found")
            params: Json = dict(ctx.params or {})
            _same_name(ctx, params)
            client.need_tasks()
            return _complete(client, await work(ctx, client, params))

        server.add_request_handler(method, Named, _guarded(handle))

    async def get(_ctx: Any, client: Client, params: Json) -> Json:  # noqa: ANN401
        return await door.tasks.get(client, params.get("taskId"))

    async def cancel(_ctx: Any, client: Client, params: Json) -> Json:  # noqa: ANN401
        client.may("write")
        return await door.tasks.cancel(client, params)

    async def update(_ctx: Any, client: Client, params: Json) -> Json:  # noqa: ANN401
        client.may("answer")
        return await door.tasks.update(client, params.get("taskId"), params.get("inputResponses"))

    async def result(ctx: Any, client: Client, params: Json) -> Json:  # noqa: ANN401
        return await door.tasks.result(client, params.get("taskId"), _asker(ctx, client))

    async def listed(_ctx: Any, client: Client, params: Json) -> Json:  # noqa: ANN401
        return await door.tasks.page(client, params.get("cursor"))

    both = frozenset({LEGACY, MODERN})
    bind("tasks/get", both, get)
    bind("tasks/cancel", both, cancel)
    bind("tasks/update", frozenset({MODERN}), update)
    bind("tasks/result", frozenset({LEGACY}), result)
    bind("tasks/list", frozenset({LEGACY}), listed)


def _complete(client: Client, result: Json) -> Json:
    """The newer revision says of every result what it is."""
    return result if client.legacy else {"resultType": "complete", **result}


def _same_name(ctx: Any, params: Json) -> None:  # noqa: ANN401 -- the SDK's
    headers = getattr(ctx.request, "headers", None)
    named = None if headers is None else headers.get("mcp-name")
    if named is not None and named != params.get("taskId"):
        raise Refused(HEADER_MISMATCH, "HeaderMismatch: Mcp-Name is not the task of the request")


def _asker(ctx: Any, client: Client) -> Callable[[str, Json], Awaitable[Json]] | None:  # noqa: ANN401
    """Ask whoever sits at the client, on the open request."""
    if not client.elicits:
        return None

    async def ask(message: str, schema: Json) -> Json:
        reply = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        return {"action": reply.action, "content": reply.content}

    return ask


def _legacy_calls(door: McpDoor) -> Callable[[Any, Any], Awaitable[Any]]:
    """2025-11-25: a call that is wanted as a task is answered before the SDK, which knows only results of calls."""

    async def call(ctx: Any, call_next: Any) -> Any:  # noqa: ANN401 -- the SDK's
        params: Mapping[str, Any] = ctx.params or {}
        if ctx.method != "tools/call" or ctx.protocol_version == MODERN or params.get("task") is None:
            return await call_next(ctx)
        return await _guarded(_make)(ctx, params)

    async def _make(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        client, wanted = door.client(ctx), params["task"]
        if not isinstance(wanted, dict) or not isinstance(params.get("name"), str):
            raise Refused(INVALID_PARAMS, "task must be an object")
        made = await door.calls.make_task(client, params["name"], dict(params.get("arguments") or {}), wanted)
        door.watch(client, made["task"]["taskId"], _status_teller(ctx))
        return made

    return call


def _status_teller(ctx: Any) -> Callable[[Json], Awaitable[None]]:  # noqa: ANN401 -- the SDK's
    import mcp_types as t

    class TaskStatus(t.Notification[Any, Any]):
        """`notifications/tasks/status`."""

        method: str = "notifications/tasks/status"
        params: dict[str, Any]

    async def tell(task: Json) -> None:
        await ctx.session.send_notification(TaskStatus(params={**task, "_meta": {RELATED: {"taskId": task["taskId"]}}}))

    return tell


async def _listen(door: McpDoor, ctx: Any, params: Any) -> Any:  # noqa: ANN401 -- the SDK's
    """`subscriptions/listen`: acknowledge what is ours, then every change of these tasks, until all have ended."""
    import mcp_types as t

    class Changed(t.Notification[Any, Any]):
        """`notifications/tasks`."""

        method: str = "notifications/tasks"
        params: dict[str, Any]

    client = door.client(ctx)
    wanted = (params.notifications.model_extra or {}).get("taskIds") or []
    meta = {SUBSCRIPTION: ctx.request_id}
    if wanted:
        client.need_tasks()
    known = await door.tasks.known(client, list(wanted))
    granted = t.SubscriptionFilter.model_validate({"taskIds": known} if wanted else {})
    said = t.SubscriptionsAcknowledgedNotificationParams(notifications=granted, _meta=meta)
    await ctx.session.send_notification(
        t.SubscriptionsAcknowledgedNotification(params=said), related_request_id=ctx.request_id
    )

    async def tell(handle: str) -> None:
        async for task in door.tasks.changes(client, handle):
            await ctx.session.send_notification(
                Changed(params={**task, "_meta": meta}), related_request_id=ctx.request_id
            )

    if known:
        await asyncio.gather(*(tell(handle) for handle in known))
    else:
        await asyncio.Event().wait()
    return t.SubscriptionsListenResult(_meta=meta)


async def serve_stdio(door: McpDoor, version: str, source: BinaryIO, wire: BinaryIO) -> None:
    """Until the other side closes its end."""
    import anyio
    from mcp.server.stdio import stdio_server

    server = make_server(door, version)
    stdin = anyio.wrap_file(TextIOWrapper(source, encoding="utf-8", errors="replace"))
    stdout = anyio.wrap_file(TextIOWrapper(wire, encoding="utf-8"))
    async with stdio_server(stdin, stdout) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options(_changes()))
    door.close()
