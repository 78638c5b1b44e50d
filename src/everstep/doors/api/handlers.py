"""Which function answers which route, by the name the route table gives it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from everstep.doors.api import (
    access,
    admin,
    events,
    export,
    listing,
    logs,
    metrics,
    pauses,
    plans,
    rework,
    steps,
    tasks,
    tools,
    troubles,
)
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import Response

Handler: TypeAlias = Callable[[Backing, Asked], Awaitable[Response]]

HANDLERS: Final[Mapping[str, Handler]] = {
    "tasks.create": tasks.create,
    "tasks.list": listing.list_all,
    "tasks.get": tasks.get,
    "tasks.update": tasks.update,
    "tasks.pause": tasks.pause,
    "tasks.resume": tasks.resume,
    "tasks.cancel": tasks.cancel,
    "tasks.retry": rework.retry,
    "tasks.fork": rework.fork,
    "tasks.patch": rework.patch,
    "tasks.undo": rework.undo,
    "events.page": events.page,
    "events.all": events.page_of_all,
    "steps.list": steps.list_all,
    "steps.get": steps.get,
    "steps.attempt": steps.attempt,
    "steps.plan": steps.plan,
    "steps.artifact": steps.artifact,
    "logs.read": logs.read,
    "pauses.list": pauses.inbox,
    "pauses.get": pauses.get,
    "pauses.answer": pauses.answer,
    "pauses.signal": pauses.signal,
    "plans.check": plans.check,
    "plans.schema": plans.schema,
    "troubles.errors": troubles.errors,
    "troubles.breakers": troubles.breakers,
    "troubles.reset": troubles.reset,
    "tools.list": tools.list_all,
    "tools.get": tools.get,
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
}
