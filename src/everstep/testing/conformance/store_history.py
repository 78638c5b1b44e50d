"""History: gathered from the journal behind a cursor, kept as sketches, each end counted once."""

from dataclasses import replace

from everstep.domain.events import Draft, ErrorRecord, PauseAnswered, StepCompleted, StepRetryScheduled, TaskResumed
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.history import STANDING, HistoryKey, HistoryRow, Kind, grouped, hour_of
from everstep.domain.ids import StepPath
from everstep.domain.states import TaskStatus
from everstep.domain.values import JsonValue
from everstep.ports.history import Gathered, HistoryFilter, Observed
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE, TWO
from everstep.testing.conformance.stage import Rig, Scene, done, scene

HOUR = hour_of(f.NOW)
MANY = 10_000


async def calls(on: Scene, owner: str = "local") -> None:
    """A task whose first call fails after 2 s and waits 1 s, whose second takes 300 ms, and which then completes."""
    state = await on.held(owner=owner, at=f.later(-4))
    done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
    failed = f.failed_attempt(ONE, "http_503")
    failure = Failure(
        code="http_503",
        category=Category.TRANSIENT,
        message="down",
        what_to_do="wait",
        effect_state=EffectState.NONE,
    )
    error = ErrorRecord(id="e_1", failure=failure, attempt=1, retry_at=f.later(3))
    retry = Draft(body=StepRetryScheduled(attempt=1, error=error, new_key=True), step=ONE)
    done(await on.commit(f.step_commit(await on.load(state.id), failed, retry, at=f.later(2))))
    again = f.step_commit(await on.load(state.id), proposals=(f.proposal(ONE, attempt=2),), at=f.later(3))
    done(await on.commit(again))
    ends = (ended(ONE, 2), ended(TWO, None, "supplied"), ended(f.THREE, None, "literal"), f.finished())
    last = f.step_commit(await on.load(state.id), *ends, at=f.later(3.3))
    done(await on.commit(last))


def ended(step: StepPath, attempt: int | None, via: str = "tool") -> Draft:
    """A step that completed, by a call or without one."""
    body = f.completed(step).body
    assert isinstance(body, StepCompleted)
    return Draft(body=replace(body, attempt=attempt, via=via), step=step)


def told(gathered: Gathered) -> list[tuple[str, str, str, int, int]]:
    """What was seen, short."""
    found = [(one.key.kind.value, one.key.name, one.key.outcome, one.ms, one.count) for one in gathered.observed]
    return sorted(found)


async def ends_are_gathered_from_the_journal(rig: Rig) -> None:
    async with scene(rig) as on:
        await calls(on)
        await calls(on)
        gathered = await on.store.history.gather(frozenset(), MANY)
        expected = [
            ("phase", "queued", "", 4000, 2),
            ("plan", "brief", "success", 1000, 2),
            ("tool", "echo", "failed", 2000, 2),
            ("tool", "echo", "retry", 1000, 2),
            ("tool", "echo", "succeeded", 300, 2),
        ]
        counted: dict[tuple[str, str, str, int], int] = {}
        for kind, name, outcome, ms, count in told(gathered):
            counted[kind, name, outcome, ms] = counted.get((kind, name, outcome, ms), 0) + count
        assert [(*what, count) for what, count in counted.items()] == expected
        assert {one.hour for one in gathered.observed} == {HOUR}
        assert {(one.key.plan, one.key.step) for one in gathered.observed if one.key.kind is Kind.TOOL} == {
            ("brief", "one")
        }


async def calls_of_sized_tools_come_with_their_arguments(rig: Rig) -> None:
    async with scene(rig) as on:
        await calls(on)
        gathered = await on.store.history.gather(frozenset({"echo"}), MANY)
        tools = [one for one in gathered.observed if one.key.kind is Kind.TOOL]
        arguments: list[JsonValue] = [one.input.value for one in tools if one.input is not None]
        assert arguments == [{"text": "one"}] * 3
        assert sum(one.count for one in tools) == 3


