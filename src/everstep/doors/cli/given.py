"""Values as they are typed on the command line: `K=V`, `K:=JSON`, `K=@FILE`, and files of JSON."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from everstep.domain.errors import EverstepError, NotFound
from everstep.domain.plan import PlanSpec
from everstep.wire.inputs import BadTextError, parse_text_input

Json: TypeAlias = dict[str, Any]


def read_inputs(given: Sequence[str], file: str | None, plan: PlanSpec | None) -> Json:
    """Inputs as typed, in the types the plan declares. What does not fit stays text: the check names it."""
    schemas: Mapping[str, Json] = {one.name: one.schema for one in plan.inputs} if plan else {}
    inputs = _inputs_of(file) if file else {}
    for one in given:
        name, text, is_json = split_input(one)
        inputs[name] = json_of(text, one) if is_json else typed(text, schemas.get(name, {}))
    return inputs


def split_input(given: str) -> tuple[str, str, bool]:
    """`K=V`, `K=@FILE`, or `K:=JSON`."""
    name, equals, text = given.partition("=")
    is_json = name.endswith(":")
    name = name.removesuffix(":").strip()
    if not equals or not name:
        raise EverstepError(
            f"'{given}' is no input", code="bad_request", what_to_do="write NAME=VALUE, NAME=@FILE or NAME:=JSON"
        )
    if text.startswith("@") and not is_json:
        return name, text_of_file(text[1:]), False
    return name, text, is_json


def typed(text: str, schema: Json) -> object:
    """A text as the type its input declares; what does not fit stays text."""
    try:
        return parse_text_input(schema, text)
    except BadTextError:
        return text


def _inputs_of(file: str) -> Json:
    inputs = json_of_file(file)
    if not isinstance(inputs, dict):
        raise EverstepError(
            f"'{file}' holds no JSON object", code="inputs_invalid", what_to_do='write {"NAME": VALUE, …}'
        )
    return inputs


def text_of_file(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"'{file}' cannot be read: {reason(error)}", what_to_do="name a readable text file") from None


def json_of_file(file: str) -> Any:  # noqa: ANN401 -- any JSON
    """What stands in a file, or on stdin."""
    return json_of(text_of_file(file), file, what_to_do="correct the file")


def json_of(text: str, said: str, what_to_do: str = "quote it for the shell: 'n:=[1, 2]'") -> Any:  # noqa: ANN401 -- as above
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError as error:
        raise EverstepError(
            f"'{said}' holds no JSON: {error}",
            code="inputs_invalid",
            what_to_do=what_to_do,
        ) from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def reason(error: OSError | UnicodeDecodeError) -> str:
    """An error of the system in its own words."""
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "not UTF-8"
