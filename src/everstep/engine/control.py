"""Commands from outside the lease: pause, resume, cancel, answer. Each one guarded write, then a nudge."""

import asyncio
from collections.abc import Callable

from everstep.domain.commands import (
    Answer,
    Drafts,
    PauseWish,
    Reply,
    answer_pause,
    asked_pause,
    cancel_task,
    pause_task,
    puts_back,
    resume_task,
    update_task,
)
from everstep.domain.errors import Conflict, NotFound, Unavailable, Validation
from everstep.domain.events import TaskUpdated, Who
from everstep.domain.fold import apply
from everstep.domain.ids import PauseId, TaskId, split_path
from everstep.domain.pauses import InputRequired, LimitReached, Pause, UnresolvedDependency
from everstep.domain.task import Command, TaskState, row_of
from everstep.domain.values import JsonObject, JsonValue
from everstep.engine.kit import Kit
from everstep.ports.store import Committed, PauseFilter

TRIES = 20
"""A command that loses this many races in a row says so instead of going on for ever."""


async def load(task: TaskId, who: Who, kit: Kit) -> TaskState:
    """A task of this owner; another owner's is not found."""
    (state,) = await kit.store.load_tasks((task,))
    if state is None or state.owner != who.owner:
        raise NotFound(f"no task {task}")
    return state


async def _command(
    task: TaskId, who: Who, kit: Kit, decide: Callable[[TaskState], tuple[Drafts, PauseId | None]]
) -> TaskState:
    """One at a time, so that asking twice at once is asking once; the guard is against whoever holds the task."""
    async with kit.commanding.setdefault(task, asyncio.Lock()):
        return await _write(task, who, kit, decide)


async def _write(
    task: TaskId, who: Who, kit: Kit, decide: Callable[[TaskState], tuple[Drafts, PauseId | None]]
) -> TaskState:
    for _ in range(TRIES):
        state = await load(task, who, kit)
        drafts, pause = decide(state)
        if not drafts:
            return state
        status, generation, last_seq, at = state.status, state.generation, state.seq, kit.clock.now()
        done = state.done
        for draft in drafts:
            apply(state, draft.body, draft.step, at)
        command = Command(
            task=task,
            status=status,
            generation=generation,
            pause=pause,
            actor=who.actor,
            at=at,
            drafts=drafts,
            row=row_of(state),
            last_seq=last_seq,
            ends=state.done - done if puts_back(drafts) else None,
        )
        kit.fault("command.decide.after")
        (result,) = await kit.store.commit_commands((command,))
        if isinstance(result, Committed):
            kit.feed.publish(result.events)
            return await load(task, who, kit)
    raise Unavailable(f"task {task} changes faster than it can be commanded", what_to_do="try again")


async def pause(task: TaskId, who: Who, wish: PauseWish, kit: Kit) -> TaskState:
    """Takes effect at the next safe point; asking twice is asking once."""
    return await _command(task, who, kit, lambda state: (pause_task(state, wish), None))


async def resume(task: TaskId, who: Who, note: str | None, kit: Kit) -> TaskState:
    """Lift the pause someone asked for."""
    return await _command(task, who, kit, lambda state: (resume_task(state, note), asked_pause(state)))


async def update(task: TaskId, who: Who, wanted: TaskUpdated, kit: Kit) -> TaskState:
    """Another title, other labels, another priority."""
    return await _command(task, who, kit, lambda state: (update_task(state, wanted), None))


async def cancel(task: TaskId, who: Who, note: str | None, kit: Kit) -> TaskState:
    """End on request."""
    return await _command(task, who, kit, lambda state: (cancel_task(state, note), None))


async def answer(pause_id: PauseId, who: Who, reply: Reply, kit: Kit) -> TaskState:
    """One answer wins; a later one learns that."""
    kept = await kit.store.list_pauses(PauseFilter(owner=who.owner, id=pause_id, status=None))
    if not kept:
        raise NotFound(f"no pause {pause_id}", what_to_do="list what waits for someone: everstep inbox")

    def decide(state: TaskState) -> tuple[Drafts, PauseId | None]:
        pause = state.pauses.get(pause_id)
        if pause is None:
            raise Conflict(
                f"{pause_id} is no longer open", code="already_answered", what_to_do=f"everstep show {state.id}"
            )
        return answer_pause(state, pause, _checked(state, pause, reply, kit)), pause_id

    return await _command(kept[0].task, who, kit, decide)


_NEEDS_OUTPUT = frozenset({"happened", "supply_output"})
_NEEDS_ARGUMENTS = frozenset({"supply_arguments", "retry_with"})


def _checked(state: TaskState, pause: Pause, reply: Reply, kit: Kit) -> Answer:
    """Values must fit what they stand for, or the pause stays open."""
    if reply.answer in _NEEDS_ARGUMENTS and not reply.arguments:
        raise Validation(
            f"'{reply.answer}' needs arguments", code="answer_invalid", what_to_do="--set NAME=VALUE for each"
        )
    output = None
    if reply.answer in _NEEDS_OUTPUT:
        assert pause.step is not None
        _fits(_output_schema(state, pause, kit), reply.output, kit)
        output = kit.codec.seal(reply.output, untrusted=True)
    if reply.answer == "raise_limit" and isinstance(pause.reason, LimitReached):
        _more_than_used(pause.reason, reply.value)
    if reply.answer == "answer" and isinstance(pause.reason, InputRequired):
        schema = pause.reason.schema
        _fits(schema if isinstance(schema, dict) else None, reply.value, kit)
    return Answer(
        answer=reply.answer, note=reply.note, arguments=reply.arguments, output=output, value=reply.value, at=reply.at
    )


def _more_than_used(reached: LimitReached, most: JsonValue) -> None:
    if isinstance(most, bool) or not isinstance(most, int | float) or most <= reached.used:
        raise Validation(
            f"'max' must be a number above the {reached.used:g} that are used",
            code="answer_invalid",
            what_to_do="allow more, or answer `cancel`",
        )


def _output_schema(state: TaskState, pause: Pause, kit: Kit) -> JsonObject | None:
    """What an output must fit: of the asking step, or of the producer it lacks; of all items for a whole `for_each`."""
    path = pause.reason.producing_step if isinstance(pause.reason, UnresolvedDependency) else pause.step
    assert path is not None
    name, index = split_path(path)
    spec = state.specs[name]
    entry = kit.catalog.find(spec.tool or "")
    schema = None if entry is None else entry.spec.output_schema
    if spec.for_each is None or index is not None:
        return schema
    return {"type": "array", "items": {} if schema is None else {"anyOf": [schema, {"type": "null"}]}}


def _fits(schema: JsonObject | None, value: JsonValue, kit: Kit) -> None:
    if schema is None:
        return
    violations = kit.codec.validator(schema)(value)
    if violations:
        text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in violations)
        raise Validation(f"the answer does not fit: {text}", code="answer_invalid", what_to_do="correct the value")
