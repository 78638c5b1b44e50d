"""Numbered SQL files of a database, each with a way back."""

import re
from functools import cache
from hashlib import sha256
from typing import Final

from everstep.adapters.stores.sql.statements import folder_of
from everstep.domain.errors import StoreRefused
from everstep.domain.record import record

_NAME: Final = re.compile(r"(\d{4})_(\w+)\.sql")


@record
class Migration:
    """One step forward, and the way back."""

    number: int
    name: str
    up: str
    down: str

    @property
    def checksum(self) -> str:
        """Of what was applied."""
        return sha256(self.up.encode()).hexdigest()


def refuse_first(version: int) -> None:
    """The way back ends with the first schema: before that there is no store."""
    if version <= 1:
        raise StoreRefused(
            f"there is no older schema than {version}", what_to_do="nothing: every program knows this one"
        )


@cache
def migrations_of(package: str) -> tuple[Migration, ...]:
    """All of them, in order, without a gap."""
    folder = folder_of(package) / "migrations"
    found = []
    for entry in folder.iterdir():
        named = _NAME.fullmatch(entry.name)
        if named:
            down = (folder / f"{entry.name[:-4]}.down.sql").read_text(encoding="utf-8")
            up = entry.read_text(encoding="utf-8")
            found.append(Migration(number=int(named[1]), name=named[2], up=up, down=down))
    found.sort(key=lambda one: one.number)
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    return tuple(found)
