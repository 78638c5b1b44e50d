"""The pages of the reference that are read off tables: settings, commands, the keys of a plan."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import click

from everstep.domain.values import JsonValue
from everstep.doors.cli.main import everstep
from everstep.doors.cli.verbs import SECTIONS, Doorway
from everstep.settings.keys import FAMILIES, KEYS
from everstep.settings.kinds import Key
from everstep.wire.planschema import plan_schema

NOTE: Final = "<!-- Generated from the code by `make docs`; do not edit. -->"
WIDTH: Final = 100


def settings_page() -> str:
    """Every key, with its default."""
    rooms: dict[str, list[Key]] = {}
    for key in (*KEYS, *FAMILIES.values()):
        room = key.name.rpartition(".")[0].split(".")[0] or "top"
        rooms.setdefault(room, []).append(key)
    tables = [line for room, keys in rooms.items() for line in _room(room, keys)]
    parts = [
        "# Settings",
        NOTE,
        "After this page you can set anything that can be set. Settings stand in `everstep.toml` beside your plans;",
        "each can also be given as an environment variable (`EVERSTEP_ENGINE__TASKS=8`: two underscores for a dot),",
        "or as `config` of an `Engine`. What is said nearer wins: argument, environment, file, default. A key that",
        "nobody knows is refused with its line and the closest name. `everstep doctor` shows what is in force.",
        "",
        *tables,
    ]
    return "\n".join(parts)


def _room(name: str, keys: Iterable[Key]) -> Iterator[str]:
    yield "## The top of the file" if name == "top" else f"## [{name}]"
    yield from ("", "| key | what it is | default | means |", "|---|---|---|---|")
    for key in keys:
        yield f"| `{key.name}` | {_cell(key.kind.noun)} | {_default(key.default)} | {_cell(key.meaning)} |"
    yield ""


def cli_page() -> str:
    """Every command, as its own help tells it."""
    assert isinstance(everstep, Doorway)
    parts = [
        "# Command line",
        NOTE,
        "After this page you know every command. `everstep COMMAND --help` says the same; `--json` gives programs what",
        "people read; exit codes: [errors](errors.md). Completion: `everstep completion --help`.",
        "",
        "```text",
        _help(everstep, "everstep"),
        "```",
    ]
    for title, entries in SECTIONS.items():
        parts += ["", f"## {title}"]
        for name in entries:
            command = everstep.get_command(click.Context(everstep), name)
            assert command is not None
            for path, one in _with_children(f"everstep {name}", command):
                parts += ["", f"### {path.removeprefix('everstep ')}", "", "```text", _help(one, path), "```"]
    return "\n".join(parts) + "\n"


def plan_page() -> str:
    """Every key of a plan file."""
    schema = plan_schema()
    parts = [
        "# Plan files",
        NOTE,
        "After this page you can write any plan. A plan is YAML or JSON; `everstep plan check` finds every problem at",
        "once, `everstep plan schema` prints the JSON Schema with your tools, for your editor. Keys in bold are",
        "required.",
        "",
        "## The plan",
        "",
        *_keys(schema),
    ]
    definitions: Any = schema["definitions"]
    parts += [
        "",
        "## A step",
        "",
        *_keys(definitions["step"]),
        "",
        "## A fallback",
        "",
        *_keys(definitions["fallback"]),
    ]
    return "\n".join(parts) + "\n"


def _with_children(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _with_children(f"{path} {name}", child)


def _help(command: click.Command, path: str) -> str:
    context = click.Context(command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH)
    return "\n".join(line.rstrip() for line in command.get_help(context).strip().splitlines())


def _keys(schema: Mapping[str, Any]) -> Iterator[str]:
    yield "| key | what it is | means |"
    yield "|---|---|---|"
    required = schema.get("required", ())
    for name, key in schema["properties"].items():
        shown = f"**`{name}`**" if name in required else f"`{name}`"
        yield f"| {shown} | {_kind(key)} | {_cell(key.get('description', ''))} |"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"] if word is not None)
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"]))
    said = schema.get("type", "anything" if "$ref" not in schema else schema["$ref"].rpartition("/")[2])
    words = [said] if isinstance(said, str) else [word for word in said if word != "null"]
    return " or ".join(
        {"string": "text", "object": "map", "array": "list", "integer": "number"}.get(word, word) for word in words
    )


def _default(value: JsonValue) -> str:
    return "" if value in ("", [], None) else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
