"""The statements that SQLite understands, by name. Nothing else in this folder holds SQL."""

from functools import cache

from everstep.adapters.stores.sql.statements import statements_of


@cache
def statements() -> dict[str, str]:
    """All of them."""
    return statements_of(__package__)


def sql(name: str) -> str:
    """One of them."""
    return statements()[name]
