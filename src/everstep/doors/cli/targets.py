"""What `run` is asked to carry out: a file, a name, or `module:attribute`; and the inputs as they were typed."""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from everstep.authoring.plan import Plan
from everstep.domain.errors import EverstepError, NotFound, PlanError
from everstep.domain.plan import PlanSpec
from everstep.domain.record import record
from everstep.domain.suggest import did_you_mean, suggest
from everstep.settings import Settings
from everstep.wire.inputs import BadTextError, parse_text_input
from everstep.wire.plan import PLAN_BYTES_MAX, read_plan

Json: TypeAlias = dict[str, Any]

ENDINGS: Final = (".plan.yaml", ".plan.yml", ".plan.json")
_MODULE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@record
class Target:
    """A plan to be carried out, as it was found."""

    said: str
    """What was typed: the same words carry it out again."""
    text: str | None = None
    file: str | None = None
    plan: Plan | None = None

    def body(self) -> Json:
        """How a request names it: files and code of whoever sits here are trusted."""
        if self.plan is not None:
            return {"plan": self.plan.to_dict(), "trusted": True}
        return {"plan_text": self.text, "file": self.file, "trusted": True}

    @property
    def spec(self) -> PlanSpec | None:
        """The plan itself, if it can be read."""
        if self.plan is not None:
            return self.plan.spec
        assert self.text is not None
        return read_plan(self.text, file=self.file).plan

    @property
    def tools(self) -> tuple[object, ...]:
        """Functions that the plan brings along."""
        return tuple(getattr(self.plan, "tools", ()))


def find_target(said: str, settings: Settings) -> Target:
    """The plan that these words mean; raises what a person can correct."""
    path = Path(said)
    if path.is_dir():
        raise folder_given(said, path)
    if path.is_file() or said.endswith((*ENDINGS, ".yaml", ".yml", ".json")) or "/" in said:
        return Target(said=said, text=read_text(path), file=said)
    if _MODULE.fullmatch(said):
        return Target(said=said, plan=from_module(said))
    found = find_named(said, settings.plans_dirs)
    return Target(said=said, text=read_text(found), file=os.path.relpath(found))


def read_text(path: Path) -> str:
    """The text of a plan file."""
    try:
        if path.stat().st_size > PLAN_BYTES_MAX:
            raise PlanError(f"'{path}' has more than {PLAN_BYTES_MAX // 1024} KiB, so it is no plan")
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise missing_file(path) from None
    except PermissionError:
        raise EverstepError(f"'{path}' may not be read", code="forbidden", what_to_do=f"chmod u+r '{path}'") from None
    except UnicodeDecodeError as error:
        raise PlanError(f"'{path}' is not a text file: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise NotFound(f"'{path}' cannot be read: {reason(error)}", what_to_do="name a plan file") from None


def missing_file(path: Path) -> NotFound:
    """The refusal of a path that leads nowhere, with the nearest one that does."""
    folder = path.parent
    names = [one.name for one in folder.iterdir() if one.is_file()] if folder.is_dir() else []
    guess = suggest(path.name, [name for name in names if name.endswith((".yaml", ".yml", ".json"))])
    message = did_you_mean(f"no file '{path}'", str(folder / guess) if guess else None)
    return NotFound(message, what_to_do="make a first plan: everstep init" if not names else f"ls {folder}")


def folder_given(said: str, path: Path) -> EverstepError:
    """The refusal of a folder, with the plans in it."""
    plans = sorted(one.name for one in path.iterdir() if one.name.endswith(ENDINGS))
    do = f"everstep run {path / plans[0]}" if plans else f"everstep init {said}"
    return EverstepError(f"'{said}' is a folder, a plan is a file", code="bad_request", what_to_do=do)


def find_named(name: str, folders: Iterable[Path]) -> Path:
    """`NAME.plan.yaml` in the folders of the configuration."""
    plans = {plan.name.partition(".plan.")[0]: plan for plan in reversed([*plan_files(folders)])}
    if name in plans:
        return plans[name]
    message = did_you_mean(f"no plan '{name}'", suggest(name, plans))
    do = f"everstep run {sorted(plans)[0]}" if plans else "everstep init"
    raise NotFound(message, what_to_do=f"name a file, a plan of this project, or module:attribute; as in: {do}")


def plan_files(folders: Iterable[Path]) -> Iterable[Path]:
    """Every plan file of these folders, nearest folder first."""
    for folder in folders:
        if folder.is_dir():
            yield from sorted(one for one in folder.iterdir() if one.name.endswith(ENDINGS) and one.is_file())


def importable(settings: Settings) -> None:
    """Modules of the project are found from its folder and from here."""
    for folder in (str(settings.base), str(Path.cwd())):
        if folder not in sys.path:
            sys.path.insert(0, folder)


def from_module(said: str) -> Plan:
    """The plan that a module holds."""
    module_name, _, attribute = said.partition(":")
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise NotFound(
                f"no module '{error.name}'", what_to_do="go to its folder, or say so: everstep -C DIR run …"
            ) from None
        raise NotFound(
            f"'{module_name}' needs the module '{error.name}'", what_to_do=f"pip install {error.name}"
        ) from error
    except EverstepError:
        raise
    except Exception as error:
        raise PlanError(f"'{module_name}' cannot be imported: {type(error).__name__}: {error}") from error
    known = [name for name, one in vars(found).items() if isinstance(one, Plan)]
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NotFound(
                did_you_mean(f"'{module_name}' has no '{attribute}'", suggest(attribute, known)),
                what_to_do=f"its plans: {', '.join(known)}" if known else "make one there: plan = Plan('name')",
            )
        found = getattr(found, part)
    if not isinstance(found, Plan):
        raise PlanError(f"'{said}' is no plan but of type {type(found).__name__}")
    return found


# --- inputs ---


def read_inputs(given: Sequence[str], file: str | None, plan: PlanSpec | None) -> Json:
    """Inputs as typed, in the types the plan declares. What does not fit stays text: the check names it."""
    schemas: Mapping[str, Json] = {one.name: one.schema for one in plan.inputs} if plan else {}
    inputs = _inputs_of(file) if file else {}
    for one in given:
        name, text, is_json = split_input(one)
        inputs[name] = _json_of(text, one) if is_json else typed(text, schemas.get(name, {}))
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
    inputs = _json_of(text_of_file(file), file)
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


def _json_of(text: str, said: str) -> Any:  # noqa: ANN401 -- any JSON
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError as error:
        raise EverstepError(
            f"'{said}' holds no JSON: {error}",
            code="inputs_invalid",
            what_to_do="""quote it for the shell: 'n:=[1, 2]'""",
        ) from None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def reason(error: OSError | UnicodeDecodeError) -> str:
    """An error of the system in its own words."""
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else "not UTF-8"
