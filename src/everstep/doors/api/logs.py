"""The lines of one task out of the operator's log: best effort, since the log is cut and knows no order but its own."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

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
        lines = await asyncio.to_thread(lambda: [*lines_of(log, state.id)])
        shown: list[JsonObject] = [line for line in lines if line["n"] > after and wanted(line)]
        shown = shown[-tail:] if tail else shown[:limit]
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


def lines_of(log: Path, task: TaskId) -> Iterator[dict[str, Any]]:
    """Every line that is kept of a task, numbered from the oldest."""
    number = 0
    mark = json.dumps(task).encode()
    for path in reversed([log, *(log.with_name(f"{log.name}.{age}") for age in range(1, OLDER_MAX))]):
        if not path.is_file():
            continue
        with path.open("rb") as file:
            for raw in file:
                line = _parsed(raw) if mark in raw else None
                if line is not None and line.get("task") == task:
                    number += 1
                    yield {"n": number, **{name: line.get(name) for name in SHOWN}}


def _parsed(raw: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


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
