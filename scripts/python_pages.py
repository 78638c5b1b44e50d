"""The pages that are read off Python itself: the public names, and the examples."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from scripts.reference_pages import NOTE

ROOT: Final = Path(__file__).resolve().parent.parent
MODULES: Final = ("everstep", "everstep.tools", "everstep.testing", "everstep.mcp", "everstep.errors")


def python_page() -> str:
    """Every public name, with the first line it says of itself; of classes, what can be asked of them."""
    parts = [
        "# Python",
        NOTE,
        "After this page you know every public name. `everstep.blocking` has `Engine`, `Task` and `Pause` with the",
        "same methods without `await`. Programs to start from: [examples](../examples.md).",
        "",
    ]
    for name in MODULES:
        parts += [f"## {name}", "", *_names(name), ""]
    return "\n".join(parts)


def _names(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    public = getattr(module, "__all__", None) or [one for one in dir(module) if one[0].isupper()]
    told = [(one, getattr(module, one)) for one in sorted(public, key=str.lower)]
    yield from ("| name | what it is |", "|---|---|")
    yield from (f"| `{one}` | {_said(value)} |" for one, value in told)
    for one, value in told:
        if name == "everstep" and inspect.isclass(value) and not issubclass(value, BaseException):
            yield from _members(one, value)


def _members(name: str, owner: type) -> Iterator[str]:
    members = [(one, value) for one, value in inspect.getmembers(owner) if not one.startswith("_") and _said(value)]
    rows = [
        f"| `{one}{_signature(value)}` | {_said(value)} |" for one, value in members if inspect.isroutine(value)
    ] + [f"| `{one}` | {_said(value)} |" for one, value in members if isinstance(value, property)]
    said = "unless the family says otherwise" if name == "ToolAdapter" else "what it does"
    plain = _plain(owner)
    if rows or plain:
        yield from ("", f"### {name}")
    if rows:
        yield from ("", f"| call | {said} |", "|---|---|", *rows)
    if plain:
        yield from ("", f"{'Also' if rows else 'Has'} {', '.join(f'`{one}`' for one in plain)}.")


def _plain(owner: type) -> list[str]:
    """What its name says all about: fields, and properties without words."""
    fields = [*getattr(owner, "__dataclass_fields__", ()), *getattr(owner, "__struct_fields__", ())]
    silent = [one for one, value in inspect.getmembers(owner) if isinstance(value, property) and not _said(value)]
    return sorted({one for one in [*fields, *silent] if not one.startswith("_")})


def _signature(value: object) -> str:
    """Names and defaults; types are in the code, and in the editor."""
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except ValueError:
        return "(…)"
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    return str(inspect.Signature(bare)).replace("|", "\\|")


def _said(value: object) -> str:
    """The first line of its own docstring; constants and aliases have none."""
    own = inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, property)
    said = inspect.getdoc(value) if own or type(value).__module__.startswith("everstep") else None
    first = re.split(r"\n\s*\n", said or "")[0]
    return " ".join(first.split()).replace("|", "\\|")


def examples_page() -> str:
    """The question each example opens with."""
    files = sorted((ROOT / "examples").glob("[0-9]*.py"))
    rows = [f"| [{path.stem}](../examples/{path.name}) | {_question(path)} |" for path in files]
    parts = [
        "# Examples",
        NOTE,
        "After this page you have a program to start from. Each is one file that asks a question, answers it by",
        "doing it, and ends with what it has shown; the suite carries out every one.",
        "",
        "| example | question |",
        "|---|---|",
        *rows,
        "",
        "Larger ones: two [agents](../examples/agents/stage.py) that run offline against a scripted model, and a",
        "[family of tools](../examples/weather_tools/weather.py) as a package of its own.",
    ]
    return "\n".join(parts) + "\n"


def _question(path: Path) -> str:
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(said.partition("\n\n")[0].split())
