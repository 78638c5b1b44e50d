"""The SDK's side of the door. Importing the SDK takes about a second, so it happens inside functions only.

One server object serves both revisions: core tasks of 2025-11-25, and the Tasks extension of 2026-07-28.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from everstep.doors.mcp.bridge import EXTENSION, LEGACY, MODERN
from everstep.doors.mcp.channel import Json
from everstep.doors.mcp.desk import Client
from everstep.doors.mcp.door import Face, McpDoor
from everstep.doors.mcp.engine_tools import scope_of
from everstep.doors.mcp.handlers import guarded, prompt_methods, resource_methods, seat_of, tool_methods
from everstep.doors.mcp.notices import asker, list_teller, status_teller
from everstep.doors.mcp.pipes import Incoming, Outgoing
from everstep.doors.mcp.refusals import HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, Refused

if TYPE_CHECKING:
    from mcp.server.context import ServerMiddleware
    from mcp.server.lowlevel import Server

INSTRUCTIONS: Final = (
    "Prompts named after workflows carry them out here as far as possible. If the last message lists tool calls, make "
    "them in order; put the task_id of the prompt's _meta into _meta._task_id of each call, or call continue_task. "
    "Afterwards complete the task with complete_task (or tasks/cancel with a result). get_task shows where it stands."
)


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
    methods = {**prompt_methods(door), **tool_methods(door), **resource_methods(door)}
    offered = {name: work for name, work in methods.items() if name not in face.without}
    server: Server[Any] = TwoEras(face.name, version=face.version, instructions=face.instructions, **offered)
    _add_tasks(server, door)

    async def sit_down(ctx: Any, _params: Any) -> None:  # noqa: ANN401 -- the SDK's
        door.seats.sit_down(seat_of(ctx), door.desk.book.bells, list_teller(ctx))

    server.add_notification_handler("notifications/initialized", t.NotificationParams, sit_down)
    server.middleware.append(cast("ServerMiddleware[Any]", _legacy_calls(door)))
    return server


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

        server.add_request_handler(method, Named, guarded(handle))

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
        asked = ctx.method == "tools/call" and ctx.request_id is not None  # who asks for nothing gets nothing
        if not asked or ctx.protocol_version == MODERN or params.get("task") is None:
            return await call_next(ctx)
        return await guarded(_make)(ctx, params)

    async def _make(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        client, wanted = door.client(ctx), params["task"]
        if not isinstance(wanted, dict) or not isinstance(params.get("name"), str):
            raise Refused(INVALID_PARAMS, "task must be an object")
        arguments = params.get("arguments")
        if not isinstance(arguments, dict | None):
            raise Refused(INVALID_PARAMS, "arguments must be an object")
        client.may(scope_of(params["name"]))
        made = await door.calls.make_task(client, params["name"], dict(arguments or {}), wanted)
        door.watch(client, made["task"]["taskId"], status_teller(ctx))
        return made

    return call


async def serve_stdio(door: McpDoor, version: str, source: BinaryIO, wire: BinaryIO) -> None:
    """Until the other side closes its end."""
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    server = make_server(door, version)
    if isinstance(get_tracer_provider(), ProxyTracerProvider):  # nobody traces: its spans would cost, and go nowhere
        server.middleware = [one for one in server.middleware if type(one).__name__ != "OpenTelemetryMiddleware"]
    await server.run(Incoming(source.fileno()), Outgoing(wire.fileno()), server.create_initialization_options())
    door.close()
