"""A parsed file, and what a rule has to say about one of its lines."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

PACKAGE = "src/everstep/"


@dataclass(frozen=True)
class Problem:
    """One line for the reader: where, and what to do about it."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


@dataclass(frozen=True)
class Source:
    """One Python file; `path` is relative to the repository."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, path: str, text: str) -> "Source":
        return cls(path, text, ast.parse(text, path))

    @property
    def ours(self) -> bool:
        """Is it part of the product, rather than of its tests, examples or measurements?"""
        return self.path.startswith(PACKAGE)

    @property
    def room(self) -> str:
        """The top-level room of the product: `domain` for a file of that folder, `facade` for that file."""
        return self.path.removeprefix(PACKAGE).split("/")[0].removesuffix(".py") if self.ours else ""

    @property
    def module(self) -> str:
        dotted = self.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
        return dotted.replace("/", ".")

    @property
    def package(self) -> str:
        """What a leading dot in an import means here."""
        return self.module if self.path.endswith("/__init__.py") else self.module.rpartition(".")[0]

    def nodes(self, *kinds: type[Any]) -> Iterator[Any]:
        """All of these kinds, kind by kind."""
        for kind in kinds:
            yield from self._by_kind[kind]

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        """Walked once, for all rules."""
        found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in ast.walk(self.tree):
            found[type(node)].append(node)
        return found

    def problem(self, node: ast.AST, what: str) -> Problem:
        return Problem(self.path, getattr(node, "lineno", 1), what)


def read(root: Path, *folders: str) -> Iterator[Source]:
    for folder in folders:
        for file in sorted((root / folder).rglob("*.py")):
            yield Source.of(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
