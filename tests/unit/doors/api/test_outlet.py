"""What waits for one watcher is bounded; ticks and output give way first; nobody waits for who does not read."""

import asyncio
from dataclasses import replace

import pytest

from everstep.doors.api.channel import OUTPUT_BYTES_MAX, OUTPUT_KEPT_MAX, Spoken
from everstep.doors.api.frames import Frame
from everstep.doors.api.outlet import ENDED, SHUTDOWN, SLOW, Outlet
from everstep.settings import load_settings

BOUNDS = replace(load_settings({}, env={}).events, queue=10, queue_bytes=1000)


def frame(kind: str = "event", size: int = 10, name: str = "") -> Frame:
    return Frame(kind, name.encode().ljust(size, b"x"))


async def everything(outlet: Outlet) -> list[Frame]:
    found = []
    while (one := await outlet.next()) is not None:
        found.append(one)
    return found


async def test_frames_come_in_their_order_and_none_after_the_end() -> None:
    outlet = Outlet(BOUNDS)
    said = [frame() for _ in range(5)]
    for one in said:
        outlet.put(one)
    outlet.finish(SHUTDOWN)
    outlet.put(frame())
    assert await everything(outlet) == said
    assert outlet.end is SHUTDOWN


async def test_who_waits_is_woken() -> None:
    outlet = Outlet(BOUNDS)
    waiting = asyncio.create_task(outlet.next())
    await asyncio.sleep(0)
    one = frame()
    outlet.put(one)
    assert await waiting is one
    waiting = asyncio.create_task(outlet.next())
    await asyncio.sleep(0)
    outlet.finish(ENDED)
    assert await waiting is None


async def test_the_newest_tick_of_each_task_wins_and_waits_for_events() -> None:
    outlet = Outlet(BOUNDS)
    old, new, other, event = frame("tick"), frame("tick"), frame("tick"), frame()
    for task, tick in (("a", old), ("b", other), ("a", new)):
        outlet.tick(task, tick)
    outlet.put(event)
    outlet.finish(ENDED)
    assert await everything(outlet) == [event, new, other]


@pytest.mark.parametrize("size", [10, 120], ids=["by number", "by bytes"])
async def test_output_gives_way_then_the_watcher_is_let_go(size: int) -> None:
    outlet = Outlet(BOUNDS)
    let_go: list[bool] = []
    outlet.dropped = lambda: let_go.append(True)
    outlet.put(frame(size=size))
    for _ in range(20):
        outlet.put(frame("output", size))
    assert not let_go
    events = [frame(size=size) for _ in range(20)]
    for one in events:
        outlet.put(one)
    assert (outlet.end, let_go) == (SLOW, [True])
    assert await outlet.next() is None


async def test_events_are_kept_as_long_as_they_fit() -> None:
    outlet = Outlet(BOUNDS)
    for _ in range(5):
        outlet.put(frame("output"))
    events = [frame() for _ in range(10)]
    for one in events:
        outlet.put(one)
    outlet.finish(ENDED)
    assert await everything(outlet) == events


# --- text of running calls ---


def test_text_is_joined_and_counted() -> None:
    spoken = Spoken()
    for piece in ("Solar ", "storage ", "is"):
        spoken.add(piece)
    assert (spoken.take(), spoken.n) == ("Solar storage is", 1)
    assert (spoken.take(), spoken.n) == ("", 1)
    spoken.add(" cheap")
    assert (spoken.take(), spoken.n) == (" cheap", 2)


def test_a_frame_of_text_is_bounded_and_nothing_is_torn() -> None:
    spoken, text = Spoken(), "ü☀" * 10_000
    spoken.add(text)
    taken = []
    while one := spoken.take():
        assert len(one.encode()) <= OUTPUT_BYTES_MAX
        taken.append(one)
    assert "".join(taken) == text
    assert spoken.n == len(taken)


def test_text_that_comes_too_fast_is_left_out_and_the_count_shows_it() -> None:
    spoken, piece = Spoken(), "x" * 1024
    for _ in range(2 * OUTPUT_KEPT_MAX // 1024):
        spoken.add(piece)
    before = 0
    while spoken.take():
        before += 1
    spoken.add("again")
    assert (spoken.take(), spoken.n) == ("again", before + 2)
