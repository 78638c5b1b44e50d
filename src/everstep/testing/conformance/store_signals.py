"""Signals: who waits for what from outside, and what has come."""

from everstep.domain.ids import Instant, StepPath, TaskId
from everstep.domain.signal import Listener, Signal
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.stage import Rig, Scene, scene
from everstep.wire.signal import heard

EVER = Instant(0)


def sent(id: str = "s_1", *, event: str = "paid", key: str | None = "k", owner: str = "local", at_s: int = 0) -> Signal:
    at = f.later(at_s)
    output = heard(event, key, {"n": [1, None]}, at)
    return Signal(id=id, owner=owner, event=event, key=key, at=at, actor=f.HUMAN, output=output)


def waits(task: str, *, key: str = "k", owner: str = "local", any_key: bool = False, attempt: int = 1) -> Listener:
    return Listener(
        task=TaskId(task),
        step=StepPath("w"),
        attempt=attempt,
        owner=owner,
        event="paid",
        key=key,
        any_key=any_key,
    )


async def listen(on: Scene, *listeners: Listener) -> list[str | None]:
    """What each of them is to hear, by id."""
    found = [await on.store.signals.listen(one, EVER) for one in listeners]
    return [None if one is None else one.id for one in found]


async def keep(on: Scene, signal: Signal) -> list[Listener]:
    """Who is to hear it."""
    kept = await on.store.signals.keep(signal, EVER)
    assert kept.new
    return sorted(kept.listeners, key=lambda one: one.task)


async def a_signal_goes_to_everybody_who_listens(rig: Rig) -> None:
    async with scene(rig) as on:
        one, two = waits("t_1"), waits("t_2")
        assert await listen(on, one, two, one) == [None, None, None]
        assert await keep(on, sent()) == [one, two]
        assert await on.store.signals.listen(one, EVER) == sent(), "it is all there, until it was heard"
        await on.store.signals.heard(one)
        await on.store.signals.heard(two)
        assert await listen(on, waits("t_3")) == [None], "it is used"


async def a_signal_waits_for_the_first_who_listens(rig: Rig) -> None:
    async with scene(rig) as on:
        assert await keep(on, sent("s_1")) == []
        assert await keep(on, sent("s_2")) == []
        assert await listen(on, waits("t_1"), waits("t_2"), waits("t_3")) == ["s_1", "s_2", None]


async def the_same_id_is_the_same_signal(rig: Rig) -> None:
    async with scene(rig) as on:
        await listen(on, waits("t_1"))
        await keep(on, sent())
        await on.store.signals.heard(waits("t_1"))
        await listen(on, waits("t_2"))
        again = await on.store.signals.keep(sent(), EVER)
        assert (again.new, [*again.listeners], again.heard) == (False, [], 1)
        assert await keep(on, sent(owner="ana")) == [], "an id is its owner's"


async def who_was_to_hear_it_still_is_after_a_restart(rig: Rig) -> None:
    async with scene(rig) as on:
        await listen(on, waits("t_1"))
        await keep(on, sent())
    async with scene(rig) as on:
        assert await listen(on, waits("t_1"), waits("t_2")) == ["s_1", None]
        assert await listen(on, waits("t_1", attempt=2)) == [None], "a later attempt is somebody else"


async def a_signal_that_was_not_heard_is_for_somebody_else(rig: Rig) -> None:
    """A step whose time was up in the same moment."""
    async with scene(rig) as on:
        await listen(on, waits("t_1"), waits("t_2"))
        assert len(await keep(on, sent())) == 2
        await on.store.signals.leave(waits("t_1"))
        assert await listen(on, waits("t_3")) == [None], "the other one has it"
        await on.store.signals.leave(waits("t_2"))
        assert await listen(on, waits("t_4")) == ["s_1"]


async def keys_and_owners_tell_signals_apart(rig: Rig) -> None:
    async with scene(rig) as on:
        keyed, keyless, other = waits("t_1"), waits("t_2", key="t_2", any_key=True), waits("t_3", owner="ana")
        await listen(on, keyed, keyless, other)
        assert await keep(on, sent("s_1", key=None)) == [keyless], "whoever asks for no key of its own"
        assert await keep(on, sent("s_2", event="shipped")) == []
        assert await keep(on, sent("s_3")) == [keyed]
        assert await keep(on, sent("s_4", owner="ana")) == [other]
        assert await keep(on, sent("s_5", key="t_9")) == []
        assert await listen(on, waits("t_9", key="t_9", any_key=True)) == ["s_5"]


async def old_signals_are_forgotten(rig: Rig) -> None:
    async with scene(rig) as on:
        old, young = sent("s_1"), sent("s_2", at_s=1)
        await keep(on, old)
        await keep(on, young)
        heard = await on.store.signals.listen(waits("t_1"), young.at)
        assert heard == young, "it came early enough"
        kept = await on.store.signals.keep(old, young.at)
        assert kept.new, "nothing is known of it any more"
