"""The statements of `queries.sql`, by name. Read once; nothing else in this folder holds SQL."""

import re
from functools import cache
from importlib.resources import files
from typing import Final

_NAMED: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def statements() -> dict[str, str]:
    """All of them."""
    text = (files(__package__) / "queries.sql").read_text(encoding="utf-8")
    parts = _NAMED.split(text)[1:]
    return {name: _bare(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def sql(name: str) -> str:
    """One of them."""
    return statements()[name]


def _bare(body: str) -> str:
    return "\n".join(line for line in body.splitlines() if line and not line.startswith("--")).rstrip(";")
