"""What a call leaves behind before it ends: checkpoints, from which a later attempt goes on."""

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from typing import Final

from everstep.domain.ids import StepPath, TaskId
from everstep.domain.limits import NEAR, TaskLimitNear
from everstep.domain.task import Intent, Lease
from everstep.domain.values import JsonValue, NotJson
from everstep.engine.kit import Kit
from everstep.engine.leaving import LeavingCall
from everstep.engine.nearing import tell_near
from everstep.engine.patience import patiently
from everstep.ports.marks import Mark
from everstep.ports.sink import Sink
from everstep.ports.tool import Log, Misconfigured, ToolError, Uncertain

CURSOR_BYTES_MAX: Final = 16 * 1024
KEEP_MAX_S: Final = 60.0
"""So long a thread waits for its checkpoint: then nobody is there to make it."""


class StandStill(ToolError):
    """Raised inside a call at its checkpoint: the task is being paused, and this is a good place."""

    category = "transient"


class CallLog:
    """Lines of one attempt, on their way to the operator's log."""

    __slots__ = ("_attempt", "_sink", "_step", "_task")

    def __init__(self, sink: Sink, intent: Intent) -> None:
        self._sink = sink
        self._task, self._step, self._attempt = intent.task, intent.step, intent.attempt.number

    def info(self, text: str, **fields: JsonValue) -> None:
        """Worth knowing."""
        self._sink.note(text, task=self._task, step=self._step, attempt=self._attempt, **fields)

    def warning(self, text: str, **fields: JsonValue) -> None:
        """Worth a look."""
        self._sink.note(text, level="warning", task=self._task, step=self._step, attempt=self._attempt, **fields)


class LastingCall(LeavingCall):
    """The part of a `ctx` that knows its intent, and keeps what the call leaves behind."""

    __slots__ = ("_ending", "_telling", "cursor", "owner")

    def __init__(self, intent: Intent, owner: str, kit: Kit) -> None:
        self.owner = owner
        super().__init__(intent, kit)
        self._ending: asyncio.Event | None = None
        self._telling: asyncio.Task[None] | None = None
        self.cursor: JsonValue = None

    @property
    def task_id(self) -> TaskId:
        return self._intent.task

    @property
    def step_id(self) -> StepPath:
        return self._intent.step

    @property
    def attempt(self) -> int:
        return self._intent.attempt.number

    @property
    def idempotency_key(self) -> str:
        return self._intent.attempt.idempotency_key

    @property
    def cancelled(self) -> bool:
        return self._ending is not None and self._ending.is_set()

    @property
    def log(self) -> Log:
        return CallLog(self._kit.sink, self._intent)

    async def recall(self, settled: int) -> None:
        """Where an earlier attempt of the same call has come to, unless that means nothing any more."""
        attempt = self._intent.attempt
        task, step, marks = self._intent.task, self._intent.step, self._kit.store.marks
        mark = await patiently(lambda: marks.find(task, step), task, self._kit)
        if mark is not None and mark.attempt > settled and mark.of(attempt.tool, attempt.input.digest):
            self.cursor = mark.cursor

    def checkpoint(self, cursor: JsonValue) -> Awaitable[None]:
        """Durable when awaited; in a thread already when this returns."""
        return _from_anywhere(self._keep(cursor), self._kit)

    def nearing(self, limit: str, used: float, most: float) -> None:
        """Somebody is told; once is enough."""
        if used >= NEAR * most and self._telling is None:
            near = TaskLimitNear(limit=limit, used=used, max=most)
            self._telling = self._kit.loop.create_task(tell_near(near, self._intent.task, self.owner, self._kit))

    async def _keep(self, cursor: JsonValue) -> None:
        kit, attempt = self._kit, self._intent.attempt
        cursor = kit.catalog.redactor.value(cursor) if kit.catalog.redactor else cursor
        try:
            size = len(kit.codec.payload(cursor))
        except NotJson as error:
            raise Misconfigured(f"a checkpoint is a small JSON value: {error}") from error
        if size > CURSOR_BYTES_MAX:
            raise Misconfigured(f"the checkpoint has {size} bytes, {CURSOR_BYTES_MAX} are allowed")
        lease = Lease(task=self._intent.task, epoch=attempt.epoch, worker=attempt.worker)
        mark = Mark(attempt=attempt.number, tool=attempt.tool, input=attempt.input.digest, cursor=cursor)
        kept = await kit.store.marks.put(lease, self._intent.step, mark)
        if kept == "gone" or self.cancelled:
            raise Uncertain("somebody else makes this call by now", code="not_ours")
        if kept == "pausing":
            raise StandStill("the task is to stand still")


class Kept:
    """What awaiting has nothing to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


def _from_anywhere(work: Coroutine[object, object, None], kit: Kit) -> Awaitable[None]:
    """On the engine's loop it begins at once and can be awaited; elsewhere it is done when this returns."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if here is kit.loop:
        return kit.loop.create_task(work)
    asyncio.run_coroutine_threadsafe(work, kit.loop).result(KEEP_MAX_S)
    return Kept()
