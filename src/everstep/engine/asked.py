"""What a durable function asks for, held against its journal: new calls become steps, other calls stop the task."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from everstep.domain import events as e
from everstep.domain.changes import Change
from everstep.domain.errors import PlanError
from everstep.domain.ids import StepPath
from everstep.domain.pauses import ToolErrorPause
from everstep.domain.problem import Problem
from everstep.domain.suggest import did_you_mean
from everstep.domain.task import TaskState
from everstep.engine.accept import check_plan
from everstep.engine.depart import begun, departure, same
from everstep.engine.lap import Lap
from everstep.engine.perform import Performance

CODE_CHANGED: Final = "code_changed"
_OF_ARGUMENTS: Final = frozenset({"plan.missing_argument", "plan.bad_argument", "plan.unknown_argument"})


def calls_asked_for(lap: Lap) -> Sequence[StepPath]:
    """The calls that the code waits for, each of them a step of the journal by now; none if it asks for others."""
    performance = lap.code
    if performance is None:
        return ()
    if performance.stages != lap.state.stages and performance.stages:
        lap.say(e.TaskUpdated(changes={"stages": [*performance.stages]}))
    caught_up = performance.caught_up(lap.state)
    other = departure(lap.state, performance, caught_up=caught_up or _lost(lap.state, performance))
    if other is not None:
        _stop(lap, *other)
        return ()
    if caught_up:
        _note(lap, performance)
    return [path for path in performance.open if path in lap.state.steps]


def _lost(state: TaskState, performance: Performance) -> bool:
    """Whether the next recorded end is of a call that the code does not ask for."""
    if performance.thinking or performance.heard >= len(state.ends):
        return False
    return state.ends[performance.heard] not in performance.wanted


def _stop(lap: Lap, path: StepPath, recorded: str, asked: str) -> None:
    """The task waits until somebody brings the code back, or takes another way from here."""
    if any(pause.of_the_task for pause in lap.state.pauses.values()):
        return
    text = f"{CODE_CHANGED}: the code asks for another call than its journal holds\n- {recorded}\n+ {asked}"
    reason = ToolErrorPause(failed_step=path, error=text, retryable=True, suggested_tool=lap.state.specs[path].tool)
    do = f"bring back the code it was started with and answer retry, or: everstep fork {lap.state.id} --from {path}"
    why = f"{text}\n{do}"
    lap.pause(None, reason, title=f"The code of {lap.state.plan.name} has changed", why=why)


def _note(lap: Lap, performance: Performance) -> None:
    """Write down what the code asks for and the journal does not have yet; what nobody may ask for is refused."""
    changes = [*_changes(lap.state, performance)]
    for change in changes:
        if problems := _problems(lap, change):
            what = did_you_mean(f"'{change.id}': {problems[0].message}", problems[0].suggestion)
            performance.refuse(StepPath(change.id), PlanError(what, problems))
            continue
        body = e.PlanRevised(
            revision=lap.state.revision + 1,
            digest=lap.state.plan_digest,
            base_digest=lap.state.plan_digest,
            diff=(change,),
        )
        lap.say(body)
    if changes:
        lap.grow()


def _problems(lap: Lap, change: Change) -> tuple[Problem, ...]:
    """What is wrong with a step by itself; its arguments are looked at when it is called."""
    assert change.step is not None
    found = check_plan(replace(lap.state.plan, inputs=(), steps=(change.step,)), lap.kit, trusted=True)
    return tuple(one for one in found if one.severity == "error" and one.code not in _OF_ARGUMENTS)


def _changes(state: TaskState, performance: Performance) -> Iterator[Change]:
    for path in performance.open:
        wanted = performance.wanted[path]
        step = state.steps.get(path)
        if step is None:
            yield Change(op="append", id=path, step=wanted.ask.spec, asked=wanted.input)
        elif not begun(step) and not (same(state, step, wanted) and state.specs[path] == wanted.ask.spec):
            yield Change(op="replace", id=path, step=wanted.ask.spec, asked=wanted.input)
