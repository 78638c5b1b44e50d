"""`500ms`, `30s`, `1h30m` as a type of option; seconds inside."""

import time
from typing import Any

import click

from everstep.domain.ids import Instant
from everstep.domain.quantities import parse_duration
from everstep.wire.times import from_text, to_text


class Length(click.ParamType[float]):
    """A length of time."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ANN401 -- click gives any type
        """Seconds."""
        millis = parse_duration(str(value))
        if millis is None:
            self.fail(f"'{value}' is not a duration, write 500ms, 30s, 1h30m", param, ctx)
        return millis / 1000


LENGTH = Length()


def begin_of(said: str | int | None) -> str:
    """From when on, as lines spell it: a time, or so long ago."""
    if said is None:
        return ""
    ago_ms = parse_duration(str(said))
    if ago_ms is not None:
        return to_text(Instant(round(time.time() * 1000) - ago_ms))
    try:
        return to_text(from_text(str(said)))
    except ValueError:
        raise click.UsageError(f"--since takes a time, or a duration such as 2h, not '{said}'") from None
