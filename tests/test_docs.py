"""Every page can be reached, no link leads nowhere, and every block of code is one that this version understands.

What README and quickstart say is carried out as written (tests/e2e); elsewhere a block is often a part of something, so
it is held against what would read it: the plan reader, the settings, the command line, the names that a module offers.
"""

import ast
import importlib
import json
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import click
import pytest
import yaml

from everstep import Plan
from everstep.domain.events import Body, Unknown
from everstep.doors.cli.main import everstep
from everstep.settings import load_settings
from everstep.wire.plan import read_plan

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def named(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [name for part in (nav if isinstance(nav, list) else nav.values()) for name in named(part)]  # type: ignore[attr-defined]


def test_every_page_has_its_place() -> None:
    pages = {
        str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"
    }
    assert set(named(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])) == pages


def test_no_link_leads_nowhere() -> None:
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in LINK.findall(re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL))
        if "://" not in link and not link.startswith("#") and not (page.parent / link.partition("#")[0]).exists()
    ]
    assert dead == []


def test_what_the_architecture_names_is_there() -> None:
    """Rooms and files, as they are called from the package on; what is built is not looked for."""
    package = ROOT / "src/everstep"
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named_files = {*re.findall(r"`([a-z_]+(?:/[a-z_0-9.]*)+|[a-z_]+\.py)`", text)} - {"doors/dashboard/static"}
    places = {name: (ROOT / name, package / name, package / f"{name}.py") for name in named_files}
    lost = [name for name, where in places.items() if not any(path.exists() for path in where)]
    assert [name for name in lost if not [*package.rglob(name), *package.rglob(f"{name}.py")]] == []
    rooms = {path.name for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert {room for room in rooms if f"`{room}/`" not in text} == set()


def test_every_event_is_described() -> None:
    """By its type, with the fields that stand in its data."""
    page = (ROOT / "docs/reference/events.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.partition("## Types")[2].splitlines() if line.startswith("| `")]
    told = [name for row in rows for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", row)]
    assert sorted(told) == sorted(body.TYPE for body in get_args(Body) if body is not Unknown)


def as_plan(block: str, folder: Path) -> None:
    """A whole plan, its steps, or one of them; manifests of others need only be YAML."""
    documents = list(yaml.safe_load_all(block))
    if len(documents) > 1 or "apiVersion" in documents[0]:
        return
    said = documents[0] if isinstance(documents[0], dict) else {"steps": documents[0]}
    assert read_plan(json.dumps({"name": "documented", **said})).problems == ()
    if "name" in said:
        (folder / "documented.plan.yaml").write_text(block, encoding="utf-8")
        assert Plan.load(folder / "documented.plan.yaml").check() == ()


def as_settings(block: str, folder: Path) -> None:
    tomllib.loads(block)
    (folder / "everstep.toml").write_text(block, encoding="utf-8")
    load_settings({}, cwd=folder, env={})


def as_commands(block: str, _folder: Path) -> None:
    """Every `everstep` line is parsed as far as its command would be called; of a pipe, the first part."""
    for line in block.splitlines():
        words = shlex.split(line.partition("|")[0], comments=True)
        if words[:1] != ["everstep"]:
            continue
        command: click.Command = everstep
        rest, context = words[1:], click.Context(everstep, info_name="everstep")
        while isinstance(command, click.Group) and rest:
            context = command.make_context(command.name, rest, parent=context)
            left = [*context._protected_args, *context.args]  # what a group leaves to its command
            if not left:
                break
            _, found, rest = command.resolve_command(context, left)
            assert found is not None, line
            command = found
        command.make_context(command.name, rest, parent=context)


def as_python(block: str, _folder: Path) -> None:
    """It compiles, and what it takes from us is there."""
    tree = compile(block, "block", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(tree, ast.Module)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "everstep":
            module = importlib.import_module(str(node.module))
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []


def as_json(block: str, _folder: Path) -> None:
    json.loads(block)


def as_it_is(_block: str, _folder: Path) -> None:
    """Shown, not given to anything of ours."""


READERS: dict[str, Callable[[str, Path], None]] = {
    "yaml": as_plan,
    "toml": as_settings,
    "console": as_commands,
    "sh": as_commands,
    "python": as_python,
    "json": as_json,
    "text": as_it_is,
    "mermaid": as_it_is,
    "ini": as_it_is,
}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = [
    pytest.param(*block.groups(), id=f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, block.start()) + 1}")
    for page in PAGES
    for text in [page.read_text(encoding="utf-8")]
    for block in FENCED.finditer(text)
    if READERS.get(block[1]) is not as_it_is
]


@pytest.mark.parametrize(("language", "block"), BLOCKS)
def test_a_block_is_understood(language: str, block: str, tmp_path: Path) -> None:
    assert language in READERS, f"say what this block is: {', '.join(READERS)}"
    READERS[language](block, tmp_path)
