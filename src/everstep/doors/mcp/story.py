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
from everstep.doors.mcp.channel import LONG_POLL_S, Ask, Caller, Channel, Json, ask
from everstep.wire.event import decode

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
    lines: list[Json] = []
    after, head = 0, 1
    while after < head:
        page = await ask(channel, caller, f"GET /v1/tasks/{task}/events?after={after}&limit={PAGE}")
        lines += page["events"]
        after, head = int(page["next_after"]), int(page["head_seq"])
        if not page["events"]:
            break
    if not lines:
        raise NotFound("no such task")
    return await story_of(channel, caller, task, [one for one in lines if _told_by(one, generation)])


async def standing(channel: Channel, caller: Caller, task: str) -> Story:
    """The same once the task has ended, or waits for somebody."""
    path = f"/v1/tasks/{task}/events?after=0&limit={PAGE}&until=end&wait={LONG_POLL_S}"
    while True:
        lines: list[Json] = (await ask(channel, caller, f"GET {path}"))["events"]
        whole = len(lines) < PAGE
        story = await (story_of(channel, caller, task, lines) if whole else read_story(channel, caller, task))
        if story.state.terminal or story.state.status is TaskStatus.PAUSED:
            return story


def _told_by(line: Json, generation: int | None) -> bool:
    return generation is None or line["generation"] <= generation


async def story_of(channel: Channel, caller: Caller, task: str, lines: Sequence[Json]) -> Story:
    """What these events, from the first one on, come to."""
    first = lines[0]["data"]
    if "artifact" in first["plan"]:  # too long for its event
        first["plan"] = (await ask(channel, caller, f"GET /v1/tasks/{task}/plan?revision=1"))["plan"]
    told = [decode(json.dumps(line)) for line in lines]
    state: TaskState | None = None
    for event in told:
        state = fold(state, caller.owner, event)
    assert state is not None
    for sealed in (state.inputs, state.outputs, *(step.output for step in state.steps.values())):
        await _fetch(channel, caller, task, sealed)
    return Story(state=state, events=told)


async def _fetch(channel: Channel, caller: Caller, task: str, sealed: Sealed | None) -> None:
    if sealed is None or sealed.present or sealed.size_bytes > VALUE_BYTES_MAX:
        return
    status, value = await channel.request(caller, Ask(method="GET", path=f"/v1/tasks/{task}/artifacts/{sealed.digest}"))
    if status < 300:
        sealed.value, sealed.present = value, True
