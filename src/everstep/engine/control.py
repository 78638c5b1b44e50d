"""Commands from outside the lease: pause, resume, cancel, answer. Each one guarded write, then a nudge."""

import asyncio
from collections.abc import Callable

from everstep.domain.commands import (
    Answer,
    Drafts,
    Reply,
    answer_pause,
    asked_pause,
    cancel_task,
    ends_wait,
    puts_back,
    resume_task,
    said_once,
)
from everstep.domain.errors import NotFound, Unavailable, Validation
from everstep.domain.events import StepCompleted, Who
from everstep.domain.fold import apply
from everstep.domain.ids import PauseId, TaskId
from everstep.domain.pauses import InputRequired, LimitReached, Pause, PauseStatus
from everstep.domain.pausing import GRACEFUL, PauseWish, pause_task
from everstep.domain.task import Command, TaskState, row_of
from everstep.domain.values import JsonValue
from everstep.engine.answers import checked_approval, fits, may_answer, more_than_used, output_schema, too_late
from everstep.engine.kit import Kit
from everstep.ports.store import Committed, PauseFilter

TRIES = 20
"""A command that loses this many races in a row says so instead of going on for ever."""


async def load(task: TaskId, who: Who, kit: Kit) -> TaskState:
    """A task of this owner; another owner's is not found."""
    (state,) = await kit.store.load_tasks((task,))
    if state is None or state.owner != who.owner:
        raise no_task()
    return state


def no_task() -> NotFound:
    """Another owner's task is refused in the same words as one that never was, and no name is repeated."""
    return NotFound("there is no such task")


async def command(
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
        revision, done = state.revision, state.done
        for draft in drafts:
            apply(state, draft.body, draft.step, at)
        wanted = Command(
            task=task,
            status=status,
            generation=generation,
            pause=pause,
            actor=who.actor,
            at=at,
            drafts=drafts,
            row=row_of(state),
            last_seq=last_seq,
            steps=None if state.revision == revision else len(state.specs),
            ends=state.done - done if puts_back(drafts) or ends_wait(drafts) or said_once(drafts) else None,
        )
        kit.fault("command.decide.after")
        await _keep(drafts, kit)
        (result,) = await kit.store.commit_commands((wanted,))
        if isinstance(result, Committed):
            kit.feed.publish(result.events)
            kit.figures.settled(state, drafts)
            return await load(task, who, kit)
    raise too_fast(task)


def too_fast(task: TaskId) -> Unavailable:
    """The refusal of a command that lost every race."""
    return Unavailable(f"task {task} changes faster than it can be commanded", what_to_do="try again")


async def _keep(drafts: Drafts, kit: Kit) -> None:
    """Values too large for an event are kept before the commit that refers to them."""
    outputs = [draft.body.output for draft in drafts if isinstance(draft.body, StepCompleted)]
    large = [(one.digest, one.raw) for one in outputs if one.by_reference and one.raw is not None]
    if large:
        await kit.store.put_payloads(large)


async def pause(
    task: TaskId, who: Who, note: str | None, kit: Kit, *, mode: str | None = None, by: str | None = None
) -> TaskState:
    """Takes effect at the next safe point, which `immediate` makes an early one; asking twice is asking once."""
    wish = PauseWish(id=PauseId(kit.entropy.new_id("p")), by=by or who.actor.id, note=note, mode=mode or GRACEFUL)

    def decide(state: TaskState) -> tuple[Drafts, PauseId | None]:
        at = kit.clock.now()
        return tuple(kit.timed(draft, state, at) for draft in pause_task(state, wish)), None

    kit.fault("pause.ask.before")
    paused = await command(task, who, kit, decide)
    kit.fault("pause.ask.after")
    return paused


async def resume(task: TaskId, who: Who, note: str | None, kit: Kit) -> TaskState:
    """Lift the pause someone asked for."""
    kit.fault("resume.ask.before")
    resumed = await command(task, who, kit, lambda state: (resume_task(state, note), asked_pause(state)))
    kit.fault("resume.ask.after")
    return resumed


async def cancel(task: TaskId, who: Who, note: str | None, kit: Kit) -> TaskState:
    """End on request."""
    kit.fault("cancel.ask.before")
    cancelled = await command(task, who, kit, lambda state: (cancel_task(state, note), None))
    kit.fault("cancel.ask.after")
    return cancelled


async def answer(pause_id: PauseId, who: Who, reply: Reply, kit: Kit) -> TaskState:
    """One answer wins; a later one learns that."""
    kept = await kit.store.list_pauses(PauseFilter(owner=who.owner, id=pause_id, status=None))
    if not kept:
        raise NotFound(f"no pause {pause_id}", what_to_do="list what waits for someone: everstep inbox")

    shown = await _shown(kept[0].pause, kit) if kept[0].status is PauseStatus.OPEN else None

    def decide(state: TaskState) -> tuple[Drafts, PauseId | None]:
        pause = state.pauses.get(pause_id)
        if pause is None:
            return too_late(state, kept[0].pause, who.actor, reply), None
        may_answer(pause, who.actor)
        if pause.call is not None:
            pause.call.input.value, pause.call.input.present = shown, True
            return answer_pause(state, pause, checked_approval(state, pause, reply, kit)), pause_id
        return answer_pause(state, pause, _checked(state, pause, reply, kit)), pause_id

    kit.fault("answer.give.before")
    answered = await command(kept[0].task, who, kit, decide)
    kit.fault("answer.give.after")
    return answered


async def _shown(pause: Pause, kit: Kit) -> JsonValue:
    """The arguments that were asked about, wherever they are kept."""
    if pause.call is None or pause.call.input.present:
        return None if pause.call is None else pause.call.input.value
    (value,) = await kit.store.get_payloads((pause.call.input.digest,))
    return value


_NEEDS_OUTPUT = frozenset({"happened", "supply_output"})
_NEEDS_ARGUMENTS = frozenset({"supply_arguments", "retry_with"})


def _checked(state: TaskState, pause: Pause, reply: Reply, kit: Kit) -> Answer:
    """Values must fit what they stand for, or the pause stays open."""
    if reply.answer in _NEEDS_ARGUMENTS and not reply.arguments:
        raise Validation(
            f"'{reply.answer}' needs arguments", code="answer_invalid", what_to_do="--set NAME=VALUE for each"
        )
    if reply.answer != "retry" and (reply.at is not None or reply.tool is not None):
        raise Validation(f"'{reply.answer}' takes no time and no tool", code="answer_invalid")
    output = None
    if reply.answer in _NEEDS_OUTPUT:
        assert pause.step is not None
        fits(output_schema(state, pause, kit), reply.output, kit)
        output = kit.codec.seal(reply.output, untrusted=True)
    if reply.answer == "raise_limit" and isinstance(pause.reason, LimitReached):
        more_than_used(pause.reason, reply.value)
    if reply.answer == "answer" and isinstance(pause.reason, InputRequired):
        schema = pause.reason.schema
        fits(schema if isinstance(schema, dict) else None, reply.value, kit)
    return Answer(
        answer=reply.answer,
        note=reply.note,
        arguments=reply.arguments,
        output=output,
        value=reply.value,
        at=reply.at,
        tool=reply.tool,
    )
