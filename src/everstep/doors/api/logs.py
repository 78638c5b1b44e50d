"""The lines of one task out of the operator's log: best effort, since the log is cut and knows no order but its own."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.json import Decoder

from everstep.domain.errors import Validation
from everstep.domain.ids import TaskId
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing, find_task
from everstep.doors.api.request import Response, limit_in, number_in, reply

LINES: Final = 200
LINES_MAX: Final = 1000
WAIT_MAX_S: Final = 25
LOOK_S: Final = 0.25
OLDER_MAX: Final = 9
LEVELS: Final = ("debug", "info", "warning", "error")
SHOWN: Final = ("at", "step", "attempt", "level", "message", "fields")


async def read(back: Backing, asked: Asked) -> Response:
    """Lines of a task, of one of its steps, of one attempt; `after` is the number of the last one seen.

    With `tail` it begins with so many of the last ones.
    """
    state = await find_task(back, asked)
    after = number_in(asked.query, "after", 0, most=2**53)
    limit, tail = limit_in(asked.query, LINES, most=LINES_MAX), number_in(asked.query, "tail", 0, most=LINES_MAX)
    wanted = _filter(asked)
    wait_s = number_in(asked.query, "wait", 0, most=WAIT_MAX_S)
    log, until = back.settings.log_path, time.monotonic() + wait_s
    while True:
        seen = _size(log)
        shown: list[JsonObject] = await asyncio.to_thread(
            lambda: _first(filter(wanted, lines_of(log, state.id, after)), limit, tail)
        )
        if shown or not await _grown(log, seen, until):
            break
    return reply({"items": [*shown], "next_after": shown[-1]["n"] if shown else after})


async def _grown(log: Path, seen: int, until: float) -> bool:
    """Whether somebody wrote into the log before the time was up."""
    while time.monotonic() < until:
        await asyncio.sleep(LOOK_S)
        if _size(log) != seen:
            return True
    return False


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except OSError:
        return 0


def _first(fitting: Iterator[dict[str, Any]], limit: int, tail: int) -> list[JsonObject]:
    """The first of them, or the last; nothing is read beyond what is shown."""
    return [*deque(fitting, tail)] if tail else [*islice(fitting, limit)]


def lines_of(log: Path, task: TaskId, after: int = 0) -> Iterator[dict[str, Any]]:
    """Every line that is kept of a task, numbered from the oldest; those up to `after` are only counted."""
    number = 0
    mark = json.dumps(task).encode()
    for path in reversed([log, *(log.with_name(f"{log.name}.{age}") for age in range(1, OLDER_MAX))]):
        if not path.is_file():
            continue
        with path.open("rb") as file:
            for raw in file:
                if mark not in raw or _task_of(raw) != task:
                    continue
                number += 1
                if number > after:
                    line = json.loads(raw)
                    yield {"n": number, **{name: line.get(name) for name in SHOWN}}


class _Of(Struct):
    """Of whom a line tells; nothing else of it is read."""

    task: str | None = None


_of: Final = Decoder(_Of)


def _task_of(raw: bytes) -> str | None:
    try:
        return _of.decode(raw).task
    except ValueError:  # half a line, or somebody else's
        return None


def _filter(asked: Asked) -> Callable[[dict[str, Any]], bool]:
    step, attempt, level = (asked.query.get(name) for name in ("step", "attempt", "level"))
    if level is not None and level not in LEVELS:
        raise Validation(f"'level' must be one of {', '.join(LEVELS)}")
    least = LEVELS.index(level) if level else 0

    def fits(line: dict[str, Any]) -> bool:
        loud = line["level"] in LEVELS and LEVELS.index(line["level"]) >= least
        of_step = step is None or line["step"] == step
        return loud and of_step and (attempt is None or str(line["attempt"]) == attempt)

    return fits
