"""`everstep token` and `everstep open`: who may ask over HTTP."""

import webbrowser
from typing import Any, TypeAlias

import click

from everstep.domain.errors import EngineClosed
from everstep.doors.cli.connect import Need, Opening, perform, perform_steps
from everstep.doors.cli.find import find_task
from everstep.doors.cli.lengths import LENGTH
from everstep.doors.cli.nothing import EmptyStore
from everstep.doors.cli.render import table
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Group, Verb
from everstep.doors.cli.words import safe, stamp

Json: TypeAlias = dict[str, Any]


@click.group(cls=Group)
def token() -> None:
    """Tokens for programs that ask over HTTP; people sign in: everstep open."""


@token.command()
def ls() -> int:
    """List tokens and sessions that are good now; never their values."""

    async def act(connection: Connection, session: Session) -> int:
        page = await ask(connection, "GET", path_of("tokens"))
        if session.json:
            session.result_json(page)
            return 0
        for line in table([_row(one) for one in page["items"]]):
            session.result(line)
        session.say("make one: everstep token new NAME", "dim")
        return 0

    return perform(Need.LOOK, act)


@token.command(epilog="everstep token new ci\neverstep token new ana --owner ana --scopes read,answer --expires 30d")
@click.argument("name")
@click.option("--owner", metavar="O", help="Whose tasks it sees [yours].")
@click.option("--scopes", metavar="S,…", help="Some of read, write, answer, admin [read,write,answer].")
@click.option("--expires", type=LENGTH, metavar="D", help="Good for so long [until revoked].")
def new(name: str, owner: str | None, scopes: str | None, expires: float | None) -> int:
    """Make a token; its value is shown this once."""
    body = {"name": name, "owner": owner, "scopes": _words(scopes), "expires_in": expires}

    async def act(opening: Opening) -> int:
        session, connection = opening.session, await opening.connect(Need.RECORD, makes=True)
        said = {field: value for field, value in body.items() if value is not None}
        made = await ask(connection, "POST", path_of("tokens"), said)
        if session.json:
            session.result_json(made)
            return 0
        session.result(made["value"])
        session.say(f"{made['id']} of {made['owner']}: {', '.join(made['scopes'])}; it is not shown again", "dim")
        return 0

    return perform_steps(act)


@token.command(name="set", epilog="everstep token set k_3f9a --scopes read")
@click.argument("id")
@click.option("--scopes", metavar="S,…", required=True, help="Some of read, write, answer, admin.")
def change(id: str, scopes: str) -> int:
    """Give a token other scopes; what runs already goes on."""

    async def act(connection: Connection, session: Session) -> int:
        found = await _find(connection, id)
        changed = await ask(connection, "PATCH", path_of("tokens", found), {"scopes": _words(scopes)})
        _show(session, changed)
        return 0

    return perform(Need.RECORD, act)


@token.command()
@click.argument("id")
def revoke(id: str) -> int:
    """End a token, and what was made with it; whatever it has open is closed within seconds."""

    async def act(connection: Connection, session: Session) -> int:
        found = await _find(connection, id)
        await ask(connection, "DELETE", path_of("tokens", found))
        if session.json:
            session.result_json({"id": found, "revoked": True})
        else:
            session.result(f"{found}  revoked")
        return 0

    return perform(Need.RECORD, act)


@click.command(cls=Verb, epilog="everstep open\neverstep open @last\neverstep --server https://tasks.example.org open")
@click.argument("task", required=False)
def open(task: str | None) -> int:  # noqa: A001 -- the command's own name
    """Open the served engine in a browser, signed in; without a browser, the link is enough."""

    async def act(connection: Connection, session: Session) -> int:
        if connection.own or isinstance(connection, EmptyStore):
            do = "everstep serve; of a database, or elsewhere: everstep --server URL open"
            raise EngineClosed("nothing is served here", what_to_do=do)
        found = None if task is None else await find_task(connection, task)
        made = await ask(connection, "POST", path_of("sign-in-codes"), {})
        base, code = made["url"].split("/#", 1)
        url = made["url"] if found is None else f"{base}/tasks/{found['id']}#{code}"
        if session.json:
            session.result_json({**made, "url": url})
            return 0
        session.result(url)
        if session.asks:
            webbrowser.open(url)
        return 0

    return perform(Need.LOOK, act)


async def _find(connection: Connection, id: str) -> str:
    """By its id, or a beginning of it that is no other's."""
    page = await ask(connection, "GET", path_of("tokens"))
    wanted: list[str] = [one["id"] for one in page["items"] if one["id"].startswith(id)]
    return wanted[0] if len(wanted) == 1 else id


def _words(text: str | None) -> list[str] | None:
    return None if text is None else [word.strip() for word in text.split(",") if word.strip()]


def _show(session: Session, one: Json) -> None:
    if session.json:
        session.result_json(one)
    else:
        session.result("  ".join(_row(one)))


def _row(one: Json) -> tuple[str, ...]:
    used = f"used {stamp(one['last_used_at'])}" if one["last_used_at"] else "never used"
    until = f"until {one['expires_at'][:10]}" if one["expires_at"] else ""
    name = one["name"] if one["kind"] == "token" else one["kind"]
    return (one["id"], safe(name), one["owner"], ",".join(one["scopes"]), used, until)
