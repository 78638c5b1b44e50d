"""`everstep tools`: what a step can call."""

from typing import Any, TypeAlias

import click

from everstep.domain.errors import EverstepError, NotFound
from everstep.domain.suggest import did_you_mean, suggest
from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.render import table
from everstep.doors.cli.session import Session, width
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import cut, safe, safe_lines
from everstep.wire.functions import function_schema

Json: TypeAlias = dict[str, Any]


@click.command(cls=Verb, epilog="everstep tools\neverstep tools file.write\neverstep tools check acme.deploy")
@click.argument("name", required=False)
@click.argument("checked", required=False, metavar="[NAME]")
@click.option("--all", "every", is_flag=True, help="With `check`: every family of tools.")
@click.option("--openai", is_flag=True, help="As function schemas that a model takes, in JSON.")
def tools(name: str | None, checked: str | None, *, every: bool, openai: bool) -> int:
    """List the tools, show one with its arguments, or `check` whether a family of tools keeps to the contract."""
    if name == "check":
        from everstep.doors.cli.tools_check import check_tools

        if checked is None and not every:
            raise click.UsageError("check which? name a tool, or say --all")
        return check_tools(None if every else checked)
    if checked is not None or every:
        raise click.UsageError("one tool at a time: everstep tools NAME")

    async def act(connection: Connection, session: Session) -> int:
        if openai:
            return await _as_functions(connection, session, name)
        if name is None:
            page = await ask(connection, "GET", path_of("tools"))
            if session.json:
                session.result_json(page)
            else:
                _list(session, page["items"])
            return 0
        tool = await _find(connection, name)
        if session.json:
            session.result_json(tool)
        else:
            for line in tool_page(tool):
                session.result(line)
        return 0

    return perform(Need.JUDGE, act)


async def _as_functions(connection: Connection, session: Session, name: str | None) -> int:
    names = (
        [one["name"] for one in (await ask(connection, "GET", path_of("tools")))["items"]] if name is None else [name]
    )
    found = [await _find(connection, one) for one in names]
    schemas = [function_schema(one["name"], one["description"], one["input_schema"]) for one in found]
    session.result_json(schemas if name is None else schemas[0])
    return 0


async def _find(connection: Connection, name: str) -> Json:
    try:
        return await ask(connection, "GET", path_of("tools", name))
    except EverstepError as error:
        if error.code != "not_found":
            raise
        known = [tool["name"] for tool in (await ask(connection, "GET", path_of("tools")))["items"]]
        raise NotFound(
            did_you_mean(f"no tool '{name}'", suggest(name, known)), what_to_do="list them: everstep tools"
        ) from None


def _list(session: Session, items: list[Json]) -> None:
    rows = [(tool["name"], tool["effect"], cut(_what(tool), max(width() - 40, 20))) for tool in items]
    for line in table(rows):
        session.result(line)
    session.say("more about one: everstep tools NAME; your own: everstep init", "dim")


def _what(tool: Json) -> str:
    """Its title, or the first line of its description where the title only says its name again."""
    title = str(tool.get("title") or "")
    again = f".{tool['name']}".endswith(f".{title}")
    return safe_lines(tool.get("description") or "")[0] if again else safe(title)


def tool_page(tool: Json) -> list[str]:
    """A tool on one screen."""
    first, *more = safe_lines(tool.get("description") or "")
    what = _what(tool)
    lines = [f"{tool['name']}   {what}".rstrip(), *([] if what == first else [first]), *more]
    lines += [
        f"effect {tool['effect']}, version {tool['version']}",
        "",
        "arguments",
        *_fields(tool.get("input_schema")),
    ]
    if tool.get("output_schema"):
        lines += ["", "output", *_fields(tool["output_schema"])]
    return lines


def _fields(schema: Json | None) -> list[str]:
    fields = (schema or {}).get("properties") or {}
    required = (schema or {}).get("required") or ()
    rows = []
    for name, of in fields.items():
        kind = of.get("type") or ("one of " + ", ".join(map(str, of["enum"])) if "enum" in of else "any")
        kind = " or ".join(kind) if isinstance(kind, list) else str(kind)
        more = "required" if name in required else f"default {of['default']!r}" if "default" in of else ""
        rows.append((f"  {name}", kind, more, safe(of.get("description") or "")))
    return table(rows) or [f"  {_without_fields(schema or {})}"]


def _without_fields(schema: Json) -> str:
    """What has no named fields: `array of string`, an `object` with any, or nothing at all."""
    kind, inner = schema.get("type"), schema.get("items") or schema.get("additionalProperties")
    if kind in {None, "object"} and not inner:
        return "none"
    return f"{kind} of {inner.get('type') or 'anything'}" if isinstance(inner, dict) else str(kind)
