"""The inside of a task: its steps, their attempts, its plan."""

from typing import Final

from everstep.domain.errors import NotFound
from everstep.domain.graph import items_of
from everstep.domain.ids import StepPath
from everstep.domain.task import TaskState
from everstep.doors.api.context import Asked, Backing, find_task, journal
from everstep.doors.api.cursor import altered, cursor_of, place_in
from everstep.doors.api.request import Response, limit_in, number_in, reply
from everstep.wire.estimate import outlook_json, step_estimate
from everstep.wire.plan import to_json as plan_to_json
from everstep.wire.step import attempt_json, step_json

PAGE: Final = 50
PAGE_MAX: Final = 500


async def list_all(back: Backing, asked: Asked) -> Response:
    """Steps in the order of the plan, items after the step they belong to; without values."""
    state = await find_task(back, asked)
    paths = _in_order(state)
    limit = limit_in(asked.query, PAGE, most=PAGE_MAX)
    begin = _after(paths, place_in(state.id, asked.query.get("cursor")))
    shown = paths[begin : begin + limit]
    history = await journal(back, state.id, frozenset(shown))
    more = begin + limit < len(paths)
    expected = await back.desk.forecast.of(state)
    return reply({
        "items": [
            step_json(state, path, history, payloads=False, estimate=step_estimate(path, expected)) for path in shown
        ],
        "next_cursor": cursor_of(state.id, shown[-1]) if more and shown else None,
    })  # fmt: skip


async def get(back: Backing, asked: Asked) -> Response:
    """One step, with its values and every attempt."""
    state = await find_task(back, asked)
    path = _named(state, asked)
    expected = await back.desk.forecast.of(state)
    return reply(step_json(state, path, await journal(back, state.id, {path}), estimate=step_estimate(path, expected)))


async def estimate(back: Backing, asked: Asked) -> Response:
    """What is left of the task, and of each of its steps."""
    state = await find_task(back, asked)
    return reply(outlook_json(await back.desk.forecast.of(state), terminal=state.terminal))


async def attempt(back: Backing, asked: Asked) -> Response:
    """One try of a step."""
    state = await find_task(back, asked)
    path = _named(state, asked)
    history = await journal(back, state.id, {path})
    number = asked.params["number"]
    for one in history.attempts.get(path, ()):
        if str(one.number) == number:
            return reply(attempt_json(one))
    raise NotFound(f"step '{path}' has no attempt {number}", what_to_do=f"everstep show {state.id} {path}")


async def plan(back: Backing, asked: Asked) -> Response:
    """What the task was asked to do, in normal form; as it is now, or as an earlier revision was."""
    state = await find_task(back, asked)
    wanted = number_in(asked.query, "revision", state.revision, most=2**31)
    found = await back.desk.plan_at(state, wanted)
    return reply({"revision": wanted, "digest": found.digest, "plan": plan_to_json(found.plan)})


def _named(state: TaskState, asked: Asked) -> StepPath:
    path = StepPath(asked.params["step"])
    if path not in state.steps:
        raise NotFound(f"the task has no step '{path}'", what_to_do=f"its steps: everstep show {state.id}")
    return path


def _in_order(state: TaskState) -> list[StepPath]:
    paths: list[StepPath] = []
    for name in state.specs:
        path = StepPath(name)
        paths += [path, *(item.path for item in items_of(state, path))]
    return paths


def _after(paths: list[StepPath], cursor: str | None) -> int:
    if cursor is None:
        return 0
    try:
        return paths.index(StepPath(cursor)) + 1
    except ValueError:
        raise altered() from None
