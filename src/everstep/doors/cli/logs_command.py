"""`everstep logs`: what tools logged while they worked, for people and for a while; and every recorded error."""

from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import Unavailable
from everstep.domain.failure import Category
from everstep.doors.cli.connect import Need, Opening, perform_steps
from everstep.doors.cli.endings import log_lines
from everstep.doors.cli.find import find_task
from everstep.doors.cli.lengths import begin_of
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.view import TERMINAL
from everstep.doors.cli.words import clock, safe, short, stamp

Json: TypeAlias = dict[str, Any]

ERRORS_SHOWN: Final = 200
WAIT_S: Final = 1
"""How long the engine may take to say that nothing came."""


_CATEGORIES: Final = [category.value for category in Category]


@click.command(
    cls=Verb,
    epilog="everstep logs @last\neverstep logs t_7k2m9qx4 fetch --attempt 2\neverstep logs --errors --since 1d",
)
@click.argument("task", required=False)
@click.argument("step", required=False)
@click.option("-f", "--follow", is_flag=True, help="Then what comes, until the task ends; Ctrl-C leaves.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only this attempt.")
@click.option("--level", type=click.Choice(["debug", "info", "warning", "error"]), help="Nothing below this.")
@click.option("--errors", is_flag=True, help="Errors of all tasks, newest first; of TASK, if one is named.")
@click.option("--category", type=click.Choice(_CATEGORIES), help="With --errors: only this category.")
@click.option("--tool", metavar="T", help="With --errors: only of this tool.")
@click.option("--code", metavar="C", help="With --errors: only this code.")
@click.option("--since", metavar="T", help="Not before this time, or duration ago.")
def logs(task: str | None, step: str | None, *, errors: bool, follow: bool, **only: str | int | None) -> int:
    """Show what the tools of a TASK logged, or of one STEP; or every error."""
    wanted = {name: value for name, value in only.items() if value is not None}
    other = ("attempt", "level") if errors else ("category", "tool", "code")
    if wrong := [name for name in other if name in wanted]:
        raise click.UsageError(f"--{wrong[0]} goes {'without' if errors else 'with'} --errors")
    if errors and follow:
        raise click.UsageError("--follow goes without --errors: follow a task, or watch all of them")
    if task is None and not errors:
        raise click.UsageError("the logs of which task? or --errors for the errors of all")

    async def act(opening: Opening) -> int:
        connection, session = await opening.connect(Need.LOOK), opening.session
        found = None if task is None else (await find_task(connection, task))["id"]
        if errors:
            return await _errors(connection, session, {**wanted, "task": found})
        assert found is not None
        lines = Lines(session, path_of("tasks", found, "logs", step=step, limit=500, **wanted), since)
        return await (_follow(opening, connection, lines, found) if follow else lines.show(connection))

    since = "" if errors else begin_of(wanted.pop("since", None))
    return perform_steps(act)


class Lines:
    """The lines of a task, as far as they were shown."""

    def __init__(self, session: Session, path: str, since: str) -> None:
        self.session = session
        self._path = path
        self._since = since
        self._after = 0
        self._shown = 0

    async def next(self, connection: Connection, wait_s: int = 0) -> bool:
        """Show some more; False if there were none."""
        page = await ask(connection, "GET", f"{self._path}&after={self._after}&wait={wait_s}")
        for item in page["items"]:
            if item["at"] >= self._since:
                self._shown += 1
                _show(self.session, item)
        self._after = page["next_after"]
        return bool(page["items"])

    async def show(self, connection: Connection) -> int:
        """All that are there."""
        while await self.next(connection):
            pass
        if not self._shown and not self.session.json:
            self.session.say("nothing was logged")
        return 0


async def _follow(opening: Opening, connection: Connection, lines: Lines, task: str) -> int:
    """What is there, then what comes, until the task has ended or nobody carries it."""
    seen: Json = {}
    while True:
        try:
            seen = await ask(connection, "GET", path_of("tasks", task))
            if seen["status"] in TERMINAL or connection.own:
                break
            await lines.next(connection, WAIT_S)
        except Unavailable:  # whoever carried it has left
            connection = await opening.connect(Need.LOOK)
    await lines.show(connection)
    if opening.session.json:
        opening.session.result_json({"type": "result", "ok": True, "exit_code": 0, "task": seen})
    elif seen["status"] not in TERMINAL:
        opening.session.say(f"nobody carries it now; go on: everstep resume {short(task)}")
    return 0


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
