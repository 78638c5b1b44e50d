"""The journal of a PostgreSQL store as the checker reads one: plain SQL in, a SQLite file out.

Columns are copied as they are, by their names in the specification; nothing of the engine is used.
"""

import sqlite3
from pathlib import Path
from typing import Final

_ALL_TASKS: Final = """
SELECT num, id, owner, key, status, generation, epoch, worker, last_seq, recoveries, done, started_at, ended_at, outcome
FROM tasks
"""
_TABLES: Final = (
    """CREATE TABLE tasks (num, id, owner, key, status, generation, epoch, worker, last_seq, recoveries, done,
                           started_at, ended_at, outcome)""",
    "CREATE TABLE events (id, task, seq, at, type, step, body)",
    "CREATE TABLE pauses (id, task, status)",
)
_COPIES: Final = (
    (_ALL_TASKS, "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    ("SELECT id, task, seq, at, type, step, body FROM events", "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)"),
    ("SELECT id, task, status FROM pauses", "INSERT INTO pauses VALUES (?, ?, ?)"),
)


def dump(url: str, file: Path) -> Path:
    """Copy what the checker needs, as of one moment."""
    import psycopg

    file.unlink(missing_ok=True)
    copy = sqlite3.connect(file)
    with psycopg.connect(url, prepare_threshold=None) as source, copy:
        source.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for table in _TABLES:
            copy.execute(table)
        for question, keep in _COPIES:
            copy.executemany(keep, source.execute(question))
    copy.close()
    return file
