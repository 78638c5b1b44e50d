"""Beats, on a connection of their own: a busy writer does not delay them."""

from contextlib import suppress
from typing import Final

import psycopg

from everstep.adapters.stores.postgres.connect import Connection, connect, translated
from everstep.adapters.stores.postgres.sql import sql
from everstep.domain.errors import LeaseLost
from everstep.domain.ids import Instant, Millis, WorkerId

ANSWER_S: Final = 5.0
"""A beat is small; there has to be time for another one before the lease is over."""


class Beats:
    """Used by the pulse's thread only."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None

    def beat(self, worker: WorkerId, at: Instant, age: Millis) -> None:
        """Renew the lease by the clock of the database; raises LeaseLost when it was fenced."""
        values = {"id": worker, "at": at, "age": age}
        with translated():
            try:
                changed = self._connected().execute(sql("beat_worker"), values).rowcount
            except psycopg.OperationalError:
                self.close()
                changed = self._connected().execute(sql("beat_worker"), values).rowcount
        if changed != 1:
            raise LeaseLost(f"{worker} was fenced")

    def close(self) -> None:
        """No more beats."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = connect(self._url, answer_s=ANSWER_S)
        return self._connection
