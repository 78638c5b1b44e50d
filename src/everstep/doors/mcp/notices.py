"""What this server says unasked: how far a call is, what a task asks, which tasks, lists and resources have changed.

The words of the SDK, which is imported inside functions only.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from everstep.doors.mcp.bridge import RELATED
from everstep.doors.mcp.channel import Json
from everstep.doors.mcp.desk import Client
from everstep.doors.mcp.listening import LISTS, Ear, List
from everstep.doors.mcp.refusals import Refused
from everstep.doors.mcp.talk import Elicit, Tell

if TYPE_CHECKING:
    from everstep.doors.mcp.door import McpDoor

PROGRESS_EVERY_S: Final = 0.1
SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"


def teller(ctx: Any) -> Tell:  # noqa: ANN401 -- the SDK's
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


def asker(ctx: Any, client: Client) -> Elicit | None:  # noqa: ANN401 -- the SDK's
    """Ask whoever sits at the client, on the open request."""
    if not client.elicits or not client.legacy:
        return None

    async def ask(message: str, schema: Json) -> Json:
        reply = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        return {"action": reply.action, "content": reply.content}

    return ask


def status_teller(ctx: Any) -> Callable[[Json], Awaitable[None]]:  # noqa: ANN401 -- the SDK's
    """Say on the connection of a request where a task stands (2025-11-25)."""

    async def tell(task: Json) -> None:
        said = {**task, "_meta": {RELATED: {"taskId": task["taskId"]}}}
        await ctx.session.send_notification(_notice("notifications/tasks/status", said))

    return tell


def list_teller(ctx: Any) -> Callable[[List], Awaitable[None]]:  # noqa: ANN401 -- the SDK's
    """Say on the connection of a request that a list has changed."""
    session = ctx.session
    say: dict[List, Callable[[], Awaitable[None]]] = {
        "tools": session.send_tool_list_changed,
        "prompts": session.send_prompt_list_changed,
        "resources": session.send_resource_list_changed,
    }

    async def tell(what: List) -> None:
        await say[what]()

    return tell


async def listen(door: "McpDoor", ctx: Any, params: Any) -> Any:  # noqa: ANN401 -- the SDK's
    """`subscriptions/listen`: acknowledge what can be heard, then every change; over when no more can come."""
    import mcp_types as t

    client, asked = door.client(ctx), params.notifications
    wanted = (asked.model_extra or {}).get("taskIds") or []
    meta = {SUBSCRIPTION: ctx.request_id}
    if wanted:
        client.need_tasks()
    known = await door.tasks.known(client, list(wanted))
    watched = await door.resources.watched(client, list(asked.resource_subscriptions or ()))
    lists = [one for one in LISTS if getattr(asked, f"{one}_list_changed")]
    granted: Json = {f"{one}ListChanged": True for one in lists}
    granted |= {"taskIds": known} if wanted else {}
    granted |= {"resourceSubscriptions": list(watched)} if watched else {}

    async def say(method: str, said: Json) -> None:
        told = _notice(method, {**said, "_meta": meta})
        await ctx.session.send_notification(told, related_request_id=ctx.request_id)

    async def tell_task(handle: str) -> None:
        async for task in door.tasks.changes(client, handle):
            await say("notifications/tasks", task)

    async def tell_resource(uri: str, updates: AsyncIterator[None]) -> None:
        with contextlib.suppress(Refused):  # it is gone by now
            async for _ in updates:
                await say("notifications/resources/updated", {"uri": uri})

    async def tell_lists(ear: Ear) -> None:
        while lists or not (known or watched):
            for one in await ear.changed():
                if one in lists:
                    await say(f"notifications/{one}/list_changed", {})

    with door.turns.stream(client.caller.owner), door.desk.book.bells.listening() as ear:
        await say("notifications/subscriptions/acknowledged", {"notifications": granted})
        async with asyncio.TaskGroup() as group:
            group.create_task(tell_lists(ear))
            for handle in known:
                group.create_task(tell_task(handle))
            for uri, updates in watched.items():
                group.create_task(tell_resource(uri, updates))
    return t.SubscriptionsListenResult(_meta=meta)


def _notice(method: str, params: Json) -> Any:  # noqa: ANN401 -- the SDK's
    import mcp_types as t

    class Notice(t.Notification[Any, Any]):
        """Any notification."""

        method: str
        params: dict[str, Any]

    return Notice(method=method, params=params)
