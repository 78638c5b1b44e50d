"""`500ms`, `30s`, `1h30m` as a type of option; seconds inside."""

from typing import Any

import click

from everstep.domain.quantities import parse_duration


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
