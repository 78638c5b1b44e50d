"""`everstep export`: tasks or events as CSV, JSON or JSON Lines, to stdout or a file."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import click

from everstep.domain.errors import Validation
from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, path_of
from everstep.doors.cli.tasks_command import filters, query_of
from everstep.doors.cli.verbs import Verb

Write: TypeAlias = Callable[[str], object]


@click.command(
    cls=Verb,
    epilog="everstep export --since 7d --out tasks.csv\neverstep export --what events --format jsonl | jq .type",
)
@click.option(
    "--what", type=click.Choice(["tasks", "events"]), default="tasks", show_default=True, help="What to write."
)
@click.option("--format", type=click.Choice(["csv", "json", "jsonl"]), help="How [csv; with --json: json].")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, whole or not at all.")
@click.option("--type", metavar="T,…", help="Events: only these types; `step.` means all that begin so.")
@click.option("--category", metavar="C", help="Events: only errors of this category.")
@click.option("--code", metavar="C", help="Events: only errors with this code.")
@filters
def export(what: str, out: Path | None, *, format: str | None, **only: str | None) -> int:
    """Write tasks, or their events, for other programs."""
    query = query_of(only)
    of_events = {name: only[name] for name in ("type", "category", "code")}
    path = path_of("export", what=what, **query, **of_events)

    async def act(connection: Connection, session: Session) -> int:
        chosen = format or ("json" if session.json else "csv")
        with _target(session, out) as write:
            async for part in connection.parts(f"{path}&format={chosen}"):
                write(part)
        return 0

    return perform(Need.LOOK, act)


@contextmanager
def _target(session: Session, out: Path | None) -> Iterator[Write]:
    """Where the pieces go; a file is there once all of them are in it."""
    if out is None:
        yield session.pour
        return
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            yield file.write
        draft.replace(out)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Validation(f"cannot write '{out}': {why}", what_to_do="name a file in a folder that is there") from error
    finally:
        with suppress(OSError):
            draft.unlink()
