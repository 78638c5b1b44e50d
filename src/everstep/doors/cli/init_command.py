"""`everstep init`: a project to start from."""

import os
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from everstep.domain.errors import Conflict, EverstepError
from everstep.doors.cli.given import reason
from everstep.doors.cli.session import session
from everstep.doors.cli.verbs import Verb

TEMPLATES: Final = ("hello",)
FILES: Final = ("everstep.toml", "hello.plan.yaml", "hello_tools.py", "test_hello.py")


@click.command(cls=Verb, epilog="everstep init\neverstep init my-agent")
@click.argument("folder", default=".", metavar="[DIR]")
@click.option("-t", "--template", type=click.Choice(TEMPLATES), default="hello", help="What to start from.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
def init(folder: str, template: str, *, force: bool) -> None:
    """Make a folder with a configuration, a plan, a tool and a test."""
    path = Path(folder)
    there = [name for name in FILES if (path / name).exists()]
    if there and not force:
        raise Conflict(
            f"{', '.join(there)} already there",
            what_to_do=f"choose another folder, or replace: everstep init {folder} --force",
        )
    source = files("everstep.doors.cli") / "templates" / template
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (path / name).write_bytes((source / f"{name}.txt").read_bytes())
    except OSError as error:
        raise EverstepError(
            f"cannot write to '{folder}': {reason(error)}",
            code="forbidden",
            what_to_do="choose a folder you may write to: everstep init DIR",
        ) from error
    _say(path, [str(path / name) for name in FILES])


def _say(path: Path, written: list[str]) -> None:
    if session().json:
        session().result_json({"files": written})
        return
    for name in written:
        session().result(name)
    enter = "" if path.resolve() == Path.cwd() else f"cd {os.path.relpath(path)} && "
    session().say(f"\nNow:   {enter}everstep run hello -i name=Ana")
    session().say(f"Test:  {enter}pytest")
