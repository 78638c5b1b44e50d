"""When a client comes back, by which way, and what it has seen: the rules, without waiting for any of it."""

import pytest

from everstep.client.rules import AGAIN_S, STABLE_S, Backoff, Hole, Ladder, LinePlace, TaskPlace
from everstep.client.ways import Cut, Over, closed, ended
from everstep.domain.errors import EverstepError, NotFound


def event(seq: int, task: str = "t_1", **more: object) -> dict[str, object]:
    return {"type": "event", "event": {"task": task, "seq": seq}, **more}


@pytest.mark.req("3.6")
def test_waiting_doubles_up_to_half_a_minute() -> None:
    backoff = Backoff()
    assert [backoff.cut(0, 1.0) for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert backoff.cut(0, 0.0) == 0


def test_a_connection_that_stood_begins_the_waiting_anew() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.cut(0, 1.0)
    backoff.opened(100)
    assert backoff.cut(100 + STABLE_S - 1, 1.0) == 16, "too short"
    backoff.opened(200)
    assert backoff.cut(200 + STABLE_S, 1.0) == 0.5


def test_what_the_server_asks_for_wins() -> None:
    assert Backoff().cut(0, 1.0, 7.0) == 7.0


def test_three_failed_tries_lead_to_the_next_way_and_a_minute_later_up_again() -> None:
    ladder, now = Ladder(), 0.0
    seen = []
    for _ in range(9):
        way = ladder.choose(now)
        seen.append(way)
        ladder.failed(way, now)
    assert seen == ["websocket"] * 3 + ["sse"] * 3 + ["poll"] * 3
    assert ladder.patience_s("poll", now) == AGAIN_S
    now = AGAIN_S
    assert ladder.choose(now) == "websocket"
    ladder.failed("websocket", now)
    assert ladder.choose(now + 1) == "poll", "one try a minute"
    assert ladder.choose(now + AGAIN_S) == "websocket"
    ladder.opened("websocket")
    assert ladder.choose(now + AGAIN_S) == "websocket"
    assert ladder.patience_s("websocket", now) is None


def test_tries_that_succeed_in_between_begin_the_count_anew() -> None:
    ladder = Ladder()
    for _ in range(2):
        ladder.failed("websocket", 0)
    ladder.opened("websocket")
    for _ in range(2):
        ladder.failed("websocket", 0)
    assert ladder.choose(0) == "websocket"


def test_events_of_a_task_are_taken_once_and_in_order() -> None:
    place = TaskPlace(3, dense=True)
    assert [place.takes(event(seq)) for seq in (2, 3, 4, 4, 5)] == [False, False, True, False, True]
    with pytest.raises(Hole):
        place.takes(event(7))
    assert place.after == 5


def test_chosen_types_are_not_dense() -> None:
    place = TaskPlace(0, dense=False)
    assert place.takes(event(5))
    assert not place.takes(event(4))
    assert place.takes({"type": "live", "seq": 9})
    assert place.after == 9


def test_a_snapshot_replaces_what_was_known() -> None:
    place = TaskPlace(90, dense=True)
    assert place.takes({"type": "resync_required", "reason": "ahead"})
    assert place.takes({"type": "snapshot", "seq": 7, "reset": True, "task": {}})
    assert place.takes(event(8))


def test_events_of_all_tasks_may_come_again_and_are_dropped() -> None:
    place = LinePlace(None, dense=True)
    assert place.takes({"type": "hello", "cursor": "a"})
    assert place.after == "a"
    assert place.takes(event(1, cursor="b"))
    assert place.takes(event(1, "t_2", cursor="c"))
    assert not place.takes(event(1, cursor="b"))
    assert place.takes(event(2, cursor="d"))
    assert place.after == "d"
    assert place.takes({"type": "hello", "cursor": "z"})
    assert place.after == "d"


def test_a_hole_in_the_events_of_a_known_task_is_seen_and_the_place_before_it_is_kept() -> None:
    place = LinePlace(None, dense=True)
    assert place.takes(event(7, cursor="a"))
    assert place.takes(event(8, cursor="b"))
    with pytest.raises(Hole):
        place.takes(event(10, cursor="c"))
    assert place.after == "b"
    assert [place.takes(event(seq, cursor=str(seq))) for seq in (9, 10)] == [True, True]
    chosen = LinePlace(None, dense=False)
    assert [chosen.takes(event(seq)) for seq in (7, 10)] == [True, True]


@pytest.mark.parametrize("code", [1001, 1006, 1011, 1012, 1013, None])
def test_after_these_codes_it_comes_back(code: int | None) -> None:
    assert isinstance(closed(code, ""), Cut)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (1008, "rate_limited"),
        (1009, "too_large"),
        (4400, "bad_request"),
        (4401, "unauthenticated"),
        (4404, "not_found"),
    ],
)
def test_after_these_codes_it_stops(code: int, word: str) -> None:
    error = closed(code, "")
    assert isinstance(error, EverstepError)
    assert error.code == word


def test_only_our_own_good_bye_is_the_end() -> None:
    assert isinstance(closed(1000, "until=end"), Over)
    assert isinstance(closed(1000, "proxy timeout"), Cut)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_after_these_statuses_it_comes_back_when_it_is_told_to(status: int) -> None:
    cut = ended(status, {"retry-after": "9"}, b"<html>")
    assert isinstance(cut, Cut)
    assert cut.retry_after_s == 9


def test_an_unknown_task_is_the_end() -> None:
    body = b'{"error":{"code":"not_found","message":"no task","what_to_do":"look"}}'
    error = ended(404, {}, body)
    assert isinstance(error, NotFound)
    assert (error.code, error.message, error.what_to_do) == ("not_found", "no task", "look")
    wrong = ended(401, {}, b"")
    assert isinstance(wrong, EverstepError)
    assert wrong.code == "unauthenticated"
