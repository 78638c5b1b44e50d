"""`everstep logs`: what tools logged while they worked. Not the journal: lines for people, kept for a while."""

from typing import Any, TypeAlias

import click

from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.endings import log_lines
from everstep.doors.cli.find import find_task
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import clock

Json: TypeAlias = dict[str, Any]


@click.command(cls=Verb, epilog="everstep logs @last\neverstep logs t_7k2m9qx4 fetch --attempt 2")
@click.argument("task")
@click.argument("step", required=False)
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only this attempt.")
@click.option("--level", type=click.Choice(["debug", "info", "warning", "error"]), help="Nothing below this.")
def logs(task: str, step: str | None, attempt: int | None, level: str | None) -> int:
    """Show what the tools of a TASK logged, or of one STEP."""

    async def act(connection: Connection, session: Session) -> int:
        found = await find_task(connection, task)
        shown, after = 0, None
        while True:
            path = path_of(
                "tasks", found["id"], "logs", step=step, attempt=attempt, level=level, after=after, limit=500
            )
            page = await ask(connection, "GET", path)
            for item in page["items"]:
                shown += 1
                _show(session, item)
            if not page["items"] or page.get("next_after") in (None, after):
                break
            after = page["next_after"]
        if not shown and not session.json:
            session.say("nothing was logged")
        return 0

    return perform(Need.LOOK, act)


def _show(session: Session, item: Json) -> None:
    if session.json:
        session.result_json({"type": "log", **item})
        return
    where = f"{item.get('step') or '-'}#{item.get('attempt') or '-'}"
    for line in log_lines(item, whole=session.verbose > 0):
        session.result(f"{clock(item.get('at'))} {item.get('level') or 'info':<7} {where}  {line}")
