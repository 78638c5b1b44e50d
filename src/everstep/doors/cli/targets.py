"""What `run` is asked to carry out: a file, a name, or `module:attribute`."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

from everstep.authoring.durable import DurableFunction
from everstep.bootstrap import plugin
from everstep.domain.errors import EverstepError, NotFound, PlanError
from everstep.domain.plan import PlanSpec
from everstep.domain.record import record
from everstep.domain.suggest import did_you_mean, suggest
from everstep.doors.cli.given import reason
from everstep.doors.cli.modules import from_module, load_tools
from everstep.facade.runnable import Runnable
from everstep.settings import Settings
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
    plan: Runnable | None = None

    def body(self) -> Json:
        """How a request names it: files and code of whoever sits here are trusted. A function is never sent."""
        if isinstance(self.plan, DurableFunction):
            return {"plan_name": self.plan.spec.name}
        if self.plan is not None:
            return {"plan": self.plan.to_dict(), "trusted": True}
        return {"plan_text": self.text or "\n", "file": self.file, "trusted": True}

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
    try:
        found = find_named(said, settings.plans_dirs)
    except NotFound:
        load_tools(settings)
        function = next((one for one in functions(settings) if one.spec.name == said), None)
        if function is None:
            raise
        return Target(said=said, plan=function)
    return Target(said=said, text=read_text(found), file=os.path.relpath(found))


def functions(settings: Settings) -> Iterable[DurableFunction]:
    """Durable functions of the project's modules."""
    for name in settings.tools:
        yield from (one for one in plugin(name).values((DurableFunction,)) if isinstance(one, DurableFunction))


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
    do = f"everstep run {min(plans)}" if plans else "everstep init"
    raise NotFound(message, what_to_do=f"name a file, a plan of this project, or module:attribute; as in: {do}")


def plan_files(folders: Iterable[Path]) -> Iterable[Path]:
    """Every plan file of these folders, nearest folder first."""
    for folder in folders:
        if folder.is_dir():
            yield from sorted(one for one in folder.iterdir() if one.name.endswith(ENDINGS) and one.is_file())
