"""Durable waits whose time has come."""

from everstep.domain import events as e
from everstep.domain.decide import decide
from everstep.domain.signal import TIMED_OUT
from everstep.domain.states import EVENT
from everstep.engine.judge import judge
from everstep.engine.lap import Lap


def end_waits(lap: Lap) -> None:
    """Durable waits whose time has come complete their step; one for a signal has waited in vain."""
    for path in list(lap.state.open):
        step = lap.state.steps[path]
        wait = step.wait
        if wait is None or wait.until is None or wait.until > lap.at:
            continue
        if wait.kind == EVENT:
            for draft in decide(lap.state, judge(lap.state, path, TIMED_OUT, lap.kit), lap.at):
                lap.say(draft.body, draft.step)
        if wait.output is None:
            continue
        body = e.StepCompleted(
            attempt=step.attempts,
            output=wait.output,
            summary=None,
            via="tool",
            tool_used=step.attempt.tool if step.attempt else None,
            duration_s=(lap.at - (step.started_at or lap.at)) / 1000,
        )
        lap.say(body, path)
