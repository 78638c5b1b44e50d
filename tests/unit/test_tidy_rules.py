"""Every tidy rule can fail, and leaves alone what only looks alike."""

from collections.abc import Callable, Iterator

import pytest

from tests.tidy import imports, rooms, sizes, words
from tests.tidy.sizes import Size
from tests.tidy.source import Problem, Source

Rule = Callable[[Source], Iterator[Problem]]
ENGINE = "src/everstep/engine/walk.py"
CHECKER = "src/everstep/torture/checker.py"
DOMAIN = "src/everstep/domain/plan.py"
STORE = "src/everstep/adapters/stores/memory.py"


def case(rule: Rule, path: str, text: str) -> object:
    return pytest.param(rule, path, text, id=f"{rule.__name__}: {text.splitlines()[-1].strip() if text else 'empty'}")


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        case(imports.checker_stands_alone, CHECKER, "import msgspec"),
        case(imports.checker_stands_alone, CHECKER, "from everstep.domain import states"),
        case(imports.checker_stands_alone, CHECKER, "from ..domain import states"),
        case(rooms.catch_all, STORE, "try:\n    f()\nexcept: pass"),
        case(rooms.catch_all, ENGINE, "try:\n    f()\nexcept Exception: pass"),
        case(rooms.catch_all, ENGINE, "try:\n    f()\nexcept (OSError, BaseException): pass"),
        case(rooms.catch_all, ENGINE, "with contextlib.suppress(Exception): f()"),
        case(rooms.docstring, DOMAIN, ""),
        case(rooms.docstring, DOMAIN, "X = 1"),
        case(rooms.domain_never_waits, DOMAIN, "async def f(): pass"),
        case(rooms.domain_never_waits, DOMAIN, "def f():\n    return [x async for x in y]"),
        case(rooms.formatted_sql, STORE, 'f"SELECT * FROM {table}"'),
        case(rooms.formatted_sql, STORE, 'f"update {table} set x = ?"'),
        case(rooms.formatted_sql, STORE, '"DELETE FROM %s" % table'),
        case(rooms.formatted_sql, STORE, '"DELETE FROM " + table'),
        case(rooms.formatted_sql, STORE, '"INSERT INTO {} VALUES (?)".format(table)'),
        case(rooms.world, ENGINE, "import time"),
        case(rooms.world, ENGINE, "from time import monotonic"),
        case(rooms.world, ENGINE, "from concurrent.futures import ThreadPoolExecutor"),
        case(rooms.world, ENGINE, "from os import urandom"),
        case(rooms.world, ENGINE, "os.urandom(8)"),
        case(rooms.world, ENGINE, "datetime.now()"),
        case(rooms.world, ENGINE, "datetime.datetime.utcnow()"),
        case(rooms.world, ENGINE, "date.today()"),
        case(rooms.world, ENGINE, "open(path)"),
        case(rooms.world, ENGINE, "loop.run_in_executor(None, f)"),
        case(rooms.world, ENGINE, "asyncio.to_thread(f)"),
        case(rooms.world, ENGINE, "seen[id(x)] = x"),
        case(rooms.world, ENGINE, "for x in {1, 2}: pass"),
        case(rooms.world, ENGINE, "[x for x in set(y)]"),
        case(rooms.world, "src/everstep/facade.py", "import uuid"),
        case(words.names, DOMAIN, "class JobSpec: pass"),
        case(words.names, DOMAIN, "def f(tenant_id): pass"),
        case(words.names, DOMAIN, "self.activities = 1"),
        case(words.names, DOMAIN, "maxNodesOf = 1"),
        case(words.names, DOMAIN, "import x as helpers"),
        case(words.names, DOMAIN, "async def park(): pass"),
        case(words.names, DOMAIN, "for execution in y: pass"),
        case(words.prose, DOMAIN, '"""Starts the\nrest of the job."""'),
        case(words.prose, DOMAIN, "x = 1  # each run has one"),
        case(words.prose, DOMAIN, 'def f():\n    """Ends a workflow."""'),
    ],
)
def test_a_breach_is_found_once(rule: Rule, path: str, text: str) -> None:
    (problem,) = rule(Source.of(path, text))
    assert str(problem).startswith(f"{path}:{max(1, len(text.splitlines()))}: ")


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        case(imports.checker_stands_alone, CHECKER, "import json\nfrom collections import abc"),
        case(imports.checker_stands_alone, ENGINE, "import msgspec"),
        case(rooms.catch_all, rooms.ONE_CALL, "try:\n    f()\nexcept Exception: pass"),
        case(rooms.catch_all, STORE, "try:\n    f()\nexcept Exception: raise"),
        case(rooms.docstring, DOMAIN, '"""Why."""'),
        case(rooms.domain_never_waits, ENGINE, "async def f(): await g()"),
        case(rooms.formatted_sql, STORE, '"SELECT * FROM tasks WHERE id = ?"'),
        case(rooms.formatted_sql, STORE, 'f"could not update {name}, select another from {them}"[:1]'),
        case(rooms.world, ENGINE, "kit.clock.now()"),
        case(rooms.world, ENGINE, "from everstep.ports import secrets"),
        case(rooms.world, ENGINE, "from datetime import UTC, datetime"),
        case(rooms.world, ENGINE, "for x in sorted(set(y)): pass"),
        case(rooms.world, STORE, "import threading"),
        case(rooms.world, "src/everstep/settings.py", "open(path)"),
        case(words.names, DOMAIN, "isinstance(x, Node)"),
        case(words.names, DOMAIN, "noded = dagger = sparks = 1"),
        case(words.names, "src/everstep/wire/plan.py", "node = compose(text)"),
        case(words.names, STORE, "task_executions = 1"),
        case(words.names, "tests/unit/test_x.py", "node = 1"),
        case(words.prose, DOMAIN, '"""For instance, to run `the run` or "a job"."""'),
    ],
)
def test_what_only_looks_alike_is_left_alone(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source.of(path, text))) == []


