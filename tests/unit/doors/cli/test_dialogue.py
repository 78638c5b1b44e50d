"""A talk about a pause: typed lines in, the body of an answer out."""

from typing import Any

import pytest

from everstep.doors.cli.dialogue import LEAVE, BadValue, Dialogue, answer_commands, cure, schema_words, value_of
from tests.unit.doors.cli.stories import pause


def say(kind: str, *lines: str, **reason: Any) -> tuple[Dialogue, Any]:
    talk, body = Dialogue(pause(kind, **reason)), None
    for line in lines:
        body = talk.hear(line)
    return talk, body


@pytest.mark.parametrize(
    ("kind", "lines", "body"),
    [
        ("uncertainOutcome", ["h", '{"id": 7}'], {"answer": "happened", "output": {"id": 7}}),
        ("uncertainOutcome", ["happened", ""], {"answer": "happened", "output": None}),
        ("uncertainOutcome", ["N"], {"answer": "not_happened"}),
        ("uncertainOutcome", ["s"], {"answer": "skip"}),
        ("toolError", ["r"], {"answer": "retry"}),
        ("toolError", ["e", "path=b.txt", "n=3", ""], {"answer": "retry_with", "arguments": {"path": "b.txt", "n": 3}}),
        ("toolError", ["o", "some text"], {"answer": "supply_output", "output": "some text"}),
        ("toolError", ["c"], {"answer": "cancel"}),
        ("userRequested", ["r"], {"answer": "resume"}),
        ("userRequested", ["w"], LEAVE),
        ("unresolvableParams", ["g", "a.txt"], {"answer": "supply_arguments", "arguments": {"path": "a.txt"}}),
        ("approvalRequired", ["a"], {"answer": "approve", "digest": "sha256:77"}),
        (
            "approvalRequired",
            ["e", "text=hello", ""],
            {"answer": "edit", "digest": "sha256:77", "arguments": {"text": "hello"}},
        ),
        ("approvalRequired", ["r", "not now"], {"answer": "reject", "digest": "sha256:77", "note": "not now"}),
        ("approvalRequired", ["o", '{"id": 7}'], {"answer": "answer", "value": {"id": 7}}),
        ("approvalRequired", ["w"], LEAVE),
        ("inputRequired", ["blue"], {"answer": "answer", "value": "blue"}),
        ("inputRequired", [":skip"], {"answer": "skip"}),
        ("inputRequired", [":w"], LEAVE),
    ],
)
def test_lines_become_an_answer(kind: str, lines: list[str], body: object) -> None:
    reason = {"inputRequired": {"question": "Which?", "schema": {"type": "string"}}}.get(kind, {})
    more = {"missingParam": "path"} if kind == "unresolvableParams" else {}
    assert say(kind, *lines, **reason, **more)[1] == body


def test_an_approval_shows_the_call_before_it_asks() -> None:
    talk, body = say("approvalRequired", "r", "")
    assert body is None
    assert talk.prompt.startswith("[a]pprove [e]dit [r]eject give its [o]utput [v]iew [w]")
    assert 'to = "ana"; text = "hi"' in talk.hint
    assert 'text = "hi"' in talk.details()
    commands = answer_commands(talk.pause)
    assert [command.split()[1] for command in commands] == ["approve", "approve", "reject", "answer"]


def test_every_missing_field_is_asked_for() -> None:
    talk, body = say("schemaMismatch", "g", missingFields=["/to", "/subject"])
    assert body is None
    assert talk.prompt.startswith("/to =")
    assert talk.hear("ana@example.test") is None
    assert talk.hear("Hello") == {
        "answer": "supply_arguments",
        "arguments": {"to": "ana@example.test", "subject": "Hello"},
    }


def test_enter_alone_goes_back() -> None:
    talk, body = say("schemaMismatch", "g", "", missingFields=["/to"])
    assert body is None
    assert "[g]ive it" in talk.prompt
    talk, body = say("toolError", "e", "")
    assert body is None
    assert "[r]etry" in talk.prompt


def test_half_written_json_is_neither_json_nor_text() -> None:
    talk, body = say("uncertainOutcome", "h", '{"id": 7')
    assert body is None
    assert "does not end like it" in talk.message
    assert talk.hear("7") == {"answer": "happened", "output": 7}


def test_what_is_none_of_the_choices_is_said() -> None:
    talk, body = say("uncertainOutcome", "x\x1b")
    assert body is None
    assert talk.message == "'x\\u001b' is none of them"
    assert talk.hint == talk.message


def test_a_refused_answer_begins_again() -> None:
    talk, _ = say("uncertainOutcome", "h")
    talk.refused("the answer does not fit: /id: must be text")
    assert "it [h]appened" in talk.prompt
    assert talk.hint.startswith("the answer does not fit")


def test_viewing_shows_all_that_is_known() -> None:
    talk, body = say("uncertainOutcome", "v", attempt=2, idempotencyKey="4be1")
    assert body is None
    assert talk.viewing
    assert talk.details() == [
        "the call was cut off",
        "blockedStep: send",
        "suggestedTool: my.mail",
        "attempt: 2",
        "idempotencyKey: 4be1",
    ]


def test_a_question_with_choices_names_them() -> None:
    talk, _ = say("inputRequired", question="Which?", schema={"enum": ["red", "blue"]})
    assert talk.prompt == "red | blue (:skip :cancel :wait) >"
    assert talk.title == "Which?"
    assert talk.hear("") is None
    assert talk.hear(":v") is None
    assert talk.hear("red") == {"answer": "answer", "value": "red"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "your answer"),
        ({"type": "boolean"}, "true or false"),
        ({"type": "integer"}, "a JSON integer"),
        (
            {
                "type": "object",
                "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "string"}, "c": True},
                "required": ["a"],
            },
            '{"a": x|y, "b": string?, "c": any?}',
        ),
    ],
)
def test_schemas_in_words(schema: dict[str, Any], words: str) -> None:
    assert schema_words(schema) == words


def test_the_line_that_would_remove_the_question() -> None:
    uncertain = pause("uncertainOutcome", "pages[3]")
    assert cure(uncertain) == (
        "if calling it twice is harmless, write 'on_uncertain: retry' under step 'pages',"
        " or @tool.idempotent above 'my.mail'"
    )
    built_in = pause("uncertainOutcome", suggestedTool="shell.run")
    assert "@tool" not in (cure(built_in) or "")
    assert cure(pause("toolError")) is None


def test_commands_to_paste() -> None:
    assert answer_commands(pause("toolError"))[:3] == [
        "everstep answer p_3c8h9qx4 retry",
        "everstep answer p_3c8h9qx4 retry_with --set NAME=VALUE",
        "everstep answer p_3c8h9qx4 supply_output --value JSON",
    ]


def test_values_are_json_or_text() -> None:
    assert value_of("3") == 3
    assert value_of("three") == "three"
    assert value_of("true") is True
    assert value_of("NaN") == "NaN"
    with pytest.raises(BadValue):
        value_of("[NaN]")
