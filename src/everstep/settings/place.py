"""Where a store is: a file, or a database that other hosts reach too."""

from typing import Final
from urllib.parse import urlsplit

DATABASES: Final = ("postgresql", "postgres")
USUAL_FILE: Final = ".everstep/everstep.db"
"""Beside this is kept what belongs to one host: the log, the token, marks of tools."""


def scheme_of(store: str) -> str | None:
    """How an address begins; None for the name of a file."""
    return store.partition("://")[0] if "://" in store else None


def shown_store(store: str) -> str:
    """An address without its secrets; the name of a file as it is."""
    if scheme_of(store) is None:
        return store
    said = urlsplit(store)
    where = (said.netloc.rpartition("@")[2] or "localhost") + said.path
    return f"{said.scheme}://{where}"
