"""One word per idea: the twins are refused as names, and as nouns in prose."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import PurePosixPath

from tests.tidy.source import Problem, Source

INSTEAD = {
    "job": "task",
    "execution": "task or attempt",
    "instance": "task",
    "node": "step",
    "activity": "step",
    "operator": "tool",
    "dag": "plan",
    "interrupt": "pause",
    "park": "pause",
    "tenant": "owner",
    "workflow": "plan (workflow is a word of the MCP door)",
}
EMPTY = frozenset({"util", "helper", "common", "misc", "manager", "service"})  # say nothing about what is inside
FILE_NAMES = EMPTY | {"base"}

# Prose may say "to run" and "for instance"; after one of these words it would be a noun.
NOUN = re.compile(
    r"\b(?:an?|the|this|each|every|another|per)\s+(run|job|execution|instance|node|activity|dag|tenant|workflow)s?\b",
    re.IGNORECASE,
)
QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"")

# Spellings that are not ours to choose: (files, word).
FIXED = (
    ("src/everstep/domain/actors.py", "service"),  # a kind of actor
    ("src/everstep/adapters/stores/*", "execution"),  # the view task_executions
    ("src/everstep/adapters/temporal/*", "*"),  # Temporal's own vocabulary
    ("src/everstep/wire/plan*.py", "node"),  # PyYAML composes nodes
    ("src/everstep/doors/mcp/*", "workflow"),
    ("src/everstep/mcp.py", "workflow"),
)


def names(source: Source) -> Iterator[Problem]:
    """Every name that a file of the product gives to something."""
    if not source.ours:
        return
    for node, name in given(source):
        for word in split(name):
            if (word in INSTEAD or word in EMPTY) and not fixed(source.path, word):
                better = f"say {INSTEAD[word]}" if word in INSTEAD else "say what it does"
                yield source.problem(node, f"{name}: not {word!r}, {better}")


def prose(source: Source) -> Iterator[Problem]:
    """Docstrings and comments of the product."""
    if not source.ours:
        return
    for first, text in spoken(source):
        for offset, line in enumerate(text.splitlines()):
            for found in NOUN.finditer(QUOTED.sub("", line)):
                word = found[1].lower()
                if not fixed(source.path, word):
                    better = INSTEAD.get(word, "task")
                    yield Problem(source.path, first + offset, f"{found[0]!r}: not {word!r}, say {better}")


def file_names(path: str) -> Iterator[Problem]:
    for part in PurePosixPath(path).parts:
        if singular(part.removesuffix(".py").lower()) in FILE_NAMES:
            yield Problem(path, 1, f"{part!r} says nothing about what is inside: name the idea")


GIVING = (
    ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.arg, ast.Name, ast.Attribute,
    ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.alias,
)  # fmt: skip


def given(source: Source) -> Iterator[tuple[ast.AST, str]]:
    for node in source.nodes(*GIVING):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node, name
            case ast.alias(asname=str(name)):
                yield node, name
            case _:
                pass


def spoken(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        if ast.get_docstring(node, clean=False):
            text = node.body[0]
            assert isinstance(text, ast.Expr)
            assert isinstance(text.value, ast.Constant)
            yield text.lineno, str(text.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def split(name: str) -> list[str]:
    """`maxJobsOf_HTTPNode` → max, job, of, http, node."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", name)
    return [singular(word) for word in spaced.lower().split()]


def singular(word: str) -> str:
    return word.removesuffix("ies") + "y" if word.endswith("ies") else word.removesuffix("s")


def fixed(path: str, word: str) -> bool:
    return any(fnmatch(path, files) and fnmatch(word, words) for files, words in FIXED)
