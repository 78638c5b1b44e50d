"""`plan fmt`: the file's text and the text it should have; refuses what would be lost. And writing it."""

import sys
from pathlib import Path

from everstep.domain.errors import Conflict, EverstepError
from everstep.doors.cli.given import reason
from everstep.doors.cli.refusal import PlanRefused
from everstep.doors.cli.targets import read_text
from everstep.wire.fmt import format_json, format_yaml
from everstep.wire.plan import read_plan
from everstep.wire.show import to_json
from everstep.wire.yamltext import has_comments


def formatted(file: str, syntax: str | None, *, drop_comments: bool) -> tuple[str, str]:
    """The text of a plan file, before and after."""
    text = sys.stdin.read() if file == "-" else read_text(Path(file))
    name = "stdin" if file == "-" else file
    read = read_plan(text, file=name)
    if read.plan is None:
        raise PlanRefused(f"'{name}' cannot be read", [to_json(one) for one in read.problems], text=text, file=name)
    is_json = name.endswith(".json") or text.lstrip().startswith("{")
    if not is_json and not drop_comments and has_comments(text):
        raise Conflict(
            f"'{name}' holds comments, which would be lost",
            what_to_do=f"everstep plan fmt {file} --drop-comments, or leave it as it is",
        )
    to = syntax or ("json" if is_json else "yaml")
    return text, format_json(read.plan) if to == "json" else format_yaml(read.plan)


def write_file(file: str, text: str) -> None:
    """Write it, or say why not."""
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise EverstepError(
            f"cannot write '{file}': {reason(error)}", code="forbidden", what_to_do="name a file you may write"
        ) from error
