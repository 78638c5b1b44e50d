"""From the journal to spans: a task, its steps, their attempts. Pure but for what it remembers.

Ids follow from the journal, so every process that carries a part of a task writes into the same trace, and an attempt
can point at the one before it although another process made that. Nothing of a step's values is in a span.
"""

from collections import OrderedDict
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final, TypeAlias

from everstep.domain import events as e
from everstep.domain.ids import Instant, StepPath, TaskId
from everstep.domain.record import record

Value: TypeAlias = str | int | float | bool
Attributes: TypeAlias = dict[str, Value]
KEPT_MAX: Final = 10_000
"""Tasks and calls whose beginning is remembered."""


@record
class Place:
    """Which span of which trace."""

    trace: int
    span: int


Links: TypeAlias = tuple[tuple[Place, str], ...]
"""Spans that one follows from, and why."""


@record
class Span:
    """Something that began and ended."""

    name: str
    place: Place
    parent: Place | None
    began: Instant
    ended: Instant
    attributes: Attributes
    error: str | None = None
    links: Links = ()


@record
class Begun:
    """A task that was made, as it will be told of when it ends."""

    at: Instant
    plan: str | None = None
    links: Links = ()


def place_of(task: TaskId, *rest: object) -> Place:
    """Of a task; of a step, with its path; of an attempt, with its number too."""
    trace = int.from_bytes(sha256(task.encode()).digest()[:16])
    span = int.from_bytes(sha256("\0".join([task, *map(str, rest)]).encode()).digest()[:8])
    return Place(trace=trace, span=span)


class Spans:
    """What has begun and not ended, as far as this process has seen it."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[TaskId, Begun] = OrderedDict()
        self._calls: OrderedDict[tuple[TaskId, StepPath], e.Recorded] = OrderedDict()
        self._epochs: OrderedDict[tuple[TaskId, StepPath], int] = OrderedDict()

    def of(self, event: e.Recorded) -> Iterator[Span]:
        """What has ended with this event."""
        match event.body:
            case e.TaskCreated() as body:
                self._created(event, body)
            case e.AttemptStarted():
                assert event.step is not None
                _keep(self._calls, (event.task, event.step), event)
            case e.AttemptEnded() as body:
                yield from self._attempt(event, event.body.TYPE.removeprefix("attempt."), body.error, body.duration_s)
            case e.StepCompleted() as body:
                if body.attempt is not None:
                    yield from self._attempt(event, "succeeded", None, body.duration_s)
                more: Attributes = {} if body.tool_used is None else {"everstep.tool": body.tool_used}
                yield self._step(event, body.duration_s, {"everstep.via": body.via, **more})
            case e.StepFailed() as body:
                yield self._step(event, body.duration_s, _failure(body.error), body.error.failure.message)
            case e.TaskCompleted() | e.TaskFailed() | e.TaskCancelled() as body:
                yield self._ended(event, body)
            case _:
                pass

    def _created(self, event: e.Recorded, body: e.TaskCreated) -> None:
        links: Links = ()
        if body.parent is not None:
            links = ((place_of(body.parent.task, *([body.parent.step] if body.parent.step else [])), body.parent.link),)
        _keep(self._tasks, event.task, Begun(at=event.at, plan=body.plan.name, links=links))

    def _attempt(self, event: e.Recorded, status: str, error: e.ErrorRecord | None, length_s: float) -> Iterator[Span]:
        """The call that this event ends, if there was one."""
        assert event.step is not None
        where = (event.task, event.step)
        begun = self._calls.pop(where, None)
        if begun is None:  # it began in another process: only its length is known
            began, number = Instant(event.at - round(length_s * 1000)), _number(event.body)
            more: Attributes = {}
        else:
            intent: Any = begun.body
            began, number = begun.at, intent.attempt
            more = {
                "everstep.tool": intent.tool,
                "everstep.tool.version": intent.tool_version,
                "everstep.effect": intent.effect.value,
                "everstep.epoch": intent.epoch,
                "everstep.worker": intent.worker,
            }
        if number is None:
            return
        yield Span(
            name=f"attempt {event.step}#{number}",
            place=place_of(event.task, event.step, number),
            parent=place_of(event.task, event.step),
            began=began,
            ended=event.at,
            attributes={
                **_ids(event),
                "everstep.attempt": number,
                "everstep.status": status,
                **more,
                **_failure(error),
            },
            error=None if error is None else error.failure.message,
            links=self._before(where, number, more.get("everstep.epoch")),
        )

    def _before(self, where: tuple[TaskId, StepPath], number: int, epoch: Value | None) -> Links:
        """The attempt before: a retry of it, or, if another incarnation made it, its recovery."""
        known = self._epochs.pop(where, None)
        if isinstance(epoch, int):
            _keep(self._epochs, where, epoch)
        if number == 1:
            return ()
        why = "retry" if known is not None and known == epoch else "recovery"
        return ((place_of(where[0], where[1], number - 1), why),)

    def _step(self, event: e.Recorded, length_s: float, more: Attributes, error: str | None = None) -> Span:
        assert event.step is not None
        self._epochs.pop((event.task, event.step), None)
        return Span(
            name=f"step {event.step}",
            place=place_of(event.task, event.step),
            parent=place_of(event.task),
            began=Instant(event.at - round(length_s * 1000)),
            ended=event.at,
            attributes={**_ids(event), "everstep.status": event.body.TYPE.removeprefix("step."), **more},
            error=error,
        )

    def _ended(self, event: e.Recorded, body: e.TaskCompleted | e.TaskFailed | e.TaskCancelled) -> Span:
        length_s = 0.0 if isinstance(body, e.TaskCancelled) else body.duration_s
        unknown = Begun(at=Instant(event.at - round(length_s * 1000)))
        begun = self._tasks.pop(event.task, unknown)
        failed = body.error if isinstance(body, e.TaskFailed) else None
        plan: Attributes = {} if begun.plan is None else {"everstep.plan": begun.plan}
        return Span(
            name=f"task {begun.plan or ''}".rstrip(),
            place=place_of(event.task),
            parent=None,
            began=begun.at,
            ended=event.at,
            attributes={**_ids(event), "everstep.status": body.TYPE.removeprefix("task."), **plan, **_failure(failed)},
            error=None if failed is None else failed.failure.message,
            links=begun.links,
        )


def _ids(event: e.Recorded) -> Attributes:
    ids: Attributes = {"everstep.task": event.task, "everstep.generation": event.generation}
    return ids if event.step is None else {**ids, "everstep.step": event.step}


def _number(body: e.Body) -> int | None:
    number = getattr(body, "attempt", None)
    return number if isinstance(number, int) else None


def _failure(error: e.ErrorRecord | None) -> Attributes:
    if error is None:
        return {}
    return {
        "error.type": error.failure.code,
        "everstep.category": error.failure.category.value,
        "everstep.error": error.id,
    }


def _keep(kept: "OrderedDict[Any, Any]", key: object, value: object) -> None:
    """The newest; of too many the oldest is forgotten."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > KEPT_MAX:
        kept.popitem(last=False)