async def answers_tell_how_long_somebody_was_waited_for(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.load(await on.created())
        pause, *drafts = f.paused(ONE)
        done(await on.command(f.command(state, *drafts)))
        answered = Draft(body=PauseAnswered(pause=pause, answer="resume"), step=ONE)
        resumed = Draft(body=TaskResumed(pause=pause, to=TaskStatus.QUEUED))
        loaded = await on.load(state.id)
        done(await on.command(f.command(loaded, answered, resumed, pause=pause, at=f.later(60))))
        gathered = await on.store.history.gather(frozenset(), MANY)
        assert told(gathered) == [("phase", "awaiting_person", "resume", 60_000, 1)]


async def calls_of_late_are_told_in_order(rig: Rig) -> None:
    async with scene(rig) as on:
        await calls(on)
        await calls(on, owner="eve")
        seen = await on.store.history.recent(MANY)
        assert [(one.owner, one.plan, one.step, one.tool, one.ms) for one in seen] == [
            (owner, "brief", "one", "echo", 300) for owner in ("local", "eve")
        ]


async def tasks_are_counted_for_their_owner(rig: Rig) -> None:
    async with scene(rig) as on:
        await calls(on)
        await on.created()
        await on.created(owner="eve")
        assert await on.store.history.statuses("local", None) == {"completed": 1, "queued": 1}
        assert await on.store.history.statuses("local", "brief") == {"completed": 1, "queued": 1}
        assert await on.store.history.statuses("local", "other") == {}
        assert await on.store.history.statuses("eve", None) == {"queued": 1}


async def what_is_kept_is_kept_once(rig: Rig) -> None:
    """The cursor moves with the rows: the same part again is refused, and the next one is empty."""
    async with scene(rig) as on:
        await calls(on)
        gathered = await on.store.history.gather(frozenset(), MANY)
        assert await on.store.history.keep(gathered, rows_of(gathered))
        assert not await on.store.history.keep(gathered, rows_of(gathered))
        rest = await on.store.history.gather(frozenset(), MANY)
        assert (rest.observed, rest.after) == ((), rest.upto)
        await calls(on)
    async with scene(rig) as on:
        again = await on.store.history.gather(frozenset(), MANY)
        assert await on.store.history.keep(again, rows_of(again))
        (standing,) = [row for row in await kept(on, since=STANDING) if is_success(row) and row.bucket == STANDING]
        assert (standing.sketch.n, standing.sketch.total_ms) == (2, 600)
        (hourly,) = [row for row in await kept(on) if is_success(row)]
        assert (hourly.bucket, hourly.key.plan, hourly.key.step, hourly.sketch.n) == (HOUR, "brief", "one", 2)


async def the_journal_is_gathered_part_by_part(rig: Rig) -> None:
    async with scene(rig) as on:
        await calls(on)
        parts = 0
        while (gathered := await on.store.history.gather(frozenset(), 4)).upto > gathered.after:
            assert await on.store.history.keep(gathered, rows_of(gathered))
            parts += 1
        assert parts >= 3
        counted = {(row.key.kind.value, row.key.outcome): row.sketch.n for row in await kept(on)}
        assert counted == {
            ("phase", ""): 1,
            ("plan", "success"): 1,
            ("tool", "failed"): 1,
            ("tool", "retry"): 1,
            ("tool", "succeeded"): 1,
        }


async def history_is_the_owners(rig: Rig) -> None:
    async with scene(rig) as on:
        await calls(on)
        await calls(on, owner="ana")
        gathered = await on.store.history.gather(frozenset(), MANY)
        await on.store.history.keep(gathered, rows_of(gathered))
        for owner in ("local", "ana"):
            found = await on.store.history.rows(
                HistoryFilter(owner=owner, kind=Kind.TOOL, since=STANDING, until=STANDING)
            )
            assert {(row.key.owner, row.sketch.n) for row in found} == {(owner, 1)}
            assert len(found) == 3


async def old_hours_are_forgotten(rig: Rig) -> None:
    async with scene(rig) as on:
        key = HistoryKey("local", Kind.TOOL, "echo", "succeeded")
        observed = (Observed(key, HOUR - 1, 5), Observed(key, HOUR, 7))
        gathered = Gathered(after=0, upto=0, observed=observed)
        assert await on.store.history.keep(gathered, rows_of(gathered))
        await on.store.history.forget(HOUR)
        assert [(row.bucket, row.sketch.n) for row in await kept(on, since=STANDING)] == [(STANDING, 2), (HOUR, 1)]
        assert [row.bucket for row in await on.store.history.rows(HistoryFilter(until=HOUR))] == [HOUR]


def rows_of(gathered: Gathered) -> list[HistoryRow]:
    """As the engine keeps them."""
    return grouped((one.key, one.hour, one.ms, one.count) for one in gathered.observed)


async def kept(on: Scene, since: int = 1) -> list[HistoryRow]:
    """All rows."""
    return [*await on.store.history.rows(HistoryFilter(since=since))]


def is_success(row: HistoryRow) -> bool:
    """Of calls."""
    return row.key.outcome == "succeeded"
