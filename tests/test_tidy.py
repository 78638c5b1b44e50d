"""Taste is executable: the house rules, held against every file. The rules themselves are in `tests/tidy/`."""

import gc
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.tidy import imports, rooms, sizes, words
from tests.tidy.source import Problem, Source, read

ROOT = Path(__file__).parents[1]
USERS = ("tests", "bench", "examples", "scripts")

# (place, what) -> size. A ratchet: entries may only shrink, and go when they are no longer needed.
EXCEPTIONS: dict[tuple[str, str], int] = {
    # every event that there is, whichever room it is at home in
    ("src/everstep/domain/events.py", "own modules imported"): 13,
    ("src/everstep/wire/event.py::Pen._spell", "lines in a function"): 61,
    # the composition of a walk: each of these is one page that needs many small facts
    ("src/everstep/engine/kit.py", "own modules imported"): 18,
    ("src/everstep/engine/commit.py", "own modules imported"): 14,
    ("src/everstep/engine/fanout.py", "own modules imported"): 14,
    ("src/everstep/engine/propose.py", "own modules imported"): 15,
    ("src/everstep/engine/child.py", "own modules imported"): 13,
    ("src/everstep/engine/walk.py", "own modules imported"): 14,
    ("src/everstep/engine/apart.py", "own modules imported"): 14,
    # start and stop in order: of everything that lives as long as the engine
    ("src/everstep/engine/runtime.py", "own modules imported"): 14,
    # objects with every field of the catalogue, and a port's verbs, each handed on to who knows
    ("src/everstep/wire/step.py", "own modules imported"): 13,
    ("src/everstep/wire/task.py", "own modules imported"): 13,
    ("src/everstep/facade/desk.py", "own modules imported"): 19,
    ("src/everstep/facade/engine.py", "own modules imported"): 16,
    ("src/everstep/testing/engine.py", "own modules imported"): 18,
    # the whole port in one class
    ("src/everstep/adapters/stores/memory.py", "own modules imported"): 14,
}

RULES: tuple[Callable[[Source], Iterator[Problem]], ...] = (
    imports.checker_stands_alone,
    rooms.catch_all,
    rooms.docstring,
    rooms.domain_never_waits,
    rooms.formatted_sql,
    rooms.world,
    words.names,
    words.prose,
)


def refuse(problems: Iterable[Problem]) -> None:
    if lines := [str(problem) for problem in problems]:
        pytest.fail("\n".join(lines), pytrace=False)


def every(product: Sequence[Source], users: Sequence[Source]) -> Iterator[Problem]:
    """What is wrong, file by file and then as a whole."""
    modules = frozenset(source.module for source in product)
    measured: list[sizes.Size] = []
    for source in (*product, *users):
        for rule in RULES:
            yield from rule(source)
        yield from words.file_names(source.path)
        measured += sizes.sizes(source, modules)
    yield from sizes.judge(measured, EXCEPTIONS)
    yield from imports.orphans(product, users, entries())


def entries() -> set[str]:
    """Modules that others start by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return {target.partition(":")[0] for group in groups for target in group.values()}


def test_every_file_keeps_the_rules() -> None:
    """One test, because reading a thousand files takes longer than judging them."""
    gc.disable()  # millions of objects, none of them garbage
    try:
        refuse(every([*read(ROOT, "src/everstep")], [*read(ROOT, *USERS)]))
    finally:
        gc.enable()
