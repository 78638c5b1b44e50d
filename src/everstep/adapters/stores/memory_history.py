"""History of a store in memory: the same rules, event by event. There is no one order of commits, so each task has a
mark of its own; the cursor counts all events.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from everstep.adapters.stores import gathering
from everstep.adapters.stores.kept import Kept
from everstep.domain import events as e
from everstep.domain.history import HistoryKey, HistoryRow, hour_of, merged
from everstep.domain.ids import Instant, TaskId, split_path
from everstep.domain.pauses import Pause
from everstep.domain.regression import Timed
from everstep.domain.sketch import Sketch
from everstep.ports.history import Gathered, HistoryFilter, Observed
from everstep.ports.store import Journaled
from everstep.wire.event import decode


class MemoryHistory:
    """The verbs of `History` on dictionaries."""

    def __init__(self, tasks: Mapping[TaskId, Kept]) -> None:
        self._tasks = tasks
        self._rows: dict[tuple[HistoryKey, int], Sketch] = {}
        self._marks: dict[TaskId, int] = {}
        self._seen: dict[TaskId, int] = {}
        """Marks of what was gathered last, and not kept yet."""

    async def gather(self, sized: frozenset[str], limit: int) -> Gathered:
        """The next part of every journal."""
        after = sum(self._marks.values())
        observed: list[Observed] = []
        self._seen = dict(self._marks)
        for task, kept in self._tasks.items():
            mark = self._marks.get(task, 0)
            part = kept.events[mark : mark + limit]
            if not part:
                continue
            limit -= len(part)
            self._seen[task] = mark + len(part)
            told = _Told(kept)
            observed += told.observed(mark, len(part), sized)
            if limit <= 0:
                break
        return Gathered(after=after, upto=sum(self._seen.values()), observed=tuple(observed))

    async def keep(self, gathered: Gathered, rows: Sequence[HistoryRow]) -> bool:
        """All of it, unless the cursor has moved."""
        if gathered.after != sum(self._marks.values()) or gathered.upto != sum(self._seen.values()):
            return False
        for row in rows:
            place = (row.key, row.bucket)
            self._rows[place] = merged(self._rows.get(place), row)
        self._marks = dict(self._seen)
        return True

    async def rows(self, which: HistoryFilter) -> Sequence[HistoryRow]:
        """What is kept."""
        found = [
            HistoryRow(key=key, bucket=bucket, sketch=sketch)
            for (key, bucket), sketch in self._rows.items()
            if which.since <= bucket
            and (which.until is None or bucket <= which.until)
            and which.owner in (None, key.owner)
            and which.kind in (None, key.kind)
            and which.plan in (None, key.plan)
        ]
        return sorted(found, key=lambda row: (row.bucket, row.key.owner, row.key.kind, row.key.name))

    async def recent(self, limit: int) -> Sequence[Timed]:
        """Calls that succeeded, of late; by time, since there is no one order of commits."""
        told = [pair for kept in self._tasks.values() for pair in _Told(kept).succeeded()]
        return [timed for _, timed in sorted(told, key=lambda pair: pair[0])][-limit:]

    async def statuses(self, owner: str, plan: str | None) -> Mapping[str, int]:
        """How many of their tasks stand where."""
        mine = [kept for kept in self._tasks.values() if kept.new.owner == owner and plan in (None, kept.new.plan_name)]
        return Counter(kept.row.status.value for kept in mine)

    async def forget(self, before: int) -> None:
        """Hours before this one."""
        self._rows = {place: row for place, row in self._rows.items() if not 0 < place[1] < before}


class _Told:
    """One journal: an end is understood by its intent, an answer by what was asked; both are looked for backwards."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._owner, self._plan = kept.new.owner, kept.new.plan_name

    def observed(self, mark: int, count: int, sized: frozenset[str]) -> list[Observed]:
        """What these events tell."""
        part = self._kept.events[mark : mark + count]
        told = (decode(one.encoded) for one in part if one.type != e.TaskCreated.TYPE)
        return [seen for event in told for seen in self._of(event, sized)]

    def succeeded(self) -> Iterator[tuple[Instant, Timed]]:
        """Calls that did, and when."""
        for one in self._kept.events:
            if one.type != e.StepCompleted.TYPE:
                continue
            event = decode(one.encoded)
            if isinstance(body := event.body, e.StepCompleted) and body.attempt and body.via in gathering.CALLED:
                ms = max(0, event.at - self._intent(event).at)
                yield event.at, Timed(self._owner, self._plan, _step(event), body.tool_used or "", ms)

    def _intent(self, end: e.Recorded) -> e.Recorded:
        """Of the attempt that it ends."""
        intents = self._earlier(end, e.AttemptStarted.TYPE)
        return next(decode(one.encoded) for one in intents if one.step == end.step)

    def _asked(self, answered: e.Recorded, name: str) -> tuple[Instant, Pause]:
        """When this pause was opened, and what it is."""
        for one in self._earlier(answered, e.PauseOpened.TYPE):
            event = decode(one.encoded)
            assert isinstance(event.body, e.PauseOpened)
            if event.body.pause.id == name:
                return event.at, event.body.pause
        raise AssertionError(f"{name} was never opened")

    def _earlier(self, event: e.Recorded, type: str) -> Iterator[Journaled]:
        """Events of this type before that one, the latest first."""
        earlier = (self._kept.events[place] for place in range(event.seq - 2, -1, -1))
        return (one for one in earlier if one.type == type)

    def _of(self, event: e.Recorded, sized: frozenset[str]) -> Iterator[Observed]:
        hour, body = hour_of(event.at), event.body
        match body:
            case e.StepCompleted() if body.attempt is not None and body.via in gathering.CALLED:
                yield self._call(event, sized)
            case e.AttemptEnded() if body.called:
                yield self._call(event, sized)
            case e.StepRetryScheduled() if body.counted:
                wait = (body.error.retry_at or event.at) - event.at
                intent = self._intent(event).body
                assert isinstance(intent, e.AttemptStarted)
                key = gathering.retry_key(self._owner, self._plan, _step(event), tool=intent.tool)
                yield Observed(key, hour, max(0, wait), input=intent.input if intent.tool in sized else None)
            case e.TaskCompleted() | e.TaskFailed():
                outcome = body.outcome if isinstance(body, e.TaskCompleted) else None
                key = gathering.plan_key(self._owner, self._plan, body.TYPE, outcome)
                yield Observed(key, hour, round(body.duration_s * 1000))
            case e.TaskCancelled():
                began = self._kept.row.started_at or self._kept.new.at
                yield Observed(
                    gathering.plan_key(self._owner, self._plan, body.TYPE, None), hour, max(0, event.at - began)
                )
            case e.TaskStarted() if event.seq == 2:
                yield Observed(
                    gathering.queued_key(self._owner, self._plan), hour, max(0, event.at - self._kept.new.at)
                )
            case e.PauseAnswered() | e.PauseExpired():
                opened_at, pause = self._asked(event, body.pause)
                if pause.step is not None:
                    answer = body.answer if isinstance(body, e.PauseAnswered) else None
                    step = split_path(pause.step)[0]
                    key = gathering.pause_key(self._owner, self._plan, step, type=pause.type, answer=answer)
                    yield Observed(key, hour, max(0, event.at - opened_at))
            case _:
                pass

    def _call(self, event: e.Recorded, sized: frozenset[str]) -> Observed:
        intent = self._intent(event)
        assert isinstance(intent.body, e.AttemptStarted)
        tool = intent.body.tool
        key = gathering.call_key(self._owner, self._plan, _step(event), tool=tool, type=event.body.TYPE)
        arguments = intent.body.input if tool in sized else None
        return Observed(key, hour_of(event.at), max(0, event.at - intent.at), input=arguments)


def _step(event: e.Recorded) -> str:
    assert event.step is not None
    return split_path(event.step)[0]
