"""Whoever is at the door may leave, come back, say half of it or nonsense: small forms, and that each can fail."""

from dataclasses import replace
from typing import Any

import pytest

from tests.fault import dropped, fuzz, half_said, seam
from tests.fault.fuzz import Reply, judge, of_frames
from tests.fault.fuzz_words import KINDS, Case, There, case_of
from tests.fault.half_said import Half
from tests.fault.watchers import Heard, holes

FIFTY = 50
REQUESTS = 2_000
ASKED = Case("body", b"", "POST", "/v1/tasks")
DECLARED: dict[str, Any] = {"/v1/tasks": {"post": {"responses": {"201": {}}}}}


@pytest.mark.req("C.2")
def test_f62_all_are_dropped_and_come_back_from_anywhere() -> None:
    line = dropped.play(FIFTY)
    assert line["violations"] == []
    assert (line["trials"], line["seen"]["resync_required"] > 0) == (FIFTY, True)


@pytest.mark.req("C.2")
def test_f63_nothing_is_lost_or_doubled_between_backlog_and_live() -> None:
    line = seam.play(1, FIFTY)
    assert line["violations"] == []
    assert line["seen"]["seams"] >= FIFTY * seam.SEAMS_MIN


@pytest.mark.req("C.2")
def test_f64_nonsense_is_refused_as_the_document_says() -> None:
    line = fuzz.play(1, REQUESTS)
    assert line["violations"] == []
    assert {kind for kind in KINDS if not any(one.startswith(kind) for one in line["seen"])} == set()


@pytest.mark.req("C.2")
def test_f65_half_a_request_makes_nothing_and_a_whole_one_a_whole_task() -> None:
    line = half_said.play(1, FIFTY)
    assert line["violations"] == []
    assert line["seen"]["cut, nothing"] > 0
    assert line["seen"]["whole, made"] > 0


# --- each can fail ---


@pytest.mark.parametrize("seqs", [[3, 5], [3, 4, 4, 5], [4, 3, 5], [4, 5], [3, 4]])
def test_a_hole_and_a_double_are_seen(seqs: list[int]) -> None:
    assert [*holes(seqs, 2, 5, "who")]
    assert not [*holes([3, 4, 5], 2, 5, "who")]


def test_who_comes_back_with_less_than_all_is_seen() -> None:
    events: list[tuple[str, int, str | None]] = [("t", n, f"{n}") for n in range(1, 6)]
    one = dropped.Watcher(2, "t", before=Heard(events[:3]), after=Heard(events[3:]), place=3)
    assert dropped.judge(one, {"t": 5}) == []
    assert dropped.judge(replace(one, place=2), {"t": 5})
    assert dropped.judge(replace(one, after=Heard(events[3:], resync="ahead")), {"t": 5})
    assert dropped.judge(replace(one, task=None), {"t": 5}) == []
    assert dropped.judge(replace(one, task=None, after=Heard(events[4:])), {"t": 5})


def test_a_task_that_half_a_request_made_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here only what nobody needs is missing at the end."""
    half_of = half_said.half_of

    def nearly_whole(seed: int, port: int, token: str) -> Half:
        half = half_of(seed, port, token)
        return replace(half, raw=half.raw + b"\r\n", k=len(half.raw), pieces=(), reset=False)

    monkeypatch.setattr(half_said, "half_of", nearly_whole)
    assert any("bytes made t_" in what for what in half_said.play(1, 12)["violations"])


@pytest.mark.parametrize(
    ("reply", "good"),
    [
        (Reply(201), True),
        (Reply(204), False),
        (Reply(500), False),
        (Reply(404), False),
        (Reply(hung=True), False),
        (Reply(), False),
        (Reply(404, {"content-type": fuzz.PROBLEM}, b'{"error": {"code": "not_found"}}'), True),
        (Reply(404, {"content-type": fuzz.PROBLEM}, b'{"error": {"code": "gone"}}'), False),
        (Reply(500, {"content-type": fuzz.PROBLEM}, b'{"error": {"code": "internal"}, "detail": ""}'), False),
        (Reply(503, {"content-type": fuzz.PROBLEM}, b'{"error": {"code": "overloaded"}}'), True),
    ],
)
def test_an_answer_that_is_not_declared_is_seen(reply: Reply, good: bool) -> None:
    assert (judge(ASKED, reply, DECLARED) is None) == good


def test_an_error_inside_is_seen_at_the_other_doors_too() -> None:
    rpc = replace(ASKED, kind="rpc", path="/mcp")
    assert judge(rpc, Reply(200, {}, b'{"error": {"code": -32603}}'), {})
    assert judge(rpc, Reply(200, {}, b'{"error": {"code": -32602}}'), {}) is None
    assert of_frames(b"\x81\x01x\x88\x02\x03\xf3")
    assert of_frames(b"\x81\x01x\x88\x02\x03\xea") is None


def test_what_is_said_can_be_said_again() -> None:
    there = There(1, "es_x", ["t_x"], "s")
    assert [case_of(seed, there) for seed in range(99)] == [case_of(seed, there) for seed in range(99)]
