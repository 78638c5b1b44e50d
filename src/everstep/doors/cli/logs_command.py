"""`everstep logs`: what tools logged while they worked, for people and for a while; and every recorded error."""

from typing import Any, Final, TypeAlias

import click

from everstep.domain.failure import Category
from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.endings import log_lines
from everstep.doors.cli.find import find_task
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import clock, safe, short, stamp

Json: TypeAlias = dict[str, Any]

ERRORS_SHOWN: Final = 200


_CATEGORIES: Final = [category.value for category in Category]


@click.command(
    cls=Verb,
    epilog="everstep logs @last\neverstep logs t_7k2m9qx4 fetch --attempt 2\neverstep logs --errors --since 1d",
)
@click.argument("task", required=False)
@click.argument("step", required=False)
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only this attempt.")
@click.option("--level", type=click.Choice(["debug", "info", "warning", "error"]), help="Nothing below this.")
@click.option("--errors", is_flag=True, help="Errors of all tasks, newest first; of TASK, if one is named.")
@click.option("--category", type=click.Choice(_CATEGORIES), help="With --errors: only this category.")
@click.option("--tool", metavar="T", help="With --errors: only of this tool.")
@click.option("--code", metavar="C", help="With --errors: only this code.")
@click.option("--since", metavar="T", help="With --errors: not before this time, or duration ago.")
def logs(task: str | None, step: str | None, *, errors: bool, **only: str | int | None) -> int:
    """Show what the tools of a TASK logged, or of one STEP; or every error."""
    wanted = {name: value for name, value in only.items() if value is not None}
    other = ("attempt", "level") if errors else ("category", "tool", "code", "since")
    if wrong := [name for name in other if name in wanted]:
        raise click.UsageError(f"--{wrong[0]} goes {'without' if errors else 'with'} --errors")
    if task is None and not errors:
        raise click.UsageError("the logs of which task? or --errors for the errors of all")

    async def act(connection: Connection, session: Session) -> int:
        found = None if task is None else (await find_task(connection, task))["id"]
        if errors:
            return await _errors(connection, session, {**wanted, "task": found})
        assert found is not None
        shown, after = 0, None
        while True:
            page = await ask(
                connection, "GET", path_of("tasks", found, "logs", step=step, after=after, limit=500, **wanted)
            )
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


async def _errors(connection: Connection, session: Session, wanted: Json) -> int:
    """Whole errors as JSON, a line each for people."""
    page = await ask(connection, "GET", path_of("errors", limit=ERRORS_SHOWN, **wanted))
    if session.json:
        session.result_json(page)
        return 0
    for one in page["items"]:
        where = f"{short(one['task'])} {one['step'] or '-'}#{one['attempt'] or '-'}"
        what = f"{one['category']:<13} [{one['code']}]  {safe(one['message'])}"
        session.result(f"{stamp(one['at'])}  {where}  {safe(one['tool'] or '-')}  {what}")
    if page["next_cursor"]:
        session.say("there are more; narrow it: --category, --tool, --code, --since", "dim")
    elif not page["items"]:
        session.say("no error was recorded")
    return 0


def _show(session: Session, item: Json) -> None:
    if session.json:
        session.result_json({"type": "log", **item})
        return
    where = f"{item.get('step') or '-'}#{item.get('attempt') or '-'}"
    for line in log_lines(item, whole=session.verbose > 0):
        session.result(f"{clock(item.get('at'))} {item.get('level') or 'info':<7} {where}  {line}")
