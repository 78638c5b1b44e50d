"""`everstep watch`: follow a task that somebody else carries; leaving changes nothing."""

from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import EverstepError
from everstep.doors.cli.connect import Need, Opening, perform_steps
from everstep.doors.cli.endings import close_with
from everstep.doors.cli.find import find_task
from everstep.doors.cli.follow import Follower, Manner
from everstep.doors.cli.lengths import LENGTH
from everstep.doors.cli.screens import screen_of
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, changes, gone, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.view import TaskView
from everstep.doors.cli.words import safe, short

Json: TypeAlias = dict[str, Any]

ACTIVE: Final = "queued,running,pausing,paused,stalled,cancelling"
BEGINNING: Final = "task.created,task.started,task.reopened"
"""Events after which a task may be active that was not."""


@click.command(cls=Verb, epilog="everstep watch\neverstep watch t_7k2m9qx4 --timeout 5m")
@click.argument("task", required=False)
@click.option("--from", "seq", type=click.IntRange(0), metavar="SEQ", help="Show the journal from this seq on.")
@click.option("--timeout", type=LENGTH, metavar="D", help="Leave after so long, with exit 8.")
@click.option("--fail-fast", is_flag=True, help="Leave when a step has failed for good.")
@click.option("--wait", is_flag=True, help="Stay while it waits for someone.")
def watch(task: str | None, seq: int | None, timeout: float | None, *, fail_fast: bool, wait: bool) -> int:
    """Follow a task; without TASK the only one that is active."""

    async def act(opening: Opening) -> int:
        session = opening.session
        connection = await opening.connect(Need.CARRY, makes=task is None)
        if task is None:
            connection, found = await _only_active(opening, connection)
        else:
            found = await find_task(connection, task)
        view = TaskView.of(found)
        if seq is not None:
            view = TaskView.of(
                {**found, "status": "queued", "seq": max(seq - 1, 0), "steps": _fresh(found), "pause": None}
            )
        manner = Manner(
            waits=wait,
            asks=session.asks,
            fail_fast=fail_fast,
            timeout_s=timeout,
            reconnect=opening.reconnect(None),
        )
        screen = screen_of(session)
        screen.begin(view, taken_up=view.done > 0)
        if connection.own and view.status in ("queued", "stalled"):
            screen.remark(((f"    nobody carries it yet: everstep resume {short(view.id)}", "yellow"),))
        follower = Follower(connection, view, screen, session, manner)
        return await close_with(follower, await follower.follow())

    return perform_steps(act)


def _fresh(task: Json) -> list[Json]:
    """Steps as they were before anything happened."""
    return [{"id": step["id"], "title": step.get("title"), "status": "pending"} for step in task.get("steps") or ()]


async def _only_active(opening: Opening, connection: Connection) -> tuple[Connection, Json]:
    """The only task that is active; of several the one that is chosen; of none the first that comes."""
    told = False
    while True:
        try:
            async for _ in changes(connection, BEGINNING):
                items = (await ask(connection, "GET", path_of("tasks", status=ACTIVE, limit=10)))["items"]
                if items:
                    chosen = items[0] if len(items) == 1 else _chosen(opening.session, items)
                    return connection, await find_task(connection, chosen["id"])
                if not told:
                    opening.session.say("no task is active; waiting for one (Ctrl-C leaves)", "dim")
                    told = True
        except EverstepError as error:
            if not gone(error):
                raise
        connection = await opening.connect(Need.CARRY, makes=True)


def _chosen(session: Session, items: list[Json]) -> Json:
    if not session.asks:
        raise EverstepError(
            f"{len(items)} tasks are active",
            code="bad_request",
            what_to_do=f"choose one: everstep watch {short(items[0]['id'])} (all: everstep ls)",
        )
    for number, item in enumerate(items, 1):
        session.warn(f" {number}  {short(item['id'])}  {safe(item['title'])}, {item['status']}")
    number = click.prompt("which", type=click.IntRange(1, len(items)), default=1, err=True)
    return items[number - 1]