def test_the_engine_has_one_catch_all_even_in_its_place() -> None:
    twice = "try:\n    f()\nexcept Exception: pass\n" * 2
    assert len(list(rooms.catch_all(Source.of(rooms.ONE_CALL, twice)))) == 1


@pytest.mark.parametrize("path", ["src/everstep/engine/utils.py", "src/everstep/common/x.py", "tests/base.py"])
def test_an_empty_file_name_is_refused(path: str) -> None:
    assert len(list(words.file_names(path))) == 1


def test_a_telling_file_name_is_not() -> None:
    assert list(words.file_names("src/everstep/engine/baseline.py")) == []


def over(path: str, text: str, modules: frozenset[str] = frozenset()) -> list[tuple[str, int]]:
    return [(size.what, size.size) for size in sizes.sizes(Source.of(path, text), modules) if size.size > size.ceiling]


def test_each_size_has_a_ceiling() -> None:
    assert over(ENGINE, "x = 1\n" * 401) == [("lines in a file", 401)]
    assert over("tests/test_x.py", "x = 1\n" * 600) == []
    assert over("tests/test_x.py", "x = 1\n" * 601) == [("lines in a file", 601)]
    assert over(ENGINE, "class A:\n  async def f(self):\n" + "    x = 1\n" * 60) == [("lines in a function", 61)]
    assert over(ENGINE, "def f(a, b, c, /, d, e, *, g): pass") == [("positional parameters", 5)]
    assert over(ENGINE, "class A:\n  def f(self, a, b, c, d, *e, g=1, **h): pass") == []
    assert over("tests/test_x.py", "def test(a, b, c, d, e): pass") == []


def test_a_protocol_has_few_verbs() -> None:
    body = "".join(f"\n  async def f{n}(self): ..." for n in range(9))
    assert over(ENGINE, f"class Clock(Protocol):{body}") == [("verbs of a Protocol", 9)]
    assert over(ENGINE, f"class Clock(typing.Protocol[T]):{body}") == [("verbs of a Protocol", 9)]
    assert over(ENGINE, f"class Store(Protocol):{body}") == []
    assert over(ENGINE, f"class Clock:{body}") == []
    quiet = body.replace("async def f8", "@property\n  def f8")
    assert over(ENGINE, f"class Clock(Protocol):{quiet}") == []


def test_a_module_knows_few_others() -> None:
    modules = frozenset({"everstep", "everstep.domain", *(f"everstep.domain.m{n}" for n in range(13))})
    text = "from everstep.domain import " + ", ".join(f"m{n}" for n in range(12)) + "\nfrom ..domain.m12 import x"
    assert over(ENGINE, text, modules) == [("own modules imported", 13)]
    assert all(over(path, text, modules) == [] for path in sizes.KNOW_EVERYONE)
    assert over(ENGINE, "from everstep.domain.m1 import a, b, c", modules) == []


def test_an_exception_may_only_shrink() -> None:
    def size(now: int) -> Size:
        return Size(path=ENGINE, line=7, name="walk", what="lines in a function", size=now, ceiling=60)

    listed = {(f"{ENGINE}::walk", "lines in a function"): 70}
    assert [str(problem) for problem in sizes.judge([size(61)], {})] == [
        f"{ENGINE}:7: walk has 61 lines in a function, the ceiling is 60"
    ]
    assert list(sizes.judge([size(70)], listed)) == []
    (grown,) = sizes.judge([size(71)], listed)
    assert "the ceiling is 70" in grown.what
    (shrunk,) = sizes.judge([size(65)], listed)
    assert "may shrink from 70 to 65" in shrunk.what
    (gone,) = sizes.judge([size(60)], listed)
    assert "no longer needed" in gone.what


def test_an_orphan_is_found_and_every_way_to_be_reached_counts() -> None:
    product = [
        Source.of("src/everstep/__init__.py", 'HOME = {"Engine": "everstep.facade"}'),
        Source.of("src/everstep/facade.py", "from everstep.engine import walk"),
        Source.of("src/everstep/engine/__init__.py", ""),
        Source.of("src/everstep/engine/walk.py", "def f():\n    from .invoke import call"),
        Source.of("src/everstep/engine/invoke.py", ""),
        Source.of("src/everstep/engine/dead.py", "import everstep.engine.dead"),
        Source.of("src/everstep/doors/cli/main.py", 'LAZY = {"ls": "tasks"}'),
        Source.of("src/everstep/doors/cli/tasks.py", ""),
        Source.of("src/everstep/testing/fakes.py", ""),
        Source.of("src/everstep/testing/unused.py", ""),
        Source.of("src/everstep/errors.py", ""),
        Source.of("src/everstep/__main__.py", ""),
    ]
    tests = [Source.of("tests/test_x.py", "from everstep.testing.fakes import x\nimport everstep.engine.dead")]
    found = imports.orphans(product, tests, {"everstep.doors.cli.main"})
    assert [problem.path for problem in found] == ["src/everstep/engine/dead.py", "src/everstep/testing/unused.py"]
