"""A walk and the durable function it carries: the code begins, hears what is recorded, and ends with the walk."""

from collections.abc import Callable

from everstep.engine.commit import HeldTask, fetch
from everstep.engine.depart import same
from everstep.engine.kit import Kit
from everstep.engine.perform import Performance


async def begin_code(held: HeldTask, kit: Kit, wake: Callable[[], None]) -> None:
    """Run the code of a task from the top, and let it come as far as its journal goes."""
    state = held.state
    script = kit.scripts[state.plan.name]
    if script.plan.durable != state.plan.durable:
        versions = {"recorded": state.plan.durable, "loaded": script.plan.durable}
        kit.sink.note("a durable function has another version", level="warning", task=state.id, **versions)
    if not state.inputs.present:
        await fetch(held, [state.inputs.digest], kit)
    inputs = kit.codec.fresh(held.state.inputs)
    assert isinstance(inputs, dict)
    held.code = Performance(script, kit.codec, wake)
    held.code.begin(inputs)
    await hear(held, kit)


async def hear(held: HeldTask, kit: Kit) -> bool:
    """Tell the code what is recorded, each end when it has come to rest after the last; whether it rests for good."""
    code = held.code
    assert code is not None
    while await code.quiet() and code.heard < len(held.state.ends):
        path = held.state.ends[code.heard]
        step, wanted = held.state.steps[path], code.wanted.get(path)
        if wanted is None or not same(held.state, step, wanted):  # it takes another way than its journal
            break
        if step.output is not None and not step.output.present:
            await fetch(held, [step.output.digest], kit)
        else:
            code.tell(path, step)
    return not code.thinking and not code.fresh


def looked_at_code(held: HeldTask) -> None:
    """What the code asks for is about to be looked at, if it has come to rest."""
    if held.code is not None and not held.code.thinking:
        held.code.fresh = False


def end_code(held: HeldTask) -> None:
    """The walk ends, and with it this performance of the code."""
    if held.code is not None:
        held.code.close()
