"""Failpoints: the engine's named points, armed from the environment of a process that is meant to die.

`EVERSTEP_FAILPOINTS="journal.commit.before:3=sigkill;call.execute.after=sleep(0.2)"`: at the third passage of the
first point the process is killed, at the first passage of the second it waits. Without the variable every point is a
no-op. Nothing here knows what a point means; the engine does not know who strikes.
"""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from everstep.domain.errors import EverstepError, SettingsError
from everstep.ports.fault import Fault, no_fault

VARIABLE: Final = "EVERSTEP_FAILPOINTS"
EXIT_CODE: Final = 86
"""Of a process that a failpoint ended: nothing else here ends with it."""

Strike: TypeAlias = Callable[[], object]
_ENTRY: Final = re.compile(
    r"(?P<point>[a-z_]+(?:\.[a-z_]+)+)(?::(?P<hit>[1-9]\d*))?=(?P<word>[a-z]+)(?:\((?P<with>.*)\))?"
)


@dataclass(frozen=True, slots=True)
class Armed:
    """Strike when `point` is passed for the `hit`-th time in this process."""

    point: str
    hit: int
    strike: Strike


class Failpoints:
    """Counts the passages of each point; they come from the loop and from the store's own threads."""

    def __init__(self, armed: tuple[Armed, ...]) -> None:
        self._armed = armed
        self._passed: dict[str, int] = {}
        self._lock = threading.Lock()

    def __call__(self, point: str) -> None:
        with self._lock:
            hit = self._passed[point] = self._passed.get(point, 0) + 1
        for armed in self._armed:
            if (armed.point, armed.hit) == (point, hit):
                armed.strike()


def fault_from_env(environ: Mapping[str, str] = os.environ) -> Fault:
    """What the environment asks for; a no-op when it asks for nothing."""
    text = environ.get(VARIABLE, "")
    return Failpoints(parse(text)) if text.strip() else no_fault


def parse(text: str) -> tuple[Armed, ...]:
    """`name:hit=word;…`, a missing hit means the first; raises SettingsError for what it cannot read."""
    return tuple(_armed(entry.strip()) for entry in text.split(";") if entry.strip())


def _armed(entry: str) -> Armed:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise _refused(entry, "it is not of the form name:hit=word")
    return Armed(found["point"], int(found["hit"] or 1), _strike(entry, found["word"], found["with"]))


def _strike(entry: str, word: str, argument: str | None) -> Strike:
    match word, argument:
        case "sigkill", None:
            return lambda: os.kill(os.getpid(), signal.SIGKILL)
        case "exit", None:
            return lambda: os._exit(EXIT_CODE)
        case "hang", None:
            return threading.Event().wait
        case "sleep", str(text):
            seconds = _seconds(entry, text)
            return lambda: time.sleep(seconds)
        case "raise", str(code):
            kind = next((kind for kind in _errors(EverstepError) if kind.code == code), None)
            if kind is None:
                raise _refused(entry, f"no error has the code {code!r}")
            return lambda: _throw(kind, entry)
        case _:
            raise _refused(entry, "it says none of sigkill, exit, hang, sleep(s), raise(code)")


def _seconds(entry: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 3600:
        raise _refused(entry, f"{text!r} is no number of seconds below an hour")
    return seconds


def _errors(kind: type[EverstepError]) -> Iterator[type[EverstepError]]:
    """A family of errors, general before special: a code that is inherited means the class that gave it."""
    yield kind
    for child in kind.__subclasses__():
        yield from _errors(child)


def _throw(kind: type[EverstepError], entry: str) -> None:
    raise kind(f"failpoint {entry}")


def _refused(entry: str, why: str) -> SettingsError:
    return SettingsError(f"{VARIABLE}: cannot read {entry!r}: {why}", what_to_do=f"correct {VARIABLE}")
