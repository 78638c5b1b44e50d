"""How a task of a durable function stands still or ends: as its code does, once all it asked for has ended."""

from dataclasses import replace

from everstep.domain import events as e
from everstep.domain.task import unfinished
from everstep.engine.classify import classify
from everstep.engine.finish import complete, fail, stand_still, wait_for_someone
from everstep.engine.lap import Lap
from everstep.engine.perform import CodeEnd
from everstep.ports.script import CallFailed


def rest(lap: Lap) -> None:
    """Nothing more can start now: the code has ended, waits for someone, or for what is under way."""
    state = lap.state
    if state.failing is not None:
        return fail(lap)
    if lap.proposals or lap.needs:
        return None
    if state.held_back:
        return stand_still(lap)
    performance = lap.code
    if performance is None or not performance.caught_up(state):
        return None
    if performance.ended is not None and not performance.open:
        return _end(lap, performance.ended)
    return wait_for_someone(lap)


def _end(lap: Lap, end: CodeEnd) -> None:
    """The code has returned; or was left by an exception: then with the error of the call that caused it."""
    for path in unfinished(lap.state):  # of an earlier generation, and not asked for any more
        lap.say(e.StepSkipped(reason=e.SkipReason.CONDITION), path)
    if end.error is None:
        return complete(lap, end.value if isinstance(end.value, dict) else {"result": end.value})
    caused_by = lap.state.steps[end.error.step] if isinstance(end.error, CallFailed) else None
    if caused_by is not None and caused_by.error is not None:
        return fail(lap, replace(caused_by.error, task_continues=False), caused_by.path)
    failure = classify(end.error, tool=lap.state.plan.name)
    failure = replace(failure, message=lap.kit.catalog.redactor.text(failure.message))
    return fail(lap, e.ErrorRecord(id=lap.kit.entropy.new_id("e"), failure=failure, task_continues=False))
