"""`everstep config`: every setting in force, and who said so; the JSON Schema of `everstep.toml`. Shows no secret."""

import json
import os
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from click.shell_completion import CompletionItem

from everstep.domain.errors import NotFound
from everstep.doors.cli.connect import settings_of
from everstep.doors.cli.render import table
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import cut, output_text, safe
from everstep.settings.keys import FAMILIES, KEYS, find, unknown
from everstep.settings.schema import settings_schema

Json: TypeAlias = dict[str, Any]

SCHEMA: Final = "schema"
VALUE_CHARS: Final = 44
UNSET: Final[Json] = {"value": None, "source": "default"}


def _complete(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in (SCHEMA, *(key.name for key in KEYS)) if name.startswith(begun)]


@click.command(
    cls=Verb,
    epilog="""
    everstep config
    everstep config engine
    everstep config engine.step_timeout
    everstep config schema > .everstep/settings.schema.json
    """,
)
@click.argument("key", required=False, metavar="[KEY|schema]", shell_complete=_complete)
def config(key: str | None) -> None:
    """Show every setting, its value and who said so; one KEY, or those below it. Secrets are not shown.

    `schema` prints the JSON Schema of everstep.toml instead. For editors that read Taplo's comments its first line then
    is: #:schema .everstep/settings.schema.json
    """
    current = session()
    if key == SCHEMA:
        current.result(json.dumps(settings_schema(), ensure_ascii=False, indent=None if current.json else 2))
        return
    listing: Json = settings_of(current).listing()
    chosen = listing if key is None else _below(listing, key)
    if current.json:
        current.result_json(chosen)
    elif key is not None and [*chosen] == [key]:
        _show(current, key, chosen[key])
    else:
        for line in table([_row(name, said) for name, said in chosen.items()]):
            current.result(line)
        if not chosen:
            current.say(f"nothing is said below '{key}'", "dim")


def _below(listing: Json, key: str) -> Json:
    """The setting of that name, or all of its table; raises NotFound."""
    found = {name: said for name, said in listing.items() if name == key or name.startswith(f"{key}.")}
    if found or any(f"{family}.".startswith(f"{key}.") for family in FAMILIES):
        return found
    if find(key) is None:
        raise NotFound(unknown(key), what_to_do="list them: everstep config")
    return {key: UNSET}


def _row(name: str, said: Json) -> tuple[str, ...]:
    return name, cut(_value(said), VALUE_CHARS), _near(said["source"])


def _show(session: Session, name: str, said: Json) -> None:
    key = find(name)
    assert key is not None, "it is listed"
    session.result("  ".join((name, _value(said), _near(said["source"]))))
    session.result(f"  {key.meaning}")
    default = "" if key.default in (None, "", []) else f"; default {output_text(key.default)}"
    session.result(f"  {key.kind.noun}{default}")


def _value(said: Json) -> str:
    value = said["value"]
    return "-" if value is None or value in ("", []) else safe(output_text(value))


def _near(source: str) -> str:
    return source.removeprefix(f"{Path.cwd()}{os.sep}")
