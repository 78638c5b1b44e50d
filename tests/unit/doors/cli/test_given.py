"""Inputs as they are typed."""

from pathlib import Path

import pytest

from everstep.domain.errors import EverstepError
from everstep.domain.plan import InputSpec, PlanSpec
from everstep.doors.cli.given import read_inputs
from everstep.doors.cli.inbox_command import answer_body, arguments_of
from tests.unit.doors.cli.stories import pause

PLAN = PlanSpec(
    name="p",
    inputs=(
        InputSpec(name="n", schema={"type": "integer"}),
        InputSpec(name="deep", schema={"type": "object"}),
        InputSpec(name="sure", schema={"type": "boolean"}),
        InputSpec(name="text", schema={"type": "string"}),
    ),
    outputs={},
)


def test_the_plan_says_the_types() -> None:
    given = ["n=3", 'deep={"a": 1}', "sure=YES", "text=3"]
    assert read_inputs(given, None, PLAN) == {"n": 3, "deep": {"a": 1}, "sure": True, "text": "3"}


def test_what_does_not_fit_stays_text_for_the_check_to_name() -> None:
    assert read_inputs(["n=three", "unknown=x=y"], None, PLAN) == {"n": "three", "unknown": "x=y"}


def test_json_files_and_both(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"n": 1, "text": "a"}')
    (tmp_path / "note.txt").write_text("from a file\n")
    given = ["n:=[2]", f"text=@{tmp_path}/note.txt"]
    assert read_inputs(given, f"{tmp_path}/in.json", PLAN) == {"n": [2], "text": "from a file\n"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("novalue", "is no input"),
        ("=3", "is no input"),
        ("n:={", "holds no JSON"),
        ("n:=NaN", "holds no JSON"),
        ("text=@missing.txt", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(given: str, message: str) -> None:
    with pytest.raises(EverstepError, match=message):
        read_inputs([given], None, PLAN)


def test_a_file_of_inputs_is_an_object(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text("[1]")
    with pytest.raises(EverstepError, match="holds no JSON object"):
        read_inputs([], f"{tmp_path}/in.json", PLAN)


def test_answers_take_what_they_need(tmp_path: Path) -> None:
    said: dict[str, object] = {"note": "seen", "value": '{"id": 7}', "settings": ()}
    assert answer_body(pause("uncertainOutcome"), "happened", said) == {
        "answer": "happened",
        "note": "seen",
        "output": {"id": 7},
    }
    (tmp_path / "v.json").write_text("[1]")
    said = {"note": None, "value": f"@{tmp_path}/v.json", "settings": ()}
    assert answer_body(pause("toolError"), "supply_output", said)["output"] == [1]
    text = pause("inputRequired", question="Which?", schema={"type": "string"})
    assert answer_body(text, None, {"note": None, "value": "blue", "settings": ()})["value"] == "blue"


def test_a_wrong_word_gets_the_right_ones() -> None:
    said = {"note": None, "value": None, "settings": ()}
    with pytest.raises(EverstepError, match="did you mean 'happened'") as caught:
        answer_body(pause("uncertainOutcome"), "hapened", said)
    assert caught.value.what_to_do == "one of: happened, not_happened, fail, skip"
    with pytest.raises(EverstepError, match="--value is not JSON"):
        answer_body(pause("uncertainOutcome"), "happened", {**said, "value": "{"})


def test_arguments_of_an_answer() -> None:
    assert arguments_of(("path=a.txt", "n:=3", "m=4")) == {"path": "a.txt", "n": 3, "m": 4}
    with pytest.raises(EverstepError, match="is no argument"):
        arguments_of(("path",))
    with pytest.raises(EverstepError, match="n:="):
        arguments_of(("n:={",))
