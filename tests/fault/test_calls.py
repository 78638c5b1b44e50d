"""Struck at a system call of the store, from outside: killed there, or told that the disk is full, or broken."""

import json
import subprocess
import sys

import pytest

from tests.fault.calls import missing


@pytest.mark.req("C.2")
@pytest.mark.parametrize(
    ("fault", "call", "when"),
    [("F1c", "pwrite64", "60"), ("F3", "pwrite64", "60"), ("F3", "pwrite64", "70+"), ("F4", "fdatasync", "9")],
)
def test_struck_at(fault: str, call: str, when: str) -> None:
    """Nothing is lost, doubled or dark. `make torture` strikes at every one of them, and fails where it cannot.

    In a process without threads, because lives are forked from it.
    """
    if (why := missing()) is not None:
        pytest.skip(why)
    words = [sys.executable, "-m", "tests.fault.calls", fault, call, when]
    told = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    assert (told["verdict"], told["violations"]) == ("passed", [])
    assert told["kills"] == (1 if fault == "F1c" else 0)
    assert told["struck"] >= 1
