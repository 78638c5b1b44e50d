"""Taste is executable: the house rules, held against every file. The rules themselves are in `tests/tidy/`."""

import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
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


@cache
def product() -> tuple[Source, ...]:
    return tuple(read(ROOT, "src/everstep"))


@cache
def users() -> tuple[Source, ...]:
    return tuple(read(ROOT, *USERS))


def refuse(problems: Iterable[Problem]) -> None:
    if lines := [str(problem) for problem in problems]:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.__module__.rpartition('.')[2]}.{rule.__name__}")
def test_every_file_keeps_the_rule(rule: Callable[[Source], Iterator[Problem]]) -> None:
    refuse(problem for source in (*product(), *users()) for problem in rule(source))


def test_sizes_stay_below_their_ceilings() -> None:
    modules = frozenset(source.module for source in product())
    measured = (size for source in (*product(), *users()) for size in sizes.sizes(source, modules))
    refuse(sizes.judge(measured, EXCEPTIONS))


def test_file_names_say_what_is_inside() -> None:
    refuse(problem for source in (*product(), *users()) for problem in words.file_names(source.path))


def test_nothing_is_orphaned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    entries = {target.partition(":")[0] for group in groups for target in group.values()}
    refuse(imports.orphans(product(), users(), entries))
