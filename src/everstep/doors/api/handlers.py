"""Which function answers which route, by the name the route table gives it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from everstep.doors.api import (
    access,
    admin,
    artifacts,
    events,
    export,
    handing,
    listing,
    logs,
    metrics,
    pauses,
    plan_list,
    plans,
    rework,
    stats,
    steps,
    tasks,
    tools,
    troubles,
)
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.openapi import document
from everstep.doors.api.request import Response, reply

Handler: TypeAlias = Callable[[Backing, Asked], Awaitable[Response]]


async def _read_document(back: Backing, asked: Asked) -> Response:  # noqa: ARG001 -- every handler is called alike
    """This very list as OpenAPI 3.1, with the shapes of all objects."""
    told = {name: (one.__doc__ or name).strip().splitlines()[0] for name, one in HANDLERS.items()}
    return reply(document(back.version, told))


HANDLERS: Final[Mapping[str, Handler]] = {
    "tasks.create": tasks.create,
    "tasks.list": listing.list_all,
    "tasks.get": tasks.get,
    "tasks.update": tasks.update,
    "tasks.delete": tasks.delete,
    "tasks.pause": tasks.pause,
    "tasks.resume": tasks.resume,
    "tasks.cancel": tasks.cancel,
    "tasks.retry": rework.retry,
    "tasks.fork": rework.fork,
    "tasks.patch": rework.patch,
    "tasks.undo": rework.undo,
    "handing.continue": handing.go_on,
    "handing.complete": handing.complete,
    "handing.variables": handing.variables,
    "handing.set_variables": handing.set_variables,
    "handing.handoff": handing.handoff,
    "handing.handle": handing.handle,
    "events.page": events.page,
    "events.all": events.page_of_all,
    "steps.list": steps.list_all,
    "steps.get": steps.get,
    "steps.attempt": steps.attempt,
    "steps.plan": steps.plan,
    "steps.estimate": steps.estimate,
    "artifacts.list": artifacts.list_all,
    "artifacts.get": artifacts.get,
    "logs.read": logs.read,
    "pauses.list": pauses.inbox,
    "pauses.get": pauses.get,
    "pauses.answer": pauses.answer,
    "pauses.signal": pauses.signal,
    "plans.check": plans.check,
    "plans.schema": plans.schema,
    "plans.estimate": plans.estimate,
    "plans.list": plan_list.list_all,
    "plans.get": plan_list.get,
    "troubles.errors": troubles.errors,
    "troubles.breakers": troubles.breakers,
    "troubles.reset": troubles.reset,
    "tools.list": tools.list_all,
    "tools.get": tools.get,
    "tools.health": tools.health,
    "admin.workers": admin.workers,
    "openapi.read": _read_document,
    "access.owner": access.owner,
    "access.list_tokens": access.list_tokens,
    "access.new_token": access.new_token,
    "access.change_token": access.change_token,
    "access.revoke_token": access.revoke_token,
    "access.new_code": access.new_code,
    "access.new_session": access.new_session,
    "access.end_session": access.end_session,
    "access.new_ticket": access.new_ticket,
    "admin.halt": admin.halt,
    "admin.health": admin.health,
    "admin.ready": admin.ready,
    "metrics.read": metrics.read,
    "export.read": export.read,
    "stats.read": stats.read,
}
