"""Large values of a task: which there are, and their bytes, as a whole or in part. Shown to nobody: downloaded."""

import re
from collections.abc import Iterator
from typing import Final

from everstep.domain.attempts import History
from everstep.domain.errors import NotFound
from everstep.domain.ids import Digest, StepPath
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, Sealed
from everstep.doors.api.context import Asked, Backing, find_task, journal
from everstep.doors.api.request import NO_STORE, Response, reply
from everstep.wire.payload import MEDIA_TYPE
from everstep.wire.values import canonical

DOWNLOAD: Final = {
    **NO_STORE,
    "content-type": "application/octet-stream",
    "content-disposition": "attachment",
    "content-security-policy": "sandbox",
    "accept-ranges": "bytes",
}
_RANGE: Final = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


async def list_all(back: Backing, asked: Asked) -> Response:
    """What calls left, by step and name; other large values each once, with where it was seen first."""
    state = await find_task(back, asked)
    history = await journal(back, state.id)
    seen: dict[object, JsonObject] = {
        (path, left.name, left.digest): {**left.handle(), "step": path, "untrusted": True}
        for path, left in history.artifacts
    }
    for name, step, sealed in _values(state, history):
        if sealed.by_reference and sealed.digest not in seen:
            seen[sealed.digest] = {
                "digest": sealed.digest,
                "name": name,
                "step": step,
                "media_type": MEDIA_TYPE,
                "bytes": sealed.size_bytes,
                "untrusted": sealed.untrusted,
            }
    return reply({"items": [*seen.values()], "next_cursor": None})


async def get(back: Backing, asked: Asked) -> Response:
    """The whole of a value, or the part that `Range` names, if it is one of this task's."""
    state = await find_task(back, asked)
    history, digest = await journal(back, state.id), asked.params["digest"]
    if any(left.digest == digest for _, left in history.artifacts):
        return _answer(asked, await back.desk.content(Digest(digest)))
    for _, _, sealed in _values(state, history):
        if sealed.digest == digest:
            kept = sealed.by_reference  # as its very bytes: a large value is not read and written to be shown in part
            return _answer(asked, await back.desk.content(sealed.digest) if kept else canonical(sealed.value))
    raise NotFound("the task has no such artifact", what_to_do=f"everstep show {state.id}")


def _answer(asked: Asked, body: bytes) -> Response:
    part = None if asked.request.local else _part(asked.request.headers.get("range"), len(body))
    if part is None:
        return Response(status=200, headers=DOWNLOAD, body=body)
    first, last = part
    headers = {**DOWNLOAD, "content-range": f"bytes {first}-{last}/{len(body)}"}
    return Response(status=206, headers=headers, body=body[first : last + 1])


def _values(state: TaskState, history: History) -> Iterator[tuple[str, StepPath | None, Sealed]]:
    found: list[tuple[str, StepPath | None, Sealed | None]] = [
        ("inputs", None, state.inputs),
        ("outputs", None, state.outputs),
    ]
    found += [("output", path, step.output) for path, step in state.steps.items()]
    found += [("items", path, step.items) for path, step in state.steps.items()]
    found += [("input", path, attempt.input) for path, tries in history.attempts.items() for attempt in tries]
    yield from ((name, step, sealed) for name, step, sealed in found if sealed is not None)


def _part(said: str | None, size: int) -> tuple[int, int] | None:
    """The first and last byte; None for the whole, also where a range cannot be given."""
    found = _RANGE.fullmatch(said or "")
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:
        first, last = max(0, size - int(found[2])), size - 1
    else:
        first, last = int(found[1]), min(int(found[2] or size - 1), size - 1)
    return (first, last) if first <= last else None
