"""The statements of `queries.sql`, by name. Read once; nothing else in this folder holds SQL."""

import re
from functools import cache
from importlib.resources import files
from typing import Final

_PART: Final = re.compile(r"^-- with: (\w+)$", re.MULTILINE)
_NAMED: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def statements() -> dict[str, str]:
    """All of them."""
    text = (files(__package__) / "queries.sql").read_text(encoding="utf-8")
    parts = _NAMED.split(text)[1:]
    blocks = {name: _bare(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}
    return {name: _PART.sub(lambda found: blocks[found[1]], body) for name, body in blocks.items()}


def sql(name: str) -> str:
    """One of them."""
    return statements()[name]


def _bare(body: str) -> str:
    kept = (line for line in body.splitlines() if line and (not line.startswith("--") or _PART.match(line)))
    return "\n".join(kept).rstrip(";")
