"""`everstep db`: figures, integrity and copies of the store."""

import asyncio
from pathlib import Path
from typing import Any, TypeAlias

import click

from everstep.bootstrap import copy_store
from everstep.domain.errors import Conflict, NotFound
from everstep.doors.cli.bench import open_keeping
from everstep.doors.cli.connect import Need, Opening, perform, perform_steps
from everstep.doors.cli.db_audit import audit
from everstep.doors.cli.db_changes import migrate, move, must_exist, prune
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Group
from everstep.doors.cli.words import plural, safe, size

Json: TypeAlias = dict[str, Any]

EXIT_PROBLEMS = 1


@click.group(cls=Group)
def db() -> None:
    """Figures, integrity and copies of the store."""


for command in (audit, migrate, move, prune):
    db.add_command(command)


@db.command()
def info() -> int:
    """Say what is in the store, and how it is kept."""

    async def act(connection: Connection, session: Session) -> int:
        health = await ask(connection, "GET", path_of("health"))
        store = health.get("store") or {}
        if session.json:
            session.result_json({**store, "durability": health.get("durability")})
            return 0
        tasks: Json = store.get("tasks") or {}
        session.result(f"kind        {store.get('kind')}, schema {store.get('schema_version')}")
        session.result(f"durability  {health.get('durability')}")
        session.result(f"size        {size(store.get('size_bytes') or 0)}")
        session.result(f"events      {store.get('events')}")
        counts = ", ".join(f"{count} {status}" for status, count in tasks.items() if count)
        session.result(f"tasks       {counts or 'none'}")
        return 0

    return perform(Need.LOOK, act)


@db.command()
def check() -> int:
    """Check the file, every journal in it and its audit chain; exit 1 if something is wrong."""

    async def act(opening: Opening) -> int:
        must_exist(opening.settings)
        async with open_keeping(opening.settings) as store:
            problems = await store.check()
            head = (await store.info(whole=True)).details.get("audit_head")
        if opening.session.json:
            listed = [{"task": flaw.task, "seq": flaw.seq, "what": flaw.what} for flaw in problems]
            opening.session.result_json({"ok": not problems, "problems": listed, "audit_head": head})
        else:
            for flaw in problems:
                opening.session.result(safe(str(flaw)))
            opening.session.say(f"audit head {head}")
            opening.session.result("ok" if not problems else plural(len(problems), "problem"))
        return EXIT_PROBLEMS if problems else 0

    return perform_steps(act)


@db.command(epilog="everstep db backup everstep-backup.db")
@click.argument("file")
def backup(file: str) -> int:
    """Write a verified copy of the store to FILE, as of one moment, while it is in use too.

    Large payloads go to FILE.artifacts. Whoever opens the copy as a store finds its unfinished tasks paused: what was
    done after the copy is not known to it.
    """
    target = Path(file).absolute()
    if target.exists():
        raise Conflict(f"'{file}' is already there", what_to_do="choose another name")
    if not target.parent.is_dir():
        raise NotFound(f"no folder '{target.parent}'", what_to_do=f"mkdir -p '{target.parent}'")

    async def act(opening: Opening) -> int:
        must_exist(opening.settings)
        await asyncio.to_thread(copy_store, opening.settings, target)
        return 0

    perform_steps(act)
    if session().json:
        session().result_json({"file": str(target), "bytes": target.stat().st_size})
    else:
        session().result(f"{file}  {size(target.stat().st_size)}")
    return 0
