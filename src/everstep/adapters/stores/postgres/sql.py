"""The statements that PostgreSQL understands, by name. Nothing else in this folder holds SQL."""

import re
from functools import cache
from typing import Final

from everstep.adapters.stores.sql.statements import statements_of

_SPELLING: Final = (
    (re.compile(r"%"), "%%"),
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\bCROSS JOIN (\w+(?: \w+)?) ON\b"), r"JOIN \1 ON"),
    (re.compile(r"\bIS \?"), "IS NOT DISTINCT FROM ?"),
    (re.compile(r"\?"), "%s"),
    (re.compile(r"(?<!:):(\w+)"), r"%(\1)s"),
)
"""How the shared spelling is read here, in this order."""


@cache
def statements() -> dict[str, str]:
    """All of them."""
    return statements_of(__package__, spelled)


def spelled(text: str) -> str:
    """A shared statement as PostgreSQL and its driver want it."""
    for pattern, here in _SPELLING:
        text = pattern.sub(here, text)
    return text


def sql(name: str) -> str:
    """One of them."""
    return statements()[name]


@cache
def question(name: str, within_s: float, *, writes: bool = False) -> str:
    """A statement in a transaction of its own with its patience, in which nearly all only read: one message."""
    begin = sql("begin_telling" if writes else "begin_reading").replace("%(patience)s", str(int(within_s * 1000)))
    return ";\n".join((begin, sql(name), sql("end_reading")))
