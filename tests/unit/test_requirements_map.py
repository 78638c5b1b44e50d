"""The requirement map fails a session exactly when the map has a hole, with workers and without."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

ROWS = """
["A.1"]
text = "holds | always"
status = "{a}"

["A.2"]
text = "not yet"
status = "open"
"""
PROVED = """
import pytest

@pytest.mark.req("A.1")
@pytest.mark.parametrize("n", [1, 2])
def test_it(n): assert n

def test_other(): pass
"""

Suite = Callable[..., pytest.RunResult]


@pytest.fixture
def suite(pytester: pytest.Pytester) -> Suite:
    """Write a repository with one test file, then start a session in it."""

    def start(test: str, *options: str, a: str = "done", workers: bool = False) -> pytest.RunResult:
        pytester.makepyprojecttoml('[tool.pytest]\ntestpaths = ["tests"]\nmarkers = ["req(*ids): ids"]')
        (pytester.path / "requirements.toml").write_text(ROWS.format(a=a), encoding="utf-8")
        (pytester.path / "tests").mkdir(exist_ok=True)
        (pytester.path / "tests/test_it.py").write_text(test, encoding="utf-8")
        others = ("randomly", "asyncio", "anyio", "timeout", "faulthandler", "hypothesispytest")
        options = ("-p", "tests.requirements_map", *(f"-pno:{plugin}" for plugin in others), *options)
        if workers:
            return pytester.runpytest_subprocess(*options, "-n", "2")
        return pytester.runpytest_inprocess(*options)

    return start


def says(result: pytest.RunResult, line: str) -> None:
    result.stdout.fnmatch_lines([f"requirements: {line}"])


def test_a_proved_map_passes_once_written(suite: Suite, pytester: pytest.Pytester) -> None:
    stale = suite(PROVED)
    assert stale.ret == pytest.ExitCode.TESTS_FAILED
    says(stale, "docs/requirements.md is stale*")

    assert suite(PROVED, "--write-requirements").ret == pytest.ExitCode.OK
    document = (pytester.path / "docs/requirements.md").read_text(encoding="utf-8")
    assert "## Open: 1" in document
    assert "| A.2 | not yet |  |" in document
    assert r"| A.1 | holds \| always | `tests/test_it.py::test_it` |" in document
    assert document.index("A.2") < document.index("A.1")

    fresh = suite(PROVED)
    assert fresh.ret == pytest.ExitCode.OK
    says(fresh, "1 done, 1 open")
    results = json.loads((pytester.path / "requirements.json").read_text(encoding="utf-8"))
    assert results == {"A.1": {"tests/test_it.py::test_it": "pass"}}


def test_workers_prove_a_map_together(suite: Suite, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    assert suite(PROVED, "--write-requirements", workers=True).ret == pytest.ExitCode.OK
    results = json.loads((pytester.path / "requirements.json").read_text(encoding="utf-8"))
    assert results == {"A.1": {"tests/test_it.py::test_it": "pass"}}


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        pytest.param("def test_it(): pass", "A.1 is done but has no test", id="no test"),
        pytest.param(
            PROVED.replace("assert n", "pytest.skip('no')"), "A.1 is done but none of its tests ran*", id="skipped"
        ),
        pytest.param(
            PROVED.replace("def test_it", "@pytest.mark.skip\ndef test_it"), "A.1 is done but none*", id="skip mark"
        ),
        pytest.param(
            PROVED.replace("assert n", "pytest.xfail('no')"), "A.1 is done but none of its tests ran*", id="xfailed"
        ),
        pytest.param(
            PROVED.replace("def test_it", "@pytest.mark.xfail\ndef test_it"), "A.1 is done but none*", id="xpassed"
        ),
        pytest.param(
            PROVED.replace('"A.1"', '"A.1", "Z.9"'), "tests/test_it.py::test_it: no requirement*'Z.9'", id="unknown id"
        ),
    ],
)
def test_a_hole_fails_the_full_run(suite: Suite, test: str, problem: str) -> None:
    result = suite(test)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    says(result, problem)


def test_one_skipped_parameter_is_no_hole(suite: Suite) -> None:
    partly = PROVED.replace("assert n", "n == 1 or pytest.skip('no')")
    assert suite(partly, "--write-requirements").ret == pytest.ExitCode.OK


def test_a_failing_test_is_the_only_news(suite: Suite, pytester: pytest.Pytester) -> None:
    result = suite(PROVED.replace("assert n", "assert n == 1"))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.no_fnmatch_line("*stale*")
    assert '"fail"' in (pytester.path / "requirements.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["-k", "other"], "-k selects tests"),
        (["-m", "not req"], "-m selects tests"),
        (["tests"], "paths select tests"),
        (["--deselect", "tests/test_it.py::test_other"], "--deselect or --ignore selects tests"),
        (["--lf"], "--last-failed or --stepwise selects tests"),
    ],
)
def test_a_partial_run_says_what_it_left_out(
    suite: Suite, pytester: pytest.Pytester, options: list[str], reason: str
) -> None:
    result = suite(PROVED, *options)
    assert result.ret == pytest.ExitCode.OK
    says(result, f"completeness check left out ({reason})")
    assert not (pytester.path / "requirements.json").exists()


def test_a_run_that_stops_early_is_partial(suite: Suite) -> None:
    result = suite(PROVED.replace("assert n", "assert not n"), "-x")
    says(result, "completeness check left out (the run stopped early)")


def test_an_unknown_id_fails_a_partial_run_too(suite: Suite) -> None:
    result = suite(PROVED.replace("A.1", "Z.9"), "-k", "test_it")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    says(result, "*no requirement has the id 'Z.9'")


def test_a_collection_is_enough_to_see_and_to_write_the_document(suite: Suite, pytester: pytest.Pytester) -> None:
    stale = suite(PROVED, "--collect-only")
    assert stale.ret == pytest.ExitCode.TESTS_FAILED
    says(stale, "docs/requirements.md is stale*")

    assert suite(PROVED, "--collect-only", "--write-requirements").ret == pytest.ExitCode.OK
    assert suite(PROVED, "--collect-only").ret == pytest.ExitCode.OK
    assert not (pytester.path / "requirements.json").exists()
    assert suite(PROVED).ret == pytest.ExitCode.OK

    unproved = suite(PROVED.replace('"A.1", ', "").replace('"A.1"', ""), "--collect-only")
    assert unproved.ret == pytest.ExitCode.TESTS_FAILED
    says(unproved, "A.1 is done but has no test")


@pytest.mark.parametrize("status", ["waived", ""])
def test_another_status_word_is_refused(suite: Suite, status: str) -> None:
    result = suite(PROVED, a=status)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*A.1 needs a text and the status open or done*"])


def test_a_suite_in_two_parts_is_judged_as_one(suite: Suite, pytester: pytest.Pytester) -> None:
    first = suite(PROVED, "--part", "first", "tests/test_it.py")
    assert first.ret == pytest.ExitCode.OK
    says(first, "completeness check left out (the other part judges)")

    (pytester.path / "tests/test_rest.py").write_text("def test_rest(): pass\n", encoding="utf-8")
    rest = ("--part", "last", "--ignore", "tests/test_it.py")
    assert suite(PROVED, *rest, "--write-requirements").ret == pytest.ExitCode.OK
    judged = suite(PROVED, *rest)
    assert judged.ret == pytest.ExitCode.OK
    says(judged, "1 done, 1 open")

    (pytester.path / "requirements.json").unlink()
    alone = suite(PROVED, *rest)
    assert alone.ret == pytest.ExitCode.TESTS_FAILED
    says(alone, "A.1 is done but has no test")
