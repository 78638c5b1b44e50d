"""Breakers in the store: permits are granted in the intent's transaction, and outlive nobody."""

import asyncio
from dataclasses import replace

from everstep.domain.breaker import (
    Ask,
    Breaker,
    BreakerKey,
    BreakerPolicy,
    BreakerState,
    Caller,
    Result,
    Toll,
    Verdict,
)
from everstep.domain.failure import Category
from everstep.domain.ids import Instant
from everstep.domain.task import StepCommit, TaskState
from everstep.ports.store import ErrorFilter
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE
from everstep.testing.conformance.stage import Rig, Scene, done, refused, scene

KEY = BreakerKey("local", "some.tool", "example.org")
POLICY = BreakerPolicy()
RETRY_AT = f.later(POLICY.cool_down_ms / 1000)


def caller(state: TaskState) -> Caller:
    return Caller(task=state.id, step=ONE, attempt=1)


def tells(state: TaskState, results: str = "", at: Instant = f.NOW) -> StepCommit:
    """A commit whose calls succeeded (`S`) or failed (`F`)."""
    verdict = Verdict(
        key=KEY,
        policy=POLICY,
        caller=caller(state),
        results=tuple(Result(at=at, ok=one == "S") for one in results),
        error="down",
    )
    return replace(f.step_commit(state, f.note("x")), at=at, toll=Toll(verdicts=(verdict,)))


def asks(state: TaskState, at: Instant = RETRY_AT) -> StepCommit:
    """A commit that brings an outcome, and would like to call."""
    wish = Ask(key=KEY, caller=caller(state), until=f.later(90))
    commit = f.step_commit(state, f.note("an outcome"), proposals=(f.proposal(ONE),))
    return replace(commit, at=at, toll=Toll(asks=(wish,)))


async def opened(on: Scene) -> Breaker:
    """A breaker after five failures."""
    told = done(await on.commit(tells(await on.held(), "F" * POLICY.failures)))
    (breaker,) = told.breakers
    assert (breaker.state, breaker.retry_at) == (BreakerState.OPEN, RETRY_AT)
    return breaker


async def a_breaker_is_kept_with_what_it_learned(rig: Rig) -> None:
    me = f.worker()
    async with scene(rig, me) as on:
        assert await on.store.troubles.breakers() == []
        breaker = await opened(on)
        assert list(await on.store.troubles.breakers()) == [breaker]
        assert list(await on.store.troubles.breakers("ana")) == []
    async with scene(rig) as on:
        assert list(await on.store.troubles.breakers("local")) == [breaker], "it survives its engine"


async def a_stale_commit_teaches_nothing(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        stale = tells(state, "F" * POLICY.failures)
        done(await on.commit(f.step_commit(state, f.note("first"))))
        refused(await on.commit(stale))
        assert await on.store.troubles.breakers() == []


async def an_open_breaker_refuses_the_call_but_not_the_outcome(rig: Rig) -> None:
    async with scene(rig) as on:
        await opened(on)
        state = await on.held()
        early = done(await on.commit(asks(state, at=Instant(RETRY_AT - 1))))
        assert (early.intents, [one.step for one in early.refused]) == ((), [ONE])
        assert len(early.events) == 1
        assert (await on.load(state.id)).in_flight == ()


async def one_probe_at_a_time(rig: Rig) -> None:
    async with scene(rig) as on:
        await opened(on)
        states = [await on.held() for _ in range(5)]
        answers = [done(one) for one in await asyncio.gather(*(on.commit(asks(state)) for state in states))]
        granted = [one for one in answers if one.intents]
        assert len(granted) == 1, "exactly one probe"
        assert sum(len(one.refused) for one in answers) == 4
        assert all(one.breakers[0].permit is not None for one in answers)


async def a_permit_lapses_with_its_attempt(rig: Rig) -> None:
    async with scene(rig) as on:
        await opened(on)
        first, second = await on.held(), await on.held()
        assert done(await on.commit(asks(first))).intents
        assert not done(await on.commit(asks(second))).intents
        ended = done(await on.commit(tells(await on.load(first.id), at=RETRY_AT)))
        assert (ended.breakers[0].state, ended.breakers[0].permit) == (BreakerState.HALF_OPEN, None)
        assert done(await on.commit(asks(await on.load(second.id)))).intents


async def a_permit_lapses_with_its_worker(rig: Rig) -> None:
    async with scene(rig) as on:
        await opened(on)
        assert done(await on.commit(asks(await on.held()))).intents
    async with scene(rig) as on:
        (breaker,) = await on.store.troubles.breakers()
        assert breaker.permit is not None
        state = await on.held()
        granted = done(await on.commit(asks(state)))
        assert granted.intents, "whoever held the permit is gone"
        assert granted.breakers[0].permit is not None
        assert granted.breakers[0].permit.worker == on.me.id


async def two_good_probes_close_it_and_nothing_is_kept(rig: Rig) -> None:
    async with scene(rig) as on:
        await opened(on)
        for _ in range(POLICY.close_after):
            state = await on.held()
            assert done(await on.commit(asks(state))).intents
            done(await on.commit(tells(await on.load(state.id), "S", at=RETRY_AT)))
        assert await on.store.troubles.breakers() == []


async def a_reset_is_the_owners(rig: Rig) -> None:
    async with scene(rig) as on:
        breaker = await opened(on)
        assert await on.store.troubles.reset("ana", breaker.key.id) is None
        assert await on.store.troubles.reset("local", breaker.key.id) == breaker
        assert await on.store.troubles.reset("local", breaker.key.id) is None
        assert await on.store.troubles.breakers() == []


async def errors_are_found_by_what_they_are(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        done(await on.commit(f.step_commit(await on.load(state.id), f.failed_attempt(ONE, "http_503"))))
        other = await on.held(owner="ana")
        done(await on.commit(f.step_commit(other, proposals=(f.proposal(ONE),))))
        done(await on.commit(f.step_commit(await on.load(other.id), f.failed_attempt(ONE, "http_429"))))

        async def found(**which: object) -> list[str]:
            listed = await on.store.troubles.errors(ErrorFilter(**which))  # type: ignore[arg-type]
            return [one.error.failure.code for one in listed]

        assert await found() == ["http_429", "http_503"]
        assert await found(owner="local") == ["http_503"]
        assert await found(task=state.id) == ["http_503"]
        assert await found(code="http_429") == ["http_429"]
        assert await found(category=Category.TRANSIENT) == ["http_429", "http_503"]
        assert await found(category=Category.LOGIC) == []
        (one,) = await on.store.troubles.errors(ErrorFilter(owner="local"))
        assert await found(tool=one.tool) == ["http_429", "http_503"]
        assert await found(tool="another.tool") == []
        assert await found(since=f.later(3_600)) == []
        (first,) = await on.store.troubles.errors(ErrorFilter(limit=1))
        assert await found(limit=1, cursor=first.number) == ["http_503"]
