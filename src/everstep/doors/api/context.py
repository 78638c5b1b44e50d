"""What a handler works with: the desk behind it, the request before it, and the few things several handlers need."""

from collections.abc import Collection, Mapping
from typing import Final

from everstep.domain.attempts import History, history_of
from everstep.domain.errors import EverstepError, NotFound, Unavailable, Validation
from everstep.domain.events import Who
from everstep.domain.ids import KEY, Seq, StepPath, TaskId
from everstep.domain.pressure import Load
from everstep.domain.record import record
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject
from everstep.doors.api.request import Fields, Request, Response, reply
from everstep.facade.desk import Desk
from everstep.settings import Settings
from everstep.wire.event import decode

KEY_HEADER: Final = "idempotency-key"
SHORT_S: Final = 5
"""How often it is looked whether there is enough again."""


@record
class Backing:
    """What stands behind the doors of one engine."""

    desk: Desk
    settings: Settings
    version: str
    incarnation: str


@record
class Asked:
    """A request that found its route: known names only."""

    request: Request
    params: Mapping[str, str]
    fields: Fields

    @property
    def who(self) -> Who:
        """On whose behalf, and by whom; a stranger gets no further than the open routes."""
        assert self.request.who is not None
        return self.request.who

    @property
    def query(self) -> Mapping[str, str]:
        """The query, all of whose keys the route knows."""
        return self.request.query


async def find_task(back: Backing, asked: Asked) -> TaskState:
    """The task that the path names, by id, key or beginning."""
    return await back.desk.get(asked.params["task"], asked.who)


async def journal(back: Backing, task: TaskId, steps: Collection[StepPath] | None = None) -> History:
    """What the journal tells beyond the state; the first event is all in the state.

    `steps`: only of these, so that of a task with thousands of items nothing else is even decoded.
    """
    events = back.desk.events(task, Seq(1), follow=False)
    return history_of([decode(one.encoded) async for one in events if steps is None or one.step in steps])


def key_of(asked: Asked) -> str | None:
    """The caller's own name for a task it makes; raises Validation."""
    key = asked.request.headers.get(KEY_HEADER)
    if key is not None and not KEY.fullmatch(key):
        raise Validation(f"'{KEY_HEADER}' must be 1 to 128 of A-Z a-z 0-9 . _ -, not beginning with t_ or mt_")
    return key


async def exists(back: Backing, asked: Asked, key: str) -> bool:
    """Whether there is a task of this key."""
    try:
        return (await back.desk.get(key, asked.who)).key == key
    except NotFound:
        return False


def admit_task(back: Backing) -> None:
    """While too little is left of the machine, nothing new is taken; raises Unavailable."""
    if back.desk.monitoring.load is Load.SHORT:
        raise Unavailable(
            "too little is left of this machine to take more tasks",
            code="overloaded",
            what_to_do=f"try again in {SHORT_S} s; what runs goes on by itself",
            details={"retry_after_s": SHORT_S},
        )


def task_reply(state: TaskState, body: JsonObject, status: int = 200, **headers: str) -> Response:
    """A task with its version."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return reply(body, status, {"etag": etag(state), **named})


def etag(state: TaskState) -> str:
    """A task's version: the head of its journal."""
    return f'"{state.seq}"'


def unless_changed(asked: Asked, state: TaskState, current: JsonObject) -> None:
    """`If-Match`: act only on the version that was seen."""
    wanted = asked.request.headers.get("if-match")
    if wanted not in (None, "*", etag(state)):
        raise EverstepError(
            f"the task is at {etag(state)}, not at {wanted}",
            code="version_conflict",
            what_to_do="look again, then decide",
            details={"task": current},
        )
