"""Failpoints: armed from the environment, harmless without it, typed refusals for what cannot be read."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from everstep.domain.errors import SettingsError, StoreError, StoreFull
from everstep.ports.fault import no_fault
from everstep.testing.crash import EXIT_CODE, VARIABLE, Armed, Failpoints, fault_from_env, parse

PROGRAM = """
from everstep.testing.crash import fault_from_env
fault = fault_from_env()
for _ in range(3):
    fault("intent.commit.before")
    print("passed", flush=True)
"""


def passages(armed: str) -> tuple[int, int]:
    """How often a small program got past the point, and how it ended."""
    environ = {**os.environ, VARIABLE: armed}
    ended = subprocess.run([sys.executable, "-c", PROGRAM], env=environ, stdout=subprocess.PIPE, check=False)
    return ended.stdout.count(b"passed"), ended.returncode


def test_without_the_variable_nothing_happens() -> None:
    assert fault_from_env({}) is no_fault
    assert fault_from_env({VARIABLE: " "}) is no_fault


@pytest.mark.parametrize(
    ("armed", "passed", "code"),
    [
        ("intent.commit.before:2=sigkill", 1, -signal.SIGKILL),
        ("intent.commit.before=exit", 0, EXIT_CODE),
        ("other.commit.before=exit; intent.commit.before:3=exit", 2, EXIT_CODE),
        ("intent.commit.before:4=sigkill", 3, 0),
        ("intent.commit.before:2=sleep(0.01)", 3, 0),
    ],
)
def test_it_strikes_at_the_given_passage(armed: str, passed: int, code: int) -> None:
    assert passages(armed) == (passed, code)


@pytest.mark.parametrize(("code", "kind"), [("store_full", StoreFull), ("store_unavailable", StoreError)])
def test_it_raises_what_a_store_would(code: str, kind: type[Exception]) -> None:
    """A code that several errors share means the general one."""
    fault = Failpoints(parse(f"journal.commit.before=raise({code})"))
    with pytest.raises(kind) as raised:
        fault("journal.commit.before")
    assert raised.type is kind
    fault("journal.commit.before")


def test_a_hang_hangs() -> None:
    fault = Failpoints(parse("call.execute.before=hang"))
    thread = threading.Thread(target=fault, args=("call.execute.before",), daemon=True)
    thread.start()
    thread.join(timeout=0.05)
    assert thread.is_alive()


def test_passages_from_several_threads_are_all_counted() -> None:
    struck: list[int] = []
    fault = Failpoints((Armed("feed.publish.after", 400, lambda: struck.append(1)),))

    def pass_often() -> None:
        for _ in range(100):
            fault("feed.publish.after")

    threads = [threading.Thread(target=pass_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert struck == [1]


@pytest.mark.parametrize(
    "text",
    ["nonsense", "a.b.before=explode", "a.b.before=sleep", "a.b.before=sleep(x)", "a.b.before=sleep(-1)",
     "a.b.before=sleep(nan)", "a.b.before:0=exit", "a.b.before=raise(nobody)", "a.b.before=exit(3)"],
)  # fmt: skip
def test_what_it_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        fault_from_env({VARIABLE: text})
    assert refused.value.code == "config_invalid"
    assert VARIABLE in str(refused.value)
