"""`everstep breakers`: what holds calls back, until when, and how to let them pass again."""

from typing import Any, TypeAlias

import click

from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.render import table
from everstep.doors.cli.session import Session, width
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import clock, cut, plural, safe

Json: TypeAlias = dict[str, Any]


@click.command(cls=Verb, epilog="everstep breakers\neverstep breakers reset b_3f9a")
@click.argument("action", required=False, type=click.Choice(["reset"]))
@click.argument("id", required=False)
def breakers(action: str | None, id: str | None) -> int:
    """List breakers in trouble, or reset one: calls pass again, and steps that wait for it go on."""
    if action is not None and id is None:
        raise click.UsageError("reset which? everstep breakers shows their ids")

    async def act(connection: Connection, session: Session) -> int:
        page = await ask(connection, "GET", path_of("breakers"))
        if id is None:
            return _list(session, page)
        wanted = [one["id"] for one in page["items"] if one["id"].startswith(id)]
        name = wanted[0] if len(wanted) == 1 else id
        after = await ask(connection, "POST", path_of("breakers", name, "reset"), {})
        if session.json:
            session.result_json(after)
        else:
            session.result(f"{after['id']}  {after['state']}  {_subject(after)}")
        return 0

    return perform(Need.LOOK if id is None else Need.RECORD, act)


def _list(session: Session, page: Json) -> int:
    if session.json:
        session.result_json(page)
        return 0
    rows = [
        (
            one["id"],
            one["state"],
            _subject(one),
            f"until {clock(one['retry_at'])}" if one["state"] == "open" else "",
            f"holds {plural(len(one['held_steps']), 'step')}" if one["held_steps"] else "",
            cut(safe(one.get("last_error") or ""), max(width() - 70, 20)),
        )
        for one in page["items"]
    ]
    for line in table(rows):
        session.result(line)
    session.say("let calls pass again: everstep breakers reset ID" if rows else "no breaker is in trouble", "dim")
    return 0


def _subject(one: Json) -> str:
    tool, target = one["tool"], one["target"]
    return safe(target if tool in (None, target) else f"{tool} {target}")
