"""Statements by name. A database has its own, and reads the shared ones in its own spelling; read once."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

FILE: Final = "queries.sql"
_PART: Final = re.compile(r"^-- with: (\w+)$", re.MULTILINE)
_NAMED: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def statements_of(package: str, spell: Callable[[str], str] = str) -> dict[str, str]:
    """All that a database understands: the shared ones, spelled its way, and its own, which win."""
    shared, own = _blocks(__package__ or ""), _blocks(package)
    blocks = {name: spell(body) for name, body in shared.items()} | own
    return {name: _PART.sub(lambda found: blocks[found[1]], body) for name, body in blocks.items()}


def folder_of(package: str) -> Path:
    """Where its files are; `importlib.resources` would bring zip files along, a megabyte and a half for nothing."""
    return Path(str(import_module(package).__file__)).parent


def _blocks(package: str) -> dict[str, str]:
    parts = _NAMED.split((folder_of(package) / FILE).read_text(encoding="utf-8"))[1:]
    return {name: _bare(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _bare(body: str) -> str:
    kept = (line for line in body.splitlines() if line and (not line.startswith("--") or _PART.match(line)))
    return "\n".join(kept).rstrip(";")
