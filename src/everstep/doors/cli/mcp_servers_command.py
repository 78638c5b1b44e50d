"""`everstep mcp add` and `accept`: servers of others, let in by the operator's word."""

import json
from pathlib import Path
from typing import Final

import click

from everstep.bootstrap import Agreement, run_process
from everstep.domain.errors import Conflict, NotFound, Validation
from everstep.domain.values import JsonValue
from everstep.doors.cli.connect import settings_of
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import safe

EFFECTS: Final = ("pure", "idempotent", "once")
FILE: Final = "everstep.toml"


@click.command(
    cls=Verb,
    epilog="everstep mcp add github -- npx -y some-server@1.2.3\neverstep mcp add docs --url https://docs.example.com/mcp",
)
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", help="Where it is, instead of a command.")
def add(name: str, command: tuple[str, ...], url: str | None) -> int:
    """Start the server NAME once, show its tools, and write those you let in to everstep.toml.

    With --yes every tool is taken, with the effect that the server's hints speak for.
    """
    current = session()
    if bool(command) == bool(url):
        raise click.UsageError("say how to start it (-- COMMAND…), or where it is (--url URL)")
    if not name.isidentifier():
        raise Validation(f"'{name}' is no name for a server", what_to_do="letters, digits and _, a letter first")
    if name in settings_of(current).tables("mcp.servers"):
        raise Conflict(f"there is a server '{name}' already", what_to_do="choose another name, or edit everstep.toml")
    said: JsonValue = list(command) if command else url
    settings = settings_of(current, **{f"mcp.servers.{name}.{'command' if command else 'url'}": said})
    agreement = Agreement(settings, name)
    offered = run_process(agreement.look())
    if not (current.yes or current.asks):
        raise Validation("nobody is here to choose", what_to_do="take the proposals: --yes")
    chosen = {
        one.name: one.effect if current.yes else _chosen(current, f"{one.name}: {one.description}", one.why, one.effect)
        for one in offered
    }
    effects = {tool: effect for tool, effect in chosen.items() if effect != "no"}
    agreement.agree(one for one in offered if one.name in effects)
    file = settings.base / FILE
    with file.open("a", encoding="utf-8") as text:
        text.write(section(name, said, effects))
    _tell(current, file, name, effects)
    return 0


@click.command(cls=Verb, epilog="everstep mcp accept github")
@click.argument("name")
def accept(name: str) -> int:
    """Agree to the tools of the server NAME as they are now, after they changed."""
    current = session()
    settings = settings_of(current)
    if name not in settings.tables("mcp.servers"):
        raise NotFound(f"there is no server '{name}'", what_to_do="everstep mcp add NAME -- COMMAND…")
    agreement = Agreement(settings, name)
    offered = [one for one in run_process(agreement.look()) if one.name in agreement.wanted]
    agreement.agree(offered)
    changed = [one.name for one in offered if one.changed]
    if current.json:
        current.result_json({"server": name, "tools": [one.name for one in offered], "changed": changed})
        return 0
    for one in offered:
        current.result(f"{'changed' if one.changed else 'same   '}  {safe(one.name)}  {safe(one.description)}")
    return 0


def _chosen(current: Session, tool: str, why: str, effect: str) -> str:
    """What the operator says of a tool: an effect, or `no`."""
    current.say(safe(tool))
    question, words = f"  {why}; pure, idempotent, once or no?", click.Choice([*EFFECTS, "no"])
    return str(click.prompt(question, type=words, default=effect, show_choices=False, err=True))


def section(name: str, said: JsonValue, effects: dict[str, str]) -> str:
    """As it stands in the file: what is `once` is not named, so that every call of it is asked about."""
    known = ", ".join(f"{json.dumps(tool)} = {json.dumps(one)}" for tool, one in effects.items() if one != "once")
    lines = [
        "",
        f"[mcp.servers.{name}]",
        f"{'command' if isinstance(said, list) else 'url'} = {json.dumps(said)}",
        f"tools = {json.dumps([*effects])}",
        *([f"effects = {{ {known} }}"] if known else []),
    ]
    return "\n".join(lines) + "\n"


def _tell(current: Session, file: Path, name: str, effects: dict[str, str]) -> None:
    if current.json:
        current.result_json({"server": name, "file": str(file), "effects": effects})
        return
    for tool, effect in effects.items():
        asked = ", asked about before every call" if effect == "once" else ""
        current.result(f"mcp.{name}.{safe(tool)}  {effect}{asked}")
    current.say(f"written: {file}")
