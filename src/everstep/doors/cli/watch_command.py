"""`everstep watch`: follow a task that somebody else carries; leaving changes nothing."""

from typing import Any, TypeAlias

import click

from everstep.doors.cli.connect import Need, Opening, perform_steps
from everstep.doors.cli.endings import close_with
from everstep.doors.cli.find import find_task
from everstep.doors.cli.follow import Follower, Manner
from everstep.doors.cli.lengths import LENGTH
from everstep.doors.cli.screens import screen_of
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.view import TaskView
from everstep.domain.errors import EverstepError, NotFound

Json: TypeAlias = dict[str, Any]


@click.command(cls=Verb, epilog="everstep watch\neverstep watch t_7k2m9qx4 --timeout 5m")
@click.argument("task", required=False)
@click.option("--from", "seq", type=click.IntRange(0), metavar="SEQ", help="Show the journal from this seq on.")
@click.option("--timeout", type=LENGTH, metavar="D", help="Leave after so long, with exit 8.")
@click.option("--fail-fast", is_flag=True, help="Leave when a step has failed for good.")
@click.option("--wait", is_flag=True, help="Stay while it waits for someone.")
def watch(task: str | None, seq: int | None, timeout: float | None, *, fail_fast: bool, wait: bool) -> int:
    """Follow a task; without TASK the only one that is active."""

    async def act(opening: Opening) -> int:
        session, connection = opening.session, await opening.connect(Need.LOOK)
        found = await find_task(connection, task) if task else await _only_active(connection)
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
            reconnect=opening.reconnect(Need.LOOK, view.id),
        )
        screen = screen_of(session)
        screen.begin(view, taken_up=view.done > 0)
        follower = Follower(connection, view, screen, session, manner)
        return await close_with(follower, await follower.follow())

    return perform_steps(act)


def _fresh(task: Json) -> list[Json]:
    """Steps as they were before anything happened."""
    return [{"id": step["id"], "title": step.get("title"), "status": "pending"} for step in task.get("steps") or ()]


async def _only_active(connection: Connection) -> Json:
    active = "queued,running,pausing,paused,stalled,cancelling"
    items = (await ask(connection, "GET", path_of("tasks", status=active, limit=10)))["items"]
    if not items:
        raise NotFound("no task is active", what_to_do="start one: everstep run PLAN")
    if len(items) > 1:
        raise EverstepError(
            f"{len(items)} tasks are active",
            code="bad_request",
            what_to_do=f"choose one: everstep watch {items[0]['id']} (all: everstep ls)",
        )
    return await find_task(connection, items[0]["id"])
