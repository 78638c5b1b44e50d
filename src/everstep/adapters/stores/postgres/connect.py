"""How connections are opened, and the one place where foreign errors become ours.

No connection has a state of its own: behind pgbouncer the next transaction may meet another server process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict

from everstep.adapters.stores.postgres.sql import sql
from everstep.domain.errors import EverstepError, StoreFull, StoreRefused, Unavailable, Validation

Durability: TypeAlias = Literal["power", "process"]
T = TypeVar("T")

CONNECT_S: Final = 5
ANSWER_S: Final = 12.0
"""Longer than any of our statements may take: the server ends them after 10 s."""
VERSION_MIN: Final = 150_000
_PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": CONNECT_S,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "everstep",
}
_PROMISES: Final[dict[Durability, dict[str, tuple[str, ...]]]] = {
    "power": {
        "fsync": ("on",),
        "full_page_writes": ("on",),
        "synchronous_commit": ("on", "local", "remote_write", "remote_apply"),
        "data_sync_retry": ("off",),
    },
    "process": {},
}
_TABLE: Final[tuple[tuple[type[Exception], type[EverstepError], str], ...]] = (
    (pg.DiskFull, StoreFull, "no space is left for the database"),
    (pg.InvalidPassword, StoreRefused, "the database refuses the password"),
    (pg.InvalidAuthorizationSpecification, StoreRefused, "the database refuses the user"),
    (pg.InvalidCatalogName, StoreRefused, "there is no such database"),
    (pg.InsufficientPrivilege, StoreRefused, "the user of the database may not do this"),
    (pg.UndefinedTable, StoreRefused, "the database holds no store, or only a part of one"),
    (pg.ReadOnlySqlTransaction, Unavailable, "the database is read-only: it is not the primary"),
    (pg.QueryCanceled, Unavailable, "the database took too long to answer"),
    (pg.LockNotAvailable, Unavailable, "others write the same; the database took too long"),
    (pg.DeadlockDetected, Unavailable, "others write the same"),
    (psycopg.DataError, Validation, "the database cannot hold this value"),
    (psycopg.ProgrammingError, StoreRefused, "the database does not understand us"),
    (psycopg.Error, Unavailable, "the database does not answer"),
)


@contextmanager
def translated() -> Iterator[None]:
    """Ours instead of the driver's."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error


def translate(error: psycopg.Error) -> EverstepError:
    """What a foreign error means to the operator."""
    kind, text = next((kind, text) for foreign, kind, text in _TABLE if isinstance(error, foreign))
    said = " ".join(str(error).split())
    return kind(f"{text}: {said}" if said else text)


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """One that is given up when nobody answers: what stands between may take our bytes and have lost the server."""

    answer_s: float | None = None
    """So long an answer may take; None: as long as it takes."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        try:
            return super().wait(gen, interval, self.answer_s if timeout is None else timeout)
        except psycopg.OperationalError as error:
            if error.sqlstate is None:  # not the server's word: what comes later would answer something else
                self.pgconn.finish()
            raise


def connect(url: str, *, answer_s: float | None = ANSWER_S) -> Connection:
    """A connection that begins and ends its transactions itself; values are merged by the driver.

    Nothing is prepared on a server process that may be another one next time.
    """
    connection = Connection.connect(
        url,
        autocommit=True,
        prepare_threshold=None,
        cursor_factory=psycopg.ClientCursor,
        **{name: value for name, value in _PATIENCE.items() if name not in said_in(url)},
    )
    connection.answer_s = answer_s
    return connection


def said_in(url: str) -> dict[str, Any]:
    """The parts of an address; raises StoreRefused for one that cannot be read."""
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        said = " ".join(str(error).split())
        raise StoreRefused(f"the address of the database cannot be read: {said}") from None


def place_of(url: str) -> str:
    """An address without its secrets, for people."""
    said = said_in(url)
    host, port = said.get("host") or "local socket", said.get("port") or 5432
    return f"postgresql://{host}:{port}/{said.get('dbname') or said.get('user') or ''}"


def read(connection: Connection, name: str, values: Any = None) -> list[tuple[Any, ...]]:
    """All rows of the last of the statements of this name that has any."""
    cursor = connection.execute(sql(name), values)
    rows: list[tuple[Any, ...]] = []
    more: bool | None = True
    while more:
        if cursor.description:
            rows = cursor.fetchall()
        more = cursor.nextset()
    return rows


def verify(connection: Connection, durability: Durability) -> None:
    """The promises of the profile, or a refusal: never less than promised."""
    said = dict(read(connection, "get_durability"))
    if int(said["server_version_num"]) < VERSION_MIN:
        raise StoreRefused(
            f"PostgreSQL {said['server_version_num']} is too old", what_to_do="use PostgreSQL 15 or newer"
        )
    broken = [
        f"{name} = {said.get(name)}" for name, good in _PROMISES[durability].items() if said.get(name) not in good
    ]
    if broken:
        raise StoreRefused(
            f"the database does not keep the durability '{durability}': {', '.join(broken)}",
            code="durability_not_met",
            what_to_do='set these on the server, or accept less: durability = "process"',
        )
    if read(connection, "is_recovering") == [(True,)]:
        raise StoreRefused("the database is a standby", what_to_do="name the primary")
