"""A server that all processes of a run of the suite share: whoever needs it first has it started; it ends with the run.

The module of a server is its keeper's program: `python tests/NAME.py SUITE NOTE` says where it is, in one line, and
keeps it until the suite is gone, however that ended.
"""

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil


def of_this_run(program: str) -> str:
    """Where this program says that its server is."""
    suite = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    began = int(psutil.Process(suite).create_time())
    note = Path(tempfile.gettempdir()) / f"everstep-{Path(program).stem}-{suite}-{began}"
    with note.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        said = file.read()
        if not said:
            keeper = subprocess.Popen(
                [sys.executable, program, str(suite), str(note)],
                stdout=subprocess.PIPE,
                start_new_session=True,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
            assert keeper.stdout is not None
            said = keeper.stdout.readline()
            keeper.stdout.close()
            keeper.returncode = 0  # it outlives this process, and nobody waits for it
            assert said, f"the server of {program} did not start"
            file.write(said)
    return said.strip()


@contextmanager
def while_the_suite_is_here(words: list[str]) -> Iterator[None]:
    """What a keeper does with its server: say in here where it is; leave when it is not needed any more."""
    suite, note = int(words[0]), Path(words[1])
    try:
        yield
        with suppress(psutil.NoSuchProcess):
            psutil.Process(suite).wait()
    finally:
        note.unlink(missing_ok=True)
