"""The requirement map: which test proves which row of `requirements.toml`.

Tests say `@pytest.mark.req("WF-1", "4.3")`. Ids travel with the test reports, so the map is the same with and without
workers. A full run fails when the map has a hole; a run that selects tests leaves that out and says so. An id nobody
knows fails any run. The suite may be run in two parts: the first keeps its results, the last adds its own and judges
both. What `docs/requirements.md` tells hangs on the marks alone, so that a collection is enough to see it stale: it
shall not take the whole suite to learn that.
"""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROWS: Final = "requirements.toml"
DOCUMENT: Final = "docs/requirements.md"
RESULTS: Final = "requirements.json"
PROPERTY: Final = "req"
# How a test ended; the last word in this order counts among its phases, its parameters, and the tests of a row.
RANK: Final = ("skip", "pass", "fail")

Results = Mapping[str, str]  # test id -> word
Proofs = Mapping[str, Results]  # requirement id -> its tests


@dataclass(frozen=True)
class Row:
    """One requirement."""

    text: str
    done: bool


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-requirements", action="store_true", help=f"write {DOCUMENT} instead of comparing it")
    parser.addoption("--part", choices=["first", "last"], help="run the suite in two parts, judged together at the end")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # only the controller hears every report
        config.pluginmanager.register(RequirementsMap(config), "everstep-requirements")


def pytest_itemcollected(item: pytest.Item) -> None:
    item.user_properties += [(PROPERTY, requirement) for requirement in ids_of(item)]


def ids_of(item: pytest.Item) -> list[str]:
    return [str(requirement) for mark in item.iter_markers("req") for requirement in mark.args]


class RequirementsMap:
    """Listens to one session, then judges it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.rows = read_rows(config.rootpath / ROWS)
        self.part = config.option.part
        last = self.part == "last"
        self.proofs: dict[str, dict[str, str]] = read_results(config.rootpath / RESULTS) if last else {}
        self.unjudged = ""
        self.problems: list[str] = []

    def note(self, requirement: str, nodeid: str, result: str) -> None:
        tests = self.proofs.setdefault(requirement, {})
        test = nodeid.split("[", 1)[0]
        tests[test] = worst([result, tests.get(test, result)])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = "skip"
        if report.failed:
            result = "fail"
        elif report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            result = "pass"
        for name, requirement in report.user_properties:
            if name == PROPERTY:
                self.note(str(requirement), report.nodeid, result)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """With `--collect-only` nothing ends: a test counts for being there."""
        if self.config.option.collectonly:
            for item in session.items:
                for requirement in ids_of(item):
                    self.note(requirement, item.nodeid, "pass")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.problems += [
            f"{test}: no requirement has the id {requirement!r}"
            for requirement in sorted(self.proofs.keys() - self.rows.keys())
            for test in self.proofs[requirement]
        ]
        self.unjudged = left_out(session, exitstatus)
        if self.part == "first":
            self.keep_results()
        if not self.unjudged:
            self.problems += holes(self.rows, self.proofs)
            self.settle_files(whole=exitstatus == pytest.ExitCode.OK)
        if self.problems and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def keep_results(self) -> None:
        results = json.dumps(self.proofs, indent=1, sort_keys=True)
        (self.config.rootpath / RESULTS).write_text(results + "\n", encoding="utf-8")

    def settle_files(self, *, whole: bool) -> None:
        document = self.config.rootpath / DOCUMENT
        if not self.config.option.collectonly:
            self.keep_results()
        if self.problems or not whole:
            return  # the failures of a broken suite are news enough
        text = render(self.rows, self.proofs)
        if self.config.option.write_requirements:
            document.parent.mkdir(exist_ok=True)
            document.write_text(text, encoding="utf-8")
        elif not document.exists() or document.read_text(encoding="utf-8") != text:
            self.problems.append(f"{DOCUMENT} is stale: `make docs` writes it")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for problem in self.problems:
            terminalreporter.write_line(f"requirements: {problem}", red=True)
        if self.unjudged:
            terminalreporter.write_line(f"requirements: completeness check left out ({self.unjudged})")
        else:
            done = sum(row.done for row in self.rows.values())
            terminalreporter.write_line(f"requirements: {done} done, {len(self.rows) - done} open")


def read_rows(path: Path) -> Mapping[str, Row]:
    """All rows, in the order of the file. A status word of one's own is refused: it would hide a hole."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise pytest.UsageError(f"{ROWS}: {error}") from error
    for key, row in table.items():
        if row.keys() != {"text", "status"} or row["status"] not in {"open", "done"}:
            raise pytest.UsageError(f"{ROWS}: {key} needs a text and the status open or done, has {row}")
    return {key: Row(text=row["text"], done=row["status"] == "done") for key, row in table.items()}


def read_results(path: Path) -> dict[str, dict[str, str]]:
    proofs: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return proofs


def left_out(session: pytest.Session, exitstatus: int) -> str:
    """Why this session says nothing about the whole; empty for a full run."""
    config, option = session.config, session.config.option
    selections = {
        "the other part judges": option.part == "first",
        "paths select tests": config.args_source is not pytest.Config.ArgsSource.TESTPATHS,
        "-k selects tests": option.keyword,
        "-m selects tests": option.markexpr,
        "--deselect or --ignore selects tests": (option.deselect or option.ignore or option.ignore_glob)
        and option.part != "last",
        "--last-failed or --stepwise selects tests": getattr(option, "lf", False) or getattr(option, "stepwise", False),
        "the run stopped early": session.shouldfail
        or exitstatus not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED},
    }
    return next((reason for reason, holds in selections.items() if holds), "")


def holes(rows: Mapping[str, Row], proofs: Proofs) -> Iterator[str]:
    for key, row in rows.items():
        if not row.done:
            continue
        results = proofs.get(key, {}).values()
        if not results:
            yield f"{key} is done but has no test"
        elif worst(results) == "skip":
            yield f"{key} is done but none of its tests ran: skipped, xfailed, or not part of the last `make test`"


def render(rows: Mapping[str, Row], proofs: Proofs) -> str:
    """The document. Nothing in it depends on time, order or machine."""
    open_rows = {key: row for key, row in rows.items() if not row.done}
    done_rows = {key: row for key, row in rows.items() if row.done}
    lines = [
        "# Requirements",
        "",
        "Every row of `requirements.toml`, and the tests that carry its id. Written by `make docs`.",
        "`make check` fails when this page is stale, `make test` when a row that is done has no test that passed.",
        "",
        f"## Open: {len(open_rows)}",
        "",
        "| id | requirement | tests so far |",
        "|---|---|---|",
        *(f"| {key} | {cell(row.text)} | {tests(proofs.get(key, {}))} |" for key, row in open_rows.items()),
        "",
        f"## Done: {len(done_rows)}",
        "",
        "| id | requirement | tests |",
        "|---|---|---|",
        *(f"| {key} | {cell(row.text)} | {tests(proofs[key])} |" for key, row in done_rows.items()),
    ]
    return "\n".join(lines) + "\n"


def worst(results: Iterable[str]) -> str:
    return max(results, key=RANK.index)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def tests(results: Results) -> str:
    return "<br>".join(f"`{test}`" for test in sorted(results))
