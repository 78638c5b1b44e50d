"""Code of the project: modules with tools, and plans that are written in Python. What goes wrong in them is theirs."""

import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from traceback import extract_tb

from everstep.authoring.durable import DurableFunction
from everstep.authoring.plan import Plan
from everstep.bootstrap import plugin
from everstep.domain.errors import EverstepError, NotFound, SettingsError
from everstep.domain.suggest import did_you_mean, suggest
from everstep.facade.runnable import Runnable
from everstep.settings import Settings


def importable(settings: Settings) -> None:
    """Modules of the project are found from its folder and from here."""
    for folder in (str(settings.base), str(Path.cwd())):
        if folder not in sys.path:
            sys.path.insert(0, folder)


def load_tools(settings: Settings) -> None:
    """Import the modules with the project's tools; what goes wrong in them is named with its line.

    What they print is no result of a command.
    """
    for name in settings.tools:
        try:
            with redirect_stdout(sys.stderr):
                plugin(name)
        except Exception as error:
            raise SettingsError(
                f"cannot load the tools of '{name}'",
                what_to_do=f"correct the module, or `tools` in {Path(settings.source_of('tools')).name}",
                details={"why": trouble_in(error)},
            ) from error


def from_module(said: str) -> Runnable:
    """The plan, or the durable function, that a module holds."""
    module_name, _, attribute = said.partition(":")
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        raise _no_module(module_name, error) from error
    except EverstepError:
        raise
    except Exception as error:
        raise EverstepError(
            f"'{module_name}' cannot be imported",
            code="plan_invalid",
            what_to_do="correct the module",
            details={"why": trouble_in(error)},
        ) from error
    known = [name for name, one in vars(found).items() if isinstance(one, Plan | DurableFunction)]
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NotFound(
                did_you_mean(f"'{module_name}' has no '{attribute}'", suggest(attribute, known)),
                what_to_do=f"its plans: {', '.join(known)}" if known else "make one there: plan = Plan('name')",
            )
        found = getattr(found, part)
    if not isinstance(found, Plan | DurableFunction):
        raise EverstepError(
            f"'{said}' is no plan but of type {type(found).__name__}",
            code="plan_invalid",
            what_to_do=f"its plans: {', '.join(known)}" if known else "make one there: plan = Plan('name')",
        )
    return found


def _no_module(wanted: str, error: ModuleNotFoundError) -> EverstepError:
    if error.name and wanted.startswith(error.name):
        return NotFound(f"no module '{error.name}'", what_to_do="go to its folder, or say so: everstep -C DIR run …")
    return EverstepError(
        f"'{wanted}' needs the module '{error.name}'", code="plan_invalid", what_to_do=f"pip install {error.name}"
    )


def trouble_in(error: BaseException) -> str:
    """An exception of the user's code, with the last line of it that is theirs."""
    if isinstance(error, SettingsError) and error.__cause__ is not None:
        return trouble_in(error.__cause__)
    ours = str(Path(__file__).parents[2])
    frames = extract_tb(error.__traceback__)
    own = [one for one in frames if "importlib" not in one.filename and not one.filename.startswith(ours)]
    where = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own and not isinstance(error, SyntaxError) else ""
    return f"{type(error).__name__}: {error}{where}"
