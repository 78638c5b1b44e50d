"""Problems on a terminal and as JSON."""

from everstep.domain.problem import Problem, Severity
from everstep.wire.plan import read_plan
from everstep.wire.show import SHOWN_MAX, escaped, show, to_json
from everstep.wire.source import Source
from tests.unit.known_tools import check_text

BRIEF = """\
name: brief
inputs: {topic: string}
steps:
  - id: hits
    tool: search.local
    with: {query: "${inputs.topci}"}
outputs: {t: "${inputs.topic}"}
"""


def problem(line: int | None, column: int | None = None, end: int | None = None, message: str = "m") -> Problem:
    return Problem(code="plan.x", message=message, path="/a", file="f.yaml", line=line, column=column, end_column=end)


def test_as_in_the_spec() -> None:
    found = check_text(BRIEF, "brief.plan.yaml")
    assert show(found, read_plan(BRIEF).source) == (
        "brief.plan.yaml:6:29  no input 'topci'  [plan.unknown_input]\n"
        '     6 |     with: {query: "${inputs.topci}"}\n'
        "       |                             ^^^^^\n"
        "       = did you mean 'topic'?\n"
    )


def test_tabs_are_copied_and_hidden_characters_escaped() -> None:
    source = Source("a:\t\u202e\x1b'x'\t日本 z\n")
    shown = show([problem(1, 5, 8), problem(1, 10, 12)], source).splitlines()
    assert shown[1] == "     1 | a:\t\\u202e\\u001b'x'\t日本 z"
    assert shown[2] == "       |   \t      ^^^^^^^^"
    assert shown[5] == "       |   \t               \t^^^^"


def test_wide_and_combining_characters_keep_the_caret_in_place() -> None:
    shown = show([problem(1, 5)], Source("日e\u0301 x")).splitlines()
    assert shown[2] == "       |     ^"


def test_without_column_without_line_without_source() -> None:
    source = Source("one\ntwo")
    assert show([problem(2)], source) == "f.yaml:2  m  [plan.x]\n     2 | two\n"
    assert show([problem(None)], source) == "f.yaml:/a  m  [plan.x]\n"
    assert show([problem(2, 1, 2)]) == "f.yaml:2:1  m  [plan.x]\n"
    assert show([Problem(code="plan.y", message="m", path="")]) == "m  [plan.y]\n"
    assert show([]) == ""


def test_a_problem_at_the_very_end_and_far_to_the_right() -> None:
    assert show([problem(1, 4, 5)], Source("one")).endswith("       |    ^\n")
    assert show([problem(1, 500, 501)], Source("x" * 1_000)).count("\n") == 2


def test_messages_cannot_forge_lines() -> None:
    shown = show([problem(1, 1, 2, "no step 'a\n\x1b[2Jb\u2028'")], Source("x"))
    assert "no step 'a\\u000a\\u001b[2Jb\\u2028'" in shown
    assert len(shown.splitlines()) == 3


def test_twenty_are_shown_and_the_rest_counted() -> None:
    many = [problem(1, 1, 2)] * (SHOWN_MAX + 2)
    assert show(many).splitlines()[-1] == "… and 2 more problems"
    assert show(many[:-1]).splitlines()[-1] == "… and 1 more problem"
    assert len(show(many[:-2]).splitlines()) == SHOWN_MAX


def test_warnings_and_hints() -> None:
    warning = Problem(code="plan.y", message="m", path="", severity=Severity.WARNING, hint="h", suggestion="s")
    assert show([warning]) == "warning: m  [plan.y]\n       = did you mean 's'?\n       = h\n"


def test_json() -> None:
    assert to_json(problem(1, 2, 3)) == {
        "code": "plan.x",
        "severity": "error",
        "message": "m",
        "path": "/a",
        "file": "f.yaml",
        "line": 1,
        "column": 2,
        "end_column": 3,
        "hint": None,
        "suggestion": None,
    }


def test_escapes() -> None:
    assert escaped("plain é 日本") == "plain é 日本"
    assert escaped("\u200b\U000e0001\t") == "\\u200b\\U000e0001\\u0009"
