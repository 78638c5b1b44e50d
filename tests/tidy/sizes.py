"""Ceilings against tails. They are guards, not goals; a listed exception may only shrink."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.tidy.imports import own_imports
from tests.tidy.source import Problem, Source

SOURCE_LINES = 400
TEST_LINES = 600
FUNCTION_LINES = 60
PARAMETERS = 4
VERBS = 8
STORE_VERBS = 20
OWN_IMPORTS = 12
# Knowing everyone is their one job: the public names, the composition root, all handlers, all cases.
KNOW_EVERYONE = frozenset({
    "src/everstep/__init__.py", "src/everstep/bootstrap.py", "src/everstep/doors/api/handlers.py",
    "src/everstep/testing/conformance/store.py",
})  # fmt: skip


@dataclass(frozen=True)
class Size:
    """Something measured: `what` it is, and the most it may be."""

    path: str
    line: int
    name: str
    what: str
    size: int
    ceiling: int

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.path}::{self.name}" if self.name else self.path, self.what


def sizes(source: Source, modules: frozenset[str]) -> Iterator[Size]:
    """All that is measured in one file. `modules` are the product's own, to tell a module from a name in it."""
    lines = len(source.text.splitlines())
    yield Size(source.path, 1, "", "lines in a file", lines, TEST_LINES if in_tests(source) else SOURCE_LINES)
    if source.ours and source.path not in KNOW_EVERYONE:
        yield Size(source.path, 1, "", "own modules imported", len(own_imports(source, modules)), OWN_IMPORTS)
    for name, node in definitions(source.tree):
        if isinstance(node, ast.ClassDef):
            if is_protocol(node):
                ceiling = STORE_VERBS if node.name == "Store" else VERBS
                yield Size(source.path, node.lineno, name, "verbs of a Protocol", verbs(node), ceiling)
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        yield Size(source.path, node.lineno, name, "lines in a function", length, FUNCTION_LINES)
        if source.ours:  # in a test, parameters are fixtures
            yield Size(source.path, node.lineno, name, "positional parameters", positional(node), PARAMETERS)


def judge(measured: Iterable[Size], exceptions: Mapping[tuple[str, str], int]) -> Iterator[Problem]:
    seen: dict[tuple[str, str], int] = {}
    for size in measured:
        if size.size <= size.ceiling:
            continue
        seen[size.key] = max(size.size, seen.get(size.key, 0))
        allowed = exceptions.get(size.key, size.ceiling)
        if size.size > allowed:
            what = f"{size.name or 'the file'} has {size.size} {size.what}, the ceiling is {allowed}"
            yield Problem(size.path, size.line, what)
    for (place, what), allowed in exceptions.items():
        now = seen.get((place, what))
        if now is None:
            yield Problem(place, 1, f"the exception for {what} is no longer needed: remove it")
        elif now < allowed:
            yield Problem(place, 1, f"the exception for {what} may shrink from {allowed} to {now}")


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield f"{prefix}{child.name}", child
            yield from definitions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):  # no expression holds a definition
            yield from definitions(child, prefix)


def positional(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def is_protocol(node: ast.ClassDef) -> bool:
    return any("Protocol" in ast.unparse(base).split("[")[0].split(".") for base in node.bases)


def verbs(node: ast.ClassDef) -> int:
    return sum(
        isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        and not child.name.startswith("_")
        and not any(ast.unparse(mark) == "property" for mark in child.decorator_list)
        for child in node.body
    )


def in_tests(source: Source) -> bool:
    return source.path.startswith("tests/")
