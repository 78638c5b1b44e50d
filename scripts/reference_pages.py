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
SHORT: Final = {
    "A fallback": "A `tool`, or a `value` that stands alone.",
    "`retry`": "A number alone is `times`; `retry: 0` tries nothing again.",
    "`approve`": "`true` asks in its own words, a text alone is `title`.",
    "`resources`": "Each a text, which is its `uri`, or a map.",
    "`defaults`": "What a step says itself wins.",
}
EXITS: Final = (
    "## Exit codes",
    "",
    "`run` and `watch` end as their task does. Which code of an error ends how: [errors](errors.md).",
    "",
    "| exit | means | exit | means |",
    "|---|---|---|---|",
    "| 0 | done; the task completed, also in part | 6 | store or server away, locked or not ready; port taken |",
    "| 1 | the task failed, or the command | 7 | the task was cancelled |",
    "| 2 | wrong usage | 8 | not finished: it waits for somebody, or `--timeout` is over |",
    "| 3 | plan, input, answer or setting invalid | 9 | conflict with the current state, or somebody was first |",
    "| 4 | not allowed | 70 | a bug in everstep; the report is named |",
    "| 5 | not found | 130 | interrupted by Ctrl-C |",
)
UNSAID: Final = {"undo": "how to take it back"}
"""What the schema has no room for: beside a reference nothing may be said."""
BINDINGS: Final = (
    "## Between `${` and `}`",
    "",
    "A text that is nothing but one `${…}` keeps the type of its value; within a longer text it becomes text. `$${`",
    "stands for `${` itself. Keys are never filled in, and what was filled in is not read again.",
    "",
    "| root | what it is |",
    "|---|---|",
    '| the id of a step, or its `bind` | its output: `${hits.results[0].url}`, `${hits["a-b"]}` |',
    "| `inputs` | the inputs of the task |",
    "| `steps.ID` | a step's `status` `error` `attempts` `duration` `tool_used` `skipped_reason` `counts` `approval` |",
    "| `task` | `id` `plan` `created_at` `status` |",
    "| `item`, `index` | within `for_each` |",
    "| `error` | within `fallback` and `finally`: what went wrong |",
    "| `secrets.NAME` | only in an argument that takes a secret |",
    "",
    "`== != < <= > >= in not in`, `and or not`, `x if c else y`, lists and parentheses; a condition is true or false",
    "(null counts as false). There is no arithmetic, no clock and no chance.",
    "",
    "| function | gives |",
    "|---|---|",
    "| `len(x)` | how many items, keys or characters |",
    "| `default(x, y)` | `y` where `x` is missing or null |",
    "| `join(list, separator)` | one text |",
    "| `json(x)`, `text(x)` | `x` as JSON; as text (a text as it is) |",
    "| `lower(x)`, `upper(x)`, `trim(x)` | that text, changed |",
)


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
        "each can also be given as an environment variable (`EVERSTEP_ENGINE__TASKS=8`: two underscores for a dot,",
        "commas in a list), or as `config` of an `Engine`. The file may stand in a parent folder too; after it come",
        "`[tool.everstep]` of the nearest `pyproject.toml` and your own `~/.config/everstep/config.toml`. What is said",
        "nearer wins, key by key: argument, environment, file, default. Relative paths count from the file that names",
        "them. A key that nobody knows is refused with its line and the closest name. `everstep config` shows what is",
        "in force and who said so; `everstep config schema` is the JSON Schema of the file, for your editor.",
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
        "people read. Completion: `everstep completion --help`.",
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
    parts += ["", *EXITS]
    return "\n".join(parts) + "\n"


def plan_page() -> str:
    """Every key of a plan file."""
    schema = plan_schema()
    parts = [
        "# Plan files",
        NOTE,
        "After this page you can write any plan. A plan is YAML or JSON; `everstep plan check` finds every problem at",
        "once, `everstep plan schema` prints the JSON Schema with your tools, for your editor. Keys in bold are",
        "required. Durations are texts such as `500ms`, `30s`, `1h30m`, `2d`, sizes such as `32KiB`, `512MB`.",
        "",
        "## The plan",
        "",
        *_keys(schema),
    ]
    definitions: Any = schema["definitions"]
    step = definitions["step"]
    tables = {
        "A step": step,
        "A fallback": definitions["fallback"],
        "`retry`": _map(step, "retry"),
        "`approve`": _map(step, "approve"),
        "`undo`": definitions["undo"],
        "`resources`": _map(step["properties"]["resources"], "items"),
        "`limits` of a step": _map(step, "limits"),
        "`limits` of the plan": _map(schema, "limits"),
        "`defaults`": _map(schema, "defaults"),
    }
    for title, keys in tables.items():
        parts += ["", f"## {title}", "", *([SHORT[title], ""] if title in SHORT else []), *_keys(keys)]
    return "\n".join([*parts, "", *BINDINGS]) + "\n"


def _with_children(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _with_children(f"{path} {name}", child)


def _help(command: click.Command, path: str) -> str:
    context = click.Context(command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH)
    return "\n".join(line.rstrip() for line in command.get_help(context).strip().splitlines())


def _map(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The long form of a key that has a short one too."""
    key: Mapping[str, Any] = schema.get("properties", schema)[name]
    forms = [key, *key.get("anyOf", ())]
    return next(one for one in forms if "properties" in one)


def _keys(schema: Mapping[str, Any]) -> Iterator[str]:
    yield "| key | what it is | means |"
    yield "|---|---|---|"
    required = schema.get("required", ())
    for name, key in schema["properties"].items():
        shown = f"**`{name}`**" if name in required else f"`{name}`"
        yield f"| {shown} | {_kind(key)} | {_cell(key.get('description') or UNSAID[name])} |"


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"] if word is not None)
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if "enum" in schema.get("items", ()):
        return f"list of {_kind(schema['items'])}"
    said = schema.get("type", "anything" if "$ref" not in schema else "object")
    words = [said] if isinstance(said, str) else [word for word in said if word != "null"]
    return " or ".join(
        {"string": "text", "object": "map", "array": "list", "integer": "number"}.get(word, word) for word in words
    )


def _default(value: JsonValue) -> str:
    return "" if value in ("", [], None) else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
