"""Small things said well."""

import pytest

from everstep.doors.cli.words import (
    about,
    ago,
    cells,
    cut,
    glance,
    listed,
    pad,
    plural,
    safe,
    safe_lines,
    seconds,
    size,
    waits_for,
)


@pytest.mark.parametrize(
    ("length", "text"), [(0.44, "0.4s"), (48.93, "48.9s"), (59.96, "1m00s"), (64, "1m04s"), (3725, "1h02m")]
)
def test_seconds(length: float, text: str) -> None:
    assert seconds(length) == text


@pytest.mark.parametrize(("length", "text"), [(0.2, "now"), (40, "40 s ago"), (190, "3 min ago"), (90_000, "1 d ago")])
def test_ago(length: float, text: str) -> None:
    assert ago(length) == text


@pytest.mark.parametrize(("count", "text"), [(512, "512 B"), (1_500_000, "1.5 MB"), (2.5e12, "2.5 TB")])
def test_size(count: float, text: str) -> None:
    assert size(count) == text


def test_lists_read_like_sentences() -> None:
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed([*"abcdefgh"], most=4) == "a, b, c and 5 more"
    assert plural(1, "step") == "1 step"


def test_wide_characters_take_two_columns() -> None:
    assert cells("日本") == 4
    assert cut("日本語の題", 7) == "日本語…"
    assert pad("日本", 6) == "日本  "
    assert cut("abc", 0) == ""


def test_nothing_steers_the_terminal() -> None:
    assert safe("a\x1b[31mb\u202ec\nd\te") == "a\\u001b[31mb\\u202ec⏎d e"
    assert safe_lines("a\r\nb\x07") == ["a", "b\\u0007"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (3, "3"),
        ("first\nsecond", "first"),
        ([1, 2], "2 items"),
        ({"bytes": 9, "created": True, "path": "a.txt"}, "path a.txt, bytes 9"),
        ({"markdown": "x" * 200, "sources": [1]}, "1 sources"),
        ({"deep": {"a": 1}}, "1 field"),
    ],
)
def test_a_glance_at_a_value(value: object, text: str) -> None:
    assert glance(value) == text


@pytest.mark.parametrize(
    ("times", "basis", "text"),
    [
        ((1.1, 2.0, 4.2), "history", "about 2 s (1-4)"),
        ((0.21, 0.4, 0.84), "history", "about 0.4 s (0.2-0.8)"),
        ((0.001, 0.004, 0.03), "prior", "about 0.004 s (0.001-0.030), a first guess"),
        ((60, 130, 240), "mixed", "about 2 min (1-4)"),
        ((7200, 7200, 7200), "history", "about 2 h"),
        ((None, None, None), None, "no history yet"),
    ],
)
def test_estimates_in_words(times: tuple[float | None, ...], basis: str | None, text: str) -> None:
    estimate = dict(zip(("p10", "p50", "p90"), times, strict=True))
    assert about({**estimate, "basis": basis}) == text
    assert about(None) == ""


def test_a_wait_until_another_day_names_it() -> None:
    words = waits_for({"kind": "event", "detail": "paid", "ref": "order-17", "until": "2001-02-03T12:00:00.000Z"})
    assert words.startswith("waits for event paid with key order-17 until 2001-02-0")
