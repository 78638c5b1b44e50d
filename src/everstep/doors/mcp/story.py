"""A task as its journal tells it, read through `/v1`: what every message and every poll is rendered from."""

import json
from collections.abc import Sequence
from typing import Final

from everstep.domain.errors import NotFound
from everstep.domain.events import Recorded
from everstep.domain.fold import fold
from everstep.domain.record import record
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import Sealed
from everstep.doors.api.channel import ENDS, STANDS
from everstep.doors.mcp.channel import LONG_POLL_S, Ask, Caller, Channel, ask, good
from everstep.wire.event import EventPage, Unreadable, decode, loads, page_of

__all__ = ["ENDS", "STANDS", "Story", "read_story", "standing", "story_of"]

VALUE_BYTES_MAX: Final = 1024 * 1024
"""Larger values are named, not shown."""
PAGE: Final = 500


@record
class Story:
    """The events of one generation, and the state they come to."""

    state: TaskState
    events: Sequence[Recorded]


async def read_story(channel: Channel, caller: Caller, task: str, generation: int | None = None) -> Story:
    """The journal of a task, up to the end of a generation; raises NotFound for another owner's."""
    lines: list[bytes] = []
    after, head = 0, 1
    while after < head:
        page = await _page(channel, caller, f"/v1/tasks/{task}/events?after={after}&limit={PAGE}")
        lines += map(bytes, page.events)
        after, head = page.next_after, page.head_seq
        if not page.events:
            break
    if not lines:
        raise NotFound("no such task")
    return await story_of(channel, caller, lines, generation)


async def standing(channel: Channel, caller: Caller, task: str) -> Story:
    """The same once the task has ended, or waits for somebody."""
    path = f"/v1/tasks/{task}/events?after=0&limit={PAGE}&until=end&wait={LONG_POLL_S}"
    while True:
        lines = [*map(bytes, (await _page(channel, caller, path)).events)]
        whole = len(lines) < PAGE
        story = await (story_of(channel, caller, lines) if whole else read_story(channel, caller, task))
        if story.state.terminal or story.state.status is TaskStatus.PAUSED:
            return story


async def _page(channel: Channel, caller: Caller, path: str) -> EventPage:
    return page_of(await good(channel, caller, Ask(method="GET", path=path)))


async def story_of(channel: Channel, caller: Caller, lines: Sequence[bytes], generation: int | None = None) -> Story:
    """What these events, from the first one on, come to; up to the end of a generation."""
    try:
        told = [decode(line) for line in lines]
    except Unreadable:  # a plan that is too long for its event
        task = loads(lines[0])["task"]
        plan = json.dumps((await ask(channel, caller, f"GET /v1/tasks/{task}/plan?revision=1"))["plan"]).encode()
        told = [decode(line, lambda _digest: plan) for line in lines]
    told = [event for event in told if generation is None or event.generation <= generation]
    state: TaskState | None = None
    for event in told:
        state = fold(state, caller.owner, event)
    assert state is not None
    for sealed in (state.inputs, state.outputs, *(step.output for step in state.steps.values())):
        await _fetch(channel, caller, state.id, sealed)
    return Story(state=state, events=told)


async def _fetch(channel: Channel, caller: Caller, task: str, sealed: Sealed | None) -> None:
    if sealed is None or sealed.present or sealed.size_bytes > VALUE_BYTES_MAX:
        return
    status, value = await channel.request(caller, Ask(method="GET", path=f"/v1/tasks/{task}/artifacts/{sealed.digest}"))
    if status < 300:
        sealed.value, sealed.present = json.loads(value), True
