"""What went wrong, as one screen and an exit code: what, why, and the command that helps. Nobody else says so."""

import os
import platform
import tempfile
import traceback
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import EverstepError, PlanError
from everstep.domain.problem import Problem, Severity
from everstep.domain.suggest import suggest
from everstep.domain.version import __version__
from everstep.doors.cli.session import Session, compact, width
from everstep.doors.cli.verbs import UnknownCommand
from everstep.doors.cli.words import cells, safe
from everstep.doors.errors import error_object, refusal_of
from everstep.wire.show import show
from everstep.wire.source import Source

Json: TypeAlias = dict[str, Any]

EXIT_USAGE: Final = 2
EXIT_OUR_BUG: Final = 70
STREAMS: Final = frozenset({"run", "watch", "demo"})
"""Commands whose `--json` is a stream: its last line is always a result."""
_FIELDS: Final = ("file", "line", "column", "end_column", "hint", "suggestion")


class PlanRefused(EverstepError):
    """A plan or its inputs have problems; the text they stand in is at hand, so they can be shown in it."""

    code = "plan_invalid"

    def __init__(
        self,
        message: str,
        problems: list[Json],
        *,
        text: str | None = None,
        file: str | None = None,
        cure: str = "correct the plan; nothing was started",
    ) -> None:
        wrong = [one for one in problems if one.get("severity") != Severity.WARNING]
        inputs = bool(wrong) and all(one["code"].startswith("input.") for one in wrong)
        names = [one["path"].rpartition("/")[2] for one in wrong if one["code"] == "input.missing"]
        give = " ".join(f"-i {name}=VALUE" for name in names) or "-i NAME=VALUE, or -i NAME:=JSON for a list or a map"
        super().__init__(
            message,
            code="inputs_invalid" if inputs else "plan_invalid",
            what_to_do=f"give the inputs: {give}" if inputs else cure,
            details={"problems": [*problems]},
        )
        self.problems = problems
        self.text = text
        self.file = file

    def shown(self) -> str:
        """The problems, each with its line."""
        problems = [problem_of(one, self.file) for one in self.problems]
        return show(problems, Source(self.text, self.file) if self.text is not None else None)


def problem_of(given: Json, file: str | None) -> Problem:
    """A problem from its JSON."""
    fields: Json = {name: given.get(name) for name in _FIELDS}
    if given["code"].startswith("input."):  # of the command line, not of the file
        return Problem(code=given["code"], message=given["message"], path="", suggestion=given.get("suggestion"))
    return Problem(
        code=given["code"],
        message=given["message"],
        path=given.get("path") or "",
        severity=Severity(given.get("severity") or "error"),
        **{**fields, "file": file or fields["file"]},
    )


def refuse(error: Exception, session: Session, arguments: list[str]) -> int:
    """Say it, and return the exit code."""
    match error:
        case click.UsageError():
            return _usage(error, session)
        case EverstepError():
            return _known(error, session, arguments)
        case click.ClickException():
            return _known(EverstepError(error.message, code="bad_request"), session, arguments)
        case _:
            return _our_bug(error, session, arguments)


def _known(error: EverstepError, session: Session, arguments: list[str]) -> int:
    code = refusal_of(error).exit
    if session.json:
        _say_json(error_object(error), code, session, arguments)
    for line in lines_of(error, session):
        session.warn(line)
    if session.verbose > 1:
        session.warn("".join(traceback.format_exception(error)).rstrip())
    return code


def lines_of(error: EverstepError, session: Session) -> Iterable[str]:
    """The screen of a refusal."""
    if isinstance(error, PlanRefused):
        yield error.shown().rstrip("\n")
        yield ""
    elif isinstance(error, PlanError) and error.problems:
        yield show(error.problems).rstrip("\n")
        yield ""
    yield headline(error.message, error.code, session)
    why = error.details.get("why")
    if isinstance(why, str):
        yield f"  why: {safe(why)}"
    yield f"  do:  {safe(error.what_to_do)}"


def headline(message: str, code: str, session: Session) -> str:
    """`error: what happened      [code]`."""
    text = f"error: {safe(message)}"
    gap = max(min(width(), 76) - cells(text) - len(code) - 2, 3)
    return (
        f"{session.paint('error:', 'red')}{text.removeprefix('error:')}{' ' * gap}{session.paint(f'[{code}]', 'dim')}"
    )


def _usage(error: click.UsageError, session: Session) -> int:
    context = error.ctx
    command = context.command_path if context is not None else "everstep"
    message = " ".join(error.format_message().split()).rstrip(".")
    message = message[:1].lower() + message[1:]
    bare = isinstance(error, click.exceptions.NoArgsIsHelpError)
    if bare:
        message = "missing command"
    guess = error.suggestion if isinstance(error, UnknownCommand) else None
    if isinstance(error, click.NoSuchOption):
        known = [name for param in (context.command.params if context else ()) for name in param.opts]
        guess = error.possibilities[0] if error.possibilities else suggest(error.option_name, known)
        message = f"no option '{error.option_name}'"
    if session.json:
        refused = EverstepError(message, code="bad_request", what_to_do=f"{command} --help")
        session.result(compact({"error": error_object(refused)}))
    elif bare and context is not None:
        session.warn(context.get_help())
        return EXIT_USAGE
    session.warn(headline(message, "usage", session))
    if guess:
        session.warn(f"  why: did you mean '{guess}'?")
        session.warn(f"  do:  {command} {guess}{'' if guess.startswith('-') else ' --help'}")
    else:
        session.warn(f"  do:  {command} --help")
    return EXIT_USAGE


def _say_json(error: Json, code: int, session: Session, arguments: list[str]) -> None:
    if STREAMS & set(arguments):
        session.result_json({"type": "result", "ok": False, "exit_code": code, "error": error})
    else:
        session.result_json({"error": error})


def _our_bug(error: Exception, session: Session, arguments: list[str]) -> int:
    report = write_report(error, arguments)
    refused = EverstepError(
        f"a bug in everstep: {type(error).__name__}: {error}",
        code="internal",
        what_to_do=f"nothing recorded is lost; please report it with {report}",
        details={"report": report},
    )
    return _known(refused, session, arguments)


def write_report(error: Exception, arguments: list[str]) -> str:
    """What a maintainer needs, in a file of its own; inputs are not in it."""
    shown = [word if not _carries_value(arguments, at) else "…" for at, word in enumerate(arguments)]
    text = "".join((
        f"everstep {__version__}, Python {platform.python_version()}, {platform.platform()}\n",
        f"everstep {' '.join(shown)}\n\n",
        *traceback.format_exception(error),
    ))  # fmt: skip
    handle, path = tempfile.mkstemp(prefix="everstep-bug-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _carries_value(arguments: list[str], at: int) -> bool:
    return at > 0 and arguments[at - 1] in ("-i", "--value", "--set", "--note") and arguments[at] != "--"
