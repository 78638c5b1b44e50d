"""What is no JSON fails with `invalid_result` where a tool returned it, and is refused where somebody sent it."""

import pytest

from tests.fault.no_result import play, read_twice, text_of


@pytest.mark.req("C.2")
def test_f43_what_is_no_json_is_named() -> None:
    assert play(1, 1_000)["violations"] == []


def test_the_second_reader_disagrees_with_a_reader_that_takes_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fault.no_result.loads_strict", lambda _: 1)
    assert any(read_twice(seed) for seed in range(1, 20))


def test_most_texts_are_nearly_json() -> None:
    assert sum(read_twice(seed) is None and len(text_of(seed)) > 2 for seed in range(1, 200)) > 150
