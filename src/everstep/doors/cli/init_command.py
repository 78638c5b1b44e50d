"""`everstep init`: a project to start from."""

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

import click

from everstep.domain.errors import Conflict, EverstepError
from everstep.doors.cli.given import reason
from everstep.doors.cli.session import session
from everstep.doors.cli.verbs import Verb


class Template(NamedTuple):
    """What a folder is made of, and what to do there first."""

    files: Sequence[str]
    first: str


TEMPLATES: Final[Mapping[str, Template]] = {
    "hello": Template(
        files=("everstep.toml", "hello.plan.yaml", "hello_tools.py", "test_hello.py"),
        first="everstep run hello -i name=Ana",
    ),
    "agent": Template(
        files=("everstep.toml", "agent.py", "agent_tools.py", "test_agent.py"),
        first='everstep run agent -i question="What does the journal say after a crash?"',
    ),
    "runbook": Template(
        files=("everstep.toml", "runbook.plan.yaml", "runbook_tools.py", "test_runbook.py"),
        first="everstep run runbook -i service=web",
    ),
}


@click.command(cls=Verb, epilog="everstep init\neverstep init my-agent -t agent\neverstep init on-call -t runbook")
@click.argument("folder", default=".", metavar="[DIR]")
@click.option(
    "-t",
    "--template",
    type=click.Choice([*TEMPLATES]),
    default="hello",
    help="hello: a plan (the default); agent: a loop in Python; runbook: a plan that asks and cleans up.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def init(folder: str, template: str, *, force: bool) -> None:
    """Make a folder with a configuration, a plan or a durable function, tools and a test."""
    path, chosen = Path(folder), TEMPLATES[template]
    there = [name for name in chosen.files if (path / name).exists()]
    if there and not force:
        kind = "" if template == "hello" else f" -t {template}"
        raise Conflict(
            f"{', '.join(there)} already there",
            what_to_do=f"choose another folder, or replace: everstep init {folder}{kind} --force",
        )
    source = files("everstep.doors.cli") / "templates" / template
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in chosen.files:
            (path / name).write_bytes((source / f"{name}.txt").read_bytes())
    except OSError as error:
        raise EverstepError(
            f"cannot write to '{folder}': {reason(error)}",
            code="forbidden",
            what_to_do="choose a folder you may write to: everstep init DIR",
        ) from error
    _say(path, chosen)


def _say(path: Path, made: Template) -> None:
    written = [str(path / name) for name in made.files]
    if session().json:
        session().result_json({"files": written})
        return
    for name in written:
        session().result(name)
    enter = "" if path.resolve() == Path.cwd() else f"cd {os.path.relpath(path)} && "
    session().say(f"\nNow:   {enter}{made.first}")
    session().say(f"Test:  {enter}pytest")
