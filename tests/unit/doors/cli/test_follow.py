"""Following a task: what ends it, and what happens when the engine goes away meanwhile."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from everstep.domain.errors import Unavailable
from everstep.doors.cli.endings import exit_code, waiting_lines
from everstep.doors.cli.follow import Follower, Manner, Stop
from everstep.doors.cli.render import Line
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Ask, Connection, Reply
from everstep.doors.cli.view import TaskView
from tests.unit.doors.cli.stories import PAUSE, Story, task

Json = dict[str, Any]


class Recorded:
    """An engine that plays its frames, then hangs up or stays silent."""

    own = False

    def __init__(self, *frames: Json, stays: bool = False) -> None:
        self.frames = frames
        self.stays = stays
        self.asked: list[str] = []
        self.heard = asyncio.Event()
        self.streamed: list[str] = []

    async def request(self, asking: Ask) -> Reply:
        self.asked.append(f"{asking.method} {asking.path}")
        self.heard.set()
        return Reply(status=200, body={})

    async def parts(self, path: str) -> AsyncIterator[str]:
        yield path

    async def stream(self, path: str) -> AsyncIterator[Json]:
        self.streamed.append(path)
        for frame in self.frames:
            yield frame
        if self.stays:
            await asyncio.Event().wait()

    def carry(self, task: str) -> None:
        raise AssertionError(task)


class NoScreen:
    """Nobody looks."""

    def __init__(self) -> None:
        self.frames: list[Json] = []

    def begin(self, view: TaskView, *, taken_up: bool) -> None: ...
    def frame(self, frame: Json) -> None:
        self.frames.append(frame)

    def ask(self, lines: Sequence[Line]) -> None: ...
    def remark(self, line: Line) -> None: ...
    def paint(self) -> None: ...
    def close(self) -> None: ...


async def nobody() -> Connection:
    raise Unavailable("nobody answers")


def follower(connection: Connection, **manner: Any) -> Follower:
    how = Manner(**{"reconnect": nobody, **manner})
    return Follower(connection, TaskView.of(task()), NoScreen(), Session(), how)


def completed(story: Story) -> Json:
    return story.event("task.completed", outcome="success", outputs={"value": {}}, issues=[], duration_s=1.0)


async def test_the_end_of_the_task_ends_it() -> None:
    story = Story()
    following = follower(Recorded(story.attempt("hits"), completed(story), stays=True))
    stop = await following.follow()
    assert stop is Stop.ENDED
    assert exit_code(following.view, stop) == 0


async def test_a_new_engine_is_asked_for_the_rest() -> None:
    story = Story()
    first, second = Recorded(story.attempt("hits")), Recorded(completed(story), stays=True)

    async def again() -> Connection:
        return second

    following = follower(first, reconnect=again)
    assert await following.follow() is Stop.ENDED
    assert second.streamed == [f"/v1/tasks/{following.view.id}/events?after=2"]
    assert [frame["event"]["seq"] for frame in following.screen.frames] == [2, 3]  # type: ignore[attr-defined]


async def test_if_nobody_comes_that_is_said() -> None:
    with pytest.raises(Unavailable):
        await follower(Recorded()).follow()


async def test_what_needs_someone_ends_it_unless_told_to_wait() -> None:
    story = Story()
    frames = story.paused(), story.event("task.paused", pause=PAUSE, type="uncertainOutcome")
    following = follower(Recorded(*frames, stays=True))
    stop = await following.follow()
    assert stop is Stop.NEEDS_SOMEONE
    assert exit_code(following.view, stop) == 8
    assert waiting_lines(following.view)[0] == "Waits for you: Did it happen?"
    assert "  do:  everstep answer p_3c8h9qx4 happened --value JSON" in waiting_lines(following.view)
    waiting = follower(Recorded(*frames, stays=True), waits=True, timeout_s=0.05)
    assert await waiting.follow() is Stop.TIMEOUT


async def test_a_reason_of_several_lines_is_shown_as_such() -> None:
    story = Story()
    asked = story.paused("toolError", None)
    asked["event"]["data"]["why"] = "it asks for another call\n- a: x\n+ a: y"
    following = follower(Recorded(asked, story.event("task.paused", pause=PAUSE, type="toolError"), stays=True))
    await following.follow()
    assert waiting_lines(following.view)[1:4] == ["  why: it asks for another call", "       - a: x", "       + a: y"]


async def test_fail_fast_leaves_with_the_first_failure() -> None:
    story = Story()
    assert await follower(Recorded(story.failed("hits"), stays=True), fail_fast=True).follow() is Stop.NEEDS_SOMEONE


async def test_ctrl_c_pauses_and_waits_for_it() -> None:
    story = Story()

    class Obedient(Recorded):
        async def stream(self, path: str) -> AsyncIterator[Json]:
            yield story.attempt("hits")
            os.kill(os.getpid(), signal.SIGINT)
            await self.heard.wait()
            yield story.completed("hits", 1)
            yield story.event("task.paused", pause=PAUSE, type="userRequested")
            await asyncio.Event().wait()

    engine = Obedient()
    following = follower(engine, pauses=True)
    stop = await following.follow()
    assert (stop, exit_code(following.view, stop)) == (Stop.INTERRUPTED, 130)
    assert engine.asked == [f"POST /v1/tasks/{following.view.id}/pause"]
    assert following.view.last_step == "hits"


async def test_ctrl_c_in_watch_only_leaves() -> None:
    class Busy(Recorded):
        async def stream(self, path: str) -> AsyncIterator[Json]:
            yield Story().attempt("hits")
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    engine = Busy()
    assert await follower(engine).follow() is Stop.INTERRUPTED
    assert engine.asked == []
