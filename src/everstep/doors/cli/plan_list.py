"""`plan ls`: every plan of the operator's folders, also one that cannot be read, and every durable function."""

import os
from typing import Any, Final, TypeAlias

from everstep.domain.errors import EverstepError
from everstep.doors.api.sources import plan_files
from everstep.doors.cli.connect import Opening
from everstep.doors.cli.render import table
from everstep.doors.cli.session import width
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.words import cut, plural, safe
from everstep.settings import Settings

Json: TypeAlias = dict[str, Any]

OTHER_COLUMNS: Final = 44
"""What of a line is not its title."""


async def find_all(opening: Opening) -> list[Json]:
    """As `GET /v1/plans` lists them, and those that it leaves out; each with what is wrong with it."""
    connection = await opening.remembering()
    rows: dict[str, Json] = {one["name"]: one for one in (await ask(connection, "GET", path_of("plans")))["items"]}
    files = {} if opening.settings.server else _files(opening.settings)
    return [
        {
            "name": name,
            "title": None,
            **rows.get(name, {}),
            **await _judged(connection, name),
            "file": files.get(name),
        }
        for name in sorted(rows.keys() | files.keys())
    ]


def _files(settings: Settings) -> Json:
    return {name: os.path.relpath(file) for name, file in plan_files(settings.plans_dirs).items()}


async def _judged(connection: Connection, name: str) -> Json:
    try:
        found = await ask(connection, "POST", path_of("plans", "check"), {"plan_name": name})
    except EverstepError as error:
        refused = {"code": error.code, "severity": "error", "message": error.message}
        return {"valid": False, "steps": None, "problems": [refused]}
    steps = (found.get("summary") or {}).get("steps")
    return {"valid": found["valid"], "steps": steps, "problems": found["problems"]}


def lines_of(found: list[Json]) -> list[str]:
    """One line each: its name, how long it is, what it is called, what is wrong with it."""
    return table([_row(one) for one in found])


def _row(one: Json) -> tuple[str, ...]:
    title = cut(safe(one["title"] or one.get("description") or ""), max(width() - OTHER_COLUMNS, 20))
    wrong = plural(len(one["problems"]), "warning" if one["valid"] else "problem") if one["problems"] else ""
    return safe(one["name"]), _length(one["steps"]), title, wrong


def _length(steps: int | None) -> str:
    """A durable function says its steps while it makes them."""
    return "" if steps is None else plural(steps, "step") if steps else "function"
