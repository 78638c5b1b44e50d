"""Methods of both revisions, in the words of the SDK, which is imported inside functions only."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from everstep.domain.errors import EverstepError, LimitExceeded
from everstep.doors.mcp.asking import ask_first
from everstep.doors.mcp.channel import Json
from everstep.doors.mcp.continuing import refusal_of
from everstep.doors.mcp.door import McpDoor
from everstep.doors.mcp.engine_tools import scope_of
from everstep.doors.mcp.notices import asker, listen, teller
from everstep.doors.mcp.refusals import Refused, broken
from everstep.doors.mcp.talk import Talk

SESSION: Final = "mcp-session-id"


def prompt_methods(door: McpDoor) -> dict[str, Any]:
    """`prompts/*`, and completion."""
    import mcp_types as t

    async def list_prompts(_ctx: Any, _params: Any) -> Json:  # noqa: ANN401 -- the SDK's, as all below
        return {"prompts": door.prompts.offered()}

    async def get_prompt(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        client = door.client(ctx)
        client.may("write")
        return await door.prompts.get(client, params.name, params.arguments or {}, teller(ctx))

    async def complete(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        ref, argument = (one.model_dump(mode="json", by_alias=True) for one in (params.ref, params.argument))
        return await door.completion.complete(door.client(ctx), ref, argument)

    return {
        "on_list_prompts": guarded(_typed(list_prompts, t.ListPromptsResult)),
        "on_get_prompt": guarded(_typed(get_prompt, t.GetPromptResult)),
        "on_completion": guarded(_typed(complete, t.CompleteResult)),
    }


def tool_methods(door: McpDoor) -> dict[str, Any]:
    """`tools/*`."""
    import mcp_types as t

    async def list_tools(ctx: Any, _params: Any) -> Json:  # noqa: ANN401
        return {"tools": await door.calls.offered(door.client(ctx))}

    async def call_tool(ctx: Any, params: Any) -> Any:  # noqa: ANN401
        meta = (ctx.params or {}).get("_meta") or {}
        client = door.client(ctx)
        client.may(scope_of(params.name))
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
                    made = await door.calls.call(client, params.name, arguments, meta, talk=talk)
                else:
                    made = await door.calls.resumed(client, str(asked), responses, talk=talk)
        except LimitExceeded as error:
            made = refusal_of(error)
        match made.get("resultType"):
            case "task":
                return made
            case "input_required":
                return t.InputRequiredResult.model_validate(made)
            case _:
                return t.CallToolResult.model_validate(made)

    return {
        "on_list_tools": guarded(_typed(list_tools, t.ListToolsResult)),
        "on_call_tool": guarded(call_tool),
    }


def resource_methods(door: McpDoor) -> dict[str, Any]:
    """`resources/*`, and whoever listens."""
    import mcp_types as t

    async def list_resources(_ctx: Any, _params: Any) -> Json:  # noqa: ANN401
        return {"resources": door.resources.plans()}

    async def list_templates(_ctx: Any, _params: Any) -> Json:  # noqa: ANN401
        return {"resourceTemplates": door.resources.templates()}

    async def read_resource(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        return await door.resources.read(door.client(ctx), str(params.uri))

    async def subscribe(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        client, uri = door.client(ctx), str(params.uri)
        await door.resources.read(client, uri)
        updates = await door.resources.updates(client, uri)

        async def watching() -> None:
            async for _ in updates:
                await ctx.session.send_resource_updated(uri)

        door.seats.subscribe(seat_of(ctx), uri, watching())
        return {}

    async def unsubscribe(ctx: Any, params: Any) -> Json:  # noqa: ANN401
        door.seats.unsubscribe(seat_of(ctx), str(params.uri))
        return {}

    async def listening(ctx: Any, params: Any) -> Any:  # noqa: ANN401
        return await listen(door, ctx, params)

    return {
        "on_list_resources": guarded(_typed(list_resources, t.ListResourcesResult)),
        "on_list_resource_templates": guarded(_typed(list_templates, t.ListResourceTemplatesResult)),
        "on_read_resource": guarded(_typed(read_resource, t.ReadResourceResult)),
        "on_subscribe_resource": guarded(_typed(subscribe, t.EmptyResult)),
        "on_unsubscribe_resource": guarded(_typed(unsubscribe, t.EmptyResult)),
        "on_subscriptions_listen": guarded(listening),
    }


def guarded(work: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
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


def seat_of(ctx: Any) -> str:  # noqa: ANN401 -- the SDK's
    """Which connection a request came on: its session, or the only one."""
    headers = getattr(ctx.request, "headers", None)
    return "" if headers is None else str(headers.get(SESSION) or "")
