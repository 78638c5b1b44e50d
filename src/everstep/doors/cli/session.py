"""What one call of the command was asked to be like: global options, and what its terminal can do.

Results go to stdout; progress, prompts and messages to stderr. Nothing here knows tasks.
"""

import json
import os
import sys
from dataclasses import dataclass, field
from enum import Enum
from typing import IO, Any, Final

import click

WIDTH: Final = 100
_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class ReaderGone(Exception):
    """Nobody reads the result any more. Not an OSError: click would make exit code 1 of it."""


class Look(Enum):
    """How progress is shown."""

    LIVE = "live"
    PLAIN = "plain"
    JSON = "json"


@dataclass(slots=True)
class Session:
    """The global options; every command has the same."""

    store: str | None = None
    server: str | None = None
    token_file: str | None = None
    config: str | None = None
    json: bool = False
    plain: bool = False
    no_input: bool = False
    yes: bool = False
    no_color: bool = False
    quiet: bool = False
    verbose: int = 0
    bell: bool = True
    """Whether a task that needs somebody rings."""
    out: IO[str] = field(default_factory=lambda: sys.stdout)
    """Where results go, whatever becomes of stdout meanwhile."""

    @property
    def look(self) -> Look:
        """Frames for programs, lines for logs, a live footer for people."""
        if self.json:
            return Look.JSON
        dull = self.plain or "CI" in os.environ or os.environ.get("TERM") == "dumb"
        return Look.PLAIN if dull or not sys.stderr.isatty() else Look.LIVE

    @property
    def asks(self) -> bool:
        """Whether somebody is there who can be asked."""
        return not (self.json or self.no_input) and sys.stdin.isatty() and sys.stderr.isatty()

    def colors(self, stream: IO[str]) -> bool:
        """Whether this stream shows colours."""
        if self.no_color or os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR"):
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    def paint(self, text: str, style: str, stream: IO[str] | None = None) -> str:
        """Text in a style, where the stream shows it."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and self.colors(stream or sys.stderr) else text

    def result(self, text: str) -> None:
        """A line of the result."""
        self.pour(f"{text}\n")

    def pour(self, text: str) -> None:
        """A piece of the result, as it is."""
        try:
            self.out.write(text)
            self.out.flush()
        except BrokenPipeError as error:
            raise ReaderGone from error

    def result_json(self, value: object) -> None:
        """The result as one JSON object (a frame, in streams)."""
        self.result(compact(value))

    def say(self, text: str, style: str | None = None) -> None:
        """A message for the person at the terminal; programs and `-q` do not get it."""
        if not (self.json or self.quiet):
            self.warn(text, style)

    def warn(self, text: str, style: str | None = None) -> None:
        """A message that nobody should miss."""
        sys.stderr.write(f"{self.paint(text, style) if style else text}\n")
        sys.stderr.flush()


def compact(value: object) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def session() -> Session:
    """The session of the command being carried out."""
    found = click.get_current_context().find_root().obj
    assert isinstance(found, Session)
    return found


def width() -> int:
    """Columns of the terminal; `COLUMNS` wins."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH


def keep(context: click.Context, option: click.Parameter, value: Any) -> None:  # noqa: ANN401 -- click gives any type
    """Take a global option, wherever on the line it stands."""
    root = context.find_root()
    if root.obj is None:
        root.obj = Session()
    if context.get_parameter_source(option.name or "") is not click.core.ParameterSource.DEFAULT:
        setattr(root.obj, option.name or "", value)


def change_folder(_context: click.Context, _option: click.Parameter, folder: str | None) -> None:
    """`-C DIR`: act as if started there."""
    if folder is None:
        return
    try:
        os.chdir(folder)
    except OSError as error:
        raise click.BadParameter(f"cannot enter '{folder}': {(error.strerror or str(error)).lower()}") from error


def global_options(*, hidden: bool) -> list[click.Parameter]:
    """The options that every command takes."""
    shared: dict[str, Any] = {"callback": keep, "expose_value": False, "hidden": hidden}
    switch: dict[str, Any] = {**shared, "is_flag": True, "default": False}
    return [
        click.Option(
            ["-C", "chdir"], metavar="DIR", callback=change_folder, expose_value=False, is_eager=True, hidden=hidden,
            help="Act as if started in DIR.",
        ),
        click.Option(["--store"], metavar="FILE", **shared, help="The store [.everstep/everstep.db]."),
        click.Option(["--server"], metavar="URL", **shared, help="Speak to the engine that is served there."),
        click.Option(["--token-file"], metavar="FILE", **shared, help="The file with the token for it."),
        click.Option(["--config"], metavar="FILE", **shared, help="Read this everstep.toml."),
        click.Option(["--json"], **switch, help="JSON on stdout, one object or one per line."),
        click.Option(["--plain"], **switch, help="One line per event, no cursor moves."),
        click.Option(["--no-input"], **switch, help="Never ask; what needs someone ends with exit 8."),
        click.Option(["--yes"], **switch, help="Confirm without asking; `run` approves what waits for approval."),
        click.Option(["--no-color"], **switch, help="No colours (as NO_COLOR)."),
        click.Option(["-q", "--quiet"], **switch, help="Only what needs someone, and the last line."),
        click.Option(
            ["-v", "--verbose"], **shared, count=True, default=0, help="Attempts and logs; -vv: every event."
        ),
    ]  # fmt: skip
