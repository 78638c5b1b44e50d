"""`everstep`: the one place where a command begins and ends.

Every refusal leaves here as text of one screen and as an exit code; what is our own bug as a report file.
"""

import os
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

import click

from everstep.domain.version import __version__
from everstep.doors.cli.session import ReaderGone, Session
from everstep.doors.cli.verbs import Doorway

EXIT_USAGE: Final = 2
EXIT_OUR_BUG: Final = 70
EXIT_INTERRUPTED: Final = 130
EXIT_PIPE_CLOSED: Final = 141
"""128 + SIGPIPE, as the shell shows a program whose reader went away."""


def _version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 -- click's signature
    if wanted:
        click.echo(f"everstep {__version__}")
        context.exit()


@click.group(
    cls=Doorway,
    help="Durable tasks for AI agents: plans of tool calls that survive crashes, ask when unsure, and go on.",
    epilog="New here? everstep demo",
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
@click.pass_context
def everstep(context: click.Context) -> None:
    """Carry the session to the command."""
    context.ensure_object(Session)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point."""
    code = _carry_out([*(sys.argv[1:] if arguments is None else arguments)])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_gone()
    sys.exit(code)


def _carry_out(arguments: list[str]) -> int:
    session = Session(json="--json" in arguments)  # what a refusal needs before the options are read
    try:
        ended = everstep.main(arguments, prog_name="everstep", standalone_mode=False, obj=session)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except (ReaderGone, BrokenPipeError):
        return _reader_gone()
    except Exception as error:  # noqa: BLE001 -- the last line of defence: nothing leaves as a stack trace
        from everstep.doors.cli.refusal import refuse

        return refuse(error, session, arguments)
    return ended if isinstance(ended, int) else 0


def _reader_gone() -> int:
    """`everstep ls | head`: whoever read has seen enough."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return EXIT_PIPE_CLOSED
