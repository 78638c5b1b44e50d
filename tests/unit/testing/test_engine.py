"""`everstep.testing` as its users write it."""

import asyncio

import pytest

from everstep import Plan
from everstep.domain.errors import EngineClosed
from everstep.testing import TestEngine, fake
from everstep.testing.clock import START, VirtualClock


def brief() -> Plan:
    plan = Plan("brief", inputs={"to": str})
    plan.step("rest", "wait", {"for": "1m"})
    who = plan.step("who", "ask", {"question": "To whom?"})
    sent = plan.step("send", "mail.send", {"to": who}, retry=2)
    plan.output(message=sent.message_id)
    return plan


async def test_a_plan_with_a_wait_a_question_and_a_flaky_mail_server() -> None:
    mail = fake(returns={"message_id": "m1"}, raises=[ConnectionRefusedError(), None])
    async with TestEngine(tools={"mail.send": mail}) as t:
        task = await t.start(brief(), {"to": "ana@example.test"})
        await t.clock.advance("2m")
        await t.inbox.only().answer("ana@example.test")
        done = asyncio.create_task(task.result())
        await t.clock.advance("1m")
        assert (await done).outputs == {"message": "m1"}
        assert mail.count == 2


async def test_what_was_held_of_an_engine_that_crashed_can_write_nothing_more() -> None:
    """Else an answer would be written that the engine of now hears nothing of."""
    async with TestEngine(tools={"mail.send": fake(returns={"message_id": "m1"})}) as t:
        task = await t.start(brief(), {"to": "ana@example.test"})
        await t.clock.advance("2m")
        (question,) = (await task.refresh()).pauses
        await t.crash()
        with pytest.raises(EngineClosed, match="killed"):
            await question.answer("ana@example.test")
        await (await t.get(task.id)).pauses[0].answer("ana@example.test")


async def test_whoever_moves_the_clock_nobody_moves_it_back() -> None:
    """A seed of the simulation found it: while one let three seconds pass, another went on to a timer after them."""
    clock = VirtualClock()
    clock.call_later(1, lambda: None)
    clock.call_later(10, lambda: None)
    passing = asyncio.create_task(clock.advance("3s"))
    await asyncio.sleep(0)
    while await clock.skip():
        pass
    late = clock.now()
    await passing
    assert clock.now() == late == START + 10_000
