"""Connections are made while others work on the file."""

import subprocess
import sys
from pathlib import Path

import pytest

from everstep.adapters.stores.sqlite.connect import connect

HOLDS = """
import sqlite3, sys, time
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("CREATE TABLE t (n)")
other.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
time.sleep(0.3)
other.execute("ROLLBACK")
"""


@pytest.mark.parametrize("write", [False, True])
def test_whoever_comes_while_the_file_is_held_for_a_moment_waits(tmp_path: Path, write: bool) -> None:
    """As after a crash, when somebody else recovers the log: from the first look on, not only after the settings."""
    path = tmp_path / "s.db"
    command = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with connect(path, write=write) as connection:
            assert list(connection.execute("SELECT count(*) FROM t")) == [(0,)]
