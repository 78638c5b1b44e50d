"""The reference on PostgreSQL: `python -m bench.peers.bare_pg CELL URL`.

As `bench.bare_writer`, on one connection: whatever has queued up during the last commit goes into the next one, as one
`INSERT` of outcome i and intent i+1 of every task.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bench.bare_writer import Commit, Row, main

SCHEMA = """
CREATE TABLE bare (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task bigint NOT NULL, seq bigint NOT NULL, type text NOT NULL,
    body text NOT NULL
);
CREATE UNIQUE INDEX bare_of_task ON bare (task, seq);
"""
INSERT = """
INSERT INTO bare (task, seq, type, body) SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[])
"""


@contextmanager
def on_a_server(url: str) -> Iterator[Commit]:
    """One connection; rows of one commit are one statement."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(SCHEMA)

        def commit(rows: list[Row]) -> None:
            db.execute(INSERT, [list(column) for column in zip(*rows, strict=True)])

        yield commit


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], lambda: on_a_server(sys.argv[2])))
