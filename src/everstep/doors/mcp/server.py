"""The SDK's side of the door. Importing the SDK takes about a second, so it happens inside functions only.

One server object serves both revisions: core tasks of 2025-11-25, and the Tasks extension of 2026-07-28.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from everstep.domain.errors import EverstepError, LimitExceeded
from everstep.domain.record import record
from everstep.doors.mcp.asking import ask_first
from everstep.doors.mcp.bridge import EXTENSION, LEGACY, MODERN
from everstep.doors.mcp.calls import Calls
from everstep.doors.mcp.channel import Caller, Json
from everstep.doors.mcp.completing import Completion
from everstep.doors.mcp.continuing import refusal_of
from everstep.doors.mcp.desk import Client, DoorDesk
from everstep.doors.mcp.engine_tools import ENGINE_TOOLS
from everstep.doors.mcp.listening import Seats
from everstep.doors.mcp.notices import asker, list_teller, listen, status_teller, teller
from everstep.doors.mcp.prompts import Prompts
from everstep.doors.mcp.refusals import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Refused,
    broken,
)
from everstep.doors.mcp.resources import Resources
from everstep.doors.mcp.talk import Talk
from everstep.doors.mcp.tasks import Tasks
from everstep.doors.mcp.turns import Turns

if TYPE_CHECKING:
    from mcp.server.context import ServerMiddleware
    from mcp.server.lowlevel import Server

INSTRUCTIONS: Final = (
    "Prompts named after workflows carry them out here as far as possible. If the last message lists tool calls, make "
    "them in order; put the task_id of the prompt's _meta into _meta._task_id of each call, or call continue_task. "
    "Afterwards complete the task with complete_task (or tasks/cancel with a result). get_task shows where it stands."
)
SESSION: Final = "mcp-session-id"


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
        self.completion = Completion(desk)
        self.turns = Turns(calls=desk.limits.calls_per_owner, streams=desk.limits.streams_per_owner)
        self.seats = Seats()
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
        self.seats.close()
        for errand in self._watching:
            errand.cancel()


def _printable(name: str) -> str:
    return "".join(letter for letter in name if letter.isprintable() and letter not in ":@")[:64] or "client"


def make_server(door: McpDoor, version: str) -> "Server[Any]":
    """The server with all its methods, for both revisions."""
    import mcp_types as t
    from mcp.server.lowlevel import NotificationOptions, Server

    class TwoEras(Server[Any]):
        """Capabilities that are true for the revision that asks."""

        def get_capabilities(
            self,
            notification_options: NotificationOptions | None = None,  # noqa: ARG002 -- the SDK's
            experimental_capabilities: dict[str, dict[str, Any]] | None = None,
            extensions: dict[str, dict[str, Any]] | None = None,
            *,
            protocol_version: str | None = None,
        ) -> t.ServerCapabilities:
            changing = NotificationOptions(prompts_changed=True, tools_changed=True, resources_changed=True)
            found = super().get_capabilities(
                changing, experimental_capabilities, extensions, protocol_version=protocol_version
            )
            if protocol_version == MODERN:
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

    async def sit_down(ctx: Any, _params: Any) -> None:  # noqa: ANN401 -- the SDK's
        door.seats.sit_down(_seat(ctx), door.desk.book.bells, list_teller(ctx))

    server.add_notification_handler("notifications/initialized", t.NotificationParams, sit_down)
    server.middleware.append(cast("ServerMiddleware[Any]", _legacy_calls(door)))
    return server


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
        return await door.prompts.get(client, params.name, params.arguments or {}, teller(ctx))

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
        talk = Talk(tell=teller(ctx) if "progressToken" in meta else None, elicit=asker(ctx, client))
        asked = None if client.legacy else (ctx.params or {}).get("requestState")
        try:
            with door.turns.call(client.caller.owner):
                if asked is None:
                    made = await door.calls.call(client, params.name, arguments, meta, talk)
                else:
                    made = await door.calls.resumed(client, str(asked), responses, talk)
        except LimitExceeded as error:
            made = refusal_of(error)
        match made.get("resultType"):
            case "task":
                return made
            case "input_required":
                return t.InputRequiredResult.model_validate(made)
            case _:
                return t.CallToolResult.model_validate(made)

    async def list_resources(_ctx: Any, _params: Any) -> Json:  # noqa: ANN401
        return {"resources": door.resources.plans()}

    async def list_templates(_ctx: Any, _params: Any) -> Json:  # noqa: ANN401
        return {"resourceTemplates": door.resources.templates()}

    async def read_resource(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        return await door.resources.read(door.client(ctx), str(params.uri))

    async def subscribe(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        client, uri = door.client(ctx), str(params.uri)
        await door.resources.read(client, uri)

        async def watching() -> None:
            async for _ in door.resources.updates(client, uri):
                await ctx.session.send_resource_updated(uri)

        door.seats.subscribe(_seat(ctx), uri, watching())
        return {}

    async def unsubscribe(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        door.seats.unsubscribe(_seat(ctx), str(params.uri))
        return {}

    async def complete(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        ref, argument = (one.model_dump(mode="json", by_alias=True) for one in (params.ref, params.argument))
        return await door.completion.complete(door.client(ctx), ref, argument)

    async def listening(ctx: Any, params: Any) -> Any:  # noqa: ANN401
        return await listen(door, ctx, params)

    return {
        "on_list_prompts": _guarded(_typed(list_prompts, t.ListPromptsResult)),
        "on_get_prompt": _guarded(_typed(get_prompt, t.GetPromptResult)),
        "on_list_tools": _guarded(_typed(list_tools, t.ListToolsResult)),
        "on_call_tool": _guarded(call_tool),
        "on_list_resources": _guarded(_typed(list_resources, t.ListResourcesResult)),
        "on_list_resource_templates": _guarded(_typed(list_templates, t.ListResourceTemplatesResult)),
        "on_read_resource": _guarded(_typed(read_resource, t.ReadResourceResult)),
        "on_subscribe_resource": _guarded(_typed(subscribe, t.EmptyResult)),
        "on_unsubscribe_resource": _guarded(_typed(unsubscribe, t.EmptyResult)),
        "on_completion": _guarded(_typed(complete, t.CompleteResult)),
        "on_subscriptions_listen": _guarded(listening),
    }


def _seat(ctx: Any) -> str:  # noqa: ANN401 -- the SDK's
    """Which connection a request came on: its session, or the only one."""
    headers = getattr(ctx.request, "headers", None)
    return "" if headers is None else str(headers.get(SESSION) or "")


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
        return await door.tasks.result(client, params.get("taskId"), asker(ctx, client))

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
        door.watch(client, made["task"]["taskId"], status_teller(ctx))
        return made

    return call


async def serve_stdio(door: McpDoor, version: str, source: BinaryIO, wire: BinaryIO) -> None:
    """Until the other side closes its end."""
    import anyio
    from mcp.server.stdio import stdio_server

    server = make_server(door, version)
    stdin = anyio.wrap_file(TextIOWrapper(source, encoding="utf-8", errors="replace"))
    stdout = anyio.wrap_file(TextIOWrapper(wire, encoding="utf-8"))
    async with stdio_server(stdin, stdout) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
    door.close()
