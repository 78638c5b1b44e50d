"""Answers on their way in: may this actor answer, does the value fit, and is it about the call that is asked about."""

from typing import Final

from everstep.domain.approval import Names, changes
from everstep.domain.commands import Answer, Drafts, Reply
from everstep.domain.consequence import spec_of
from everstep.domain.errors import Conflict, NotAllowed, Validation
from everstep.domain.events import Actor, ActorKind, PauseAnswered, PauseExpired
from everstep.domain.ids import Digest, PauseId, split_path
from everstep.domain.limits import SHOWN_PER
from everstep.domain.pauses import GatedCall, LimitReached, Pause, UnresolvedDependency
from everstep.domain.task import TaskState
from everstep.domain.values import INTEGER_MAX, JsonObject, JsonValue
from everstep.engine.kit import Kit
from everstep.ports.tool import Call

_ABOUT_THE_CALL: Final = frozenset({"approve", "edit", "reject"})


def may_answer(pause: Pause, actor: Actor) -> None:
    """Whether an actor of this kind is asked; raises NotAllowed."""
    if actor.kind not in pause.may_answer and actor.kind is not ActorKind.SYSTEM:
        wanted = " or ".join(pause.may_answer)
        raise NotAllowed(
            f"{actor.kind} {actor.id} may not answer this: {wanted} has to",
            code="answer_not_allowed",
            what_to_do=f"have a {wanted} answer it: everstep inbox {pause.id}",
            details={"may_answer": [*pause.may_answer]},
        )


def too_late(state: TaskState, pause: Pause, actor: Actor, reply: Reply) -> Drafts:
    """The pause is closed: fine if it was by the same word of the same actor, else a conflict that names who."""
    first = state.closed.get(pause.id)
    if first is not None and isinstance(first.body, PauseAnswered):
        if first.actor == actor and _same(first.body, reply):
            return ()
        raise _already(state, f"{first.actor.kind} {first.actor.id} has answered already: {first.body.answer}")
    if first is not None and isinstance(first.body, PauseExpired):
        raise _already(state, f"nobody answered {pause.id} in time: {first.body.action}")
    anew = next((one for one in state.pauses.values() if one.call is not None and one.step == pause.step), None)
    if anew is not None and anew.call is not None:
        raise stale(anew.call, anew.id)
    raise _already(state, f"{pause.id} is no longer open")


def _already(state: TaskState, message: str) -> Conflict:
    return Conflict(message, code="already_answered", what_to_do=f"everstep show {state.id}")


def _same(first: PauseAnswered, reply: Reply) -> bool:
    output = None if first.output is None else first.output.value
    said = (reply.answer, reply.note, reply.arguments, reply.output, reply.value)
    return said == (first.answer, first.note, first.arguments, output, first.value)


def stale(call: GatedCall, pause: PauseId) -> Conflict:
    """Somebody speaks of another call than the one that is asked about now."""
    shown: JsonObject = {
        "tool": call.tool,
        "tool_version": call.tool_version,
        "digest": call.input.digest,
        "arguments": call.input.value if call.input.present else None,
    }
    return Conflict(
        "the call is another one by now; nothing was approved",
        code="stale_digest",
        what_to_do=f"look at it again: everstep inbox {pause}",
        details={"pause": pause, "call": shown},
    )


def checked_approval(state: TaskState, pause: Pause, reply: Reply, kit: Kit) -> Answer:
    """An answer to a question for approval; raises what the approver can correct, and the question stays open."""
    call = pause.call
    assert call is not None and pause.step is not None
    names = Names(error=kit.entropy.new_id("e"), pause=PauseId(kit.entropy.new_id("p")))
    if reply.answer in _ABOUT_THE_CALL:
        if reply.digest is None:
            raise _invalid(f"'{reply.answer}' needs the digest of the call it is about", f"everstep inbox {pause.id}")
        if reply.digest != call.input.digest:
            raise stale(call, pause.id)
    digest: Digest | None = None
    diff: tuple[JsonObject, ...] = ()
    output = None
    match reply.answer:
        case "approve":
            digest = call.input.digest
        case "edit" if call.editable:
            digest, diff = _edited(call, reply.arguments or {}, kit)
        case "reject" if not (reply.note or "").strip():
            raise _invalid("'reject' needs a note: why not?", "everstep reject PAUSE --note TEXT")
        case "answer":
            _no_item_begun(state, pause)
            schema = output_schema(state, pause, kit)
            if call.of_items:
                schema = _list_of(schema, call.input.value)
            fits(schema, reply.value, kit)
            output = kit.codec.seal(reply.value, untrusted=True)
        case _:
            pass
    return Answer(
        answer=reply.answer,
        note=reply.note,
        arguments=reply.arguments,
        output=output,
        value=reply.value,
        digest=digest,
        diff=diff,
        names=names,
    )


def _edited(call: GatedCall, edited: JsonObject, kit: Kit) -> tuple[Digest, tuple[JsonObject, ...]]:
    """The digest of the edited call, which must be a call that could be made."""
    locked = sorted(edited.keys() - set(call.editable))
    if locked or not edited:
        what = f"{', '.join(locked)} may not be changed" if locked else "'edit' needs arguments"
        raise _invalid(what, f"only these may be changed: {', '.join(call.editable)}")
    entry = kit.catalog.find(call.tool)
    if entry is None:
        raise Conflict(f"this engine does not have {call.tool}", what_to_do="answer where the tool is installed")
    before = call.input.value
    assert isinstance(before, dict)
    after = {**before, **edited}
    problems = entry.problems(Call(tool=call.tool, arguments=after))
    if problems:
        text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems)
        raise _invalid(f"the edited arguments do not fit {call.tool}: {text}", "correct the arguments")
    return kit.codec.seal(after).digest, changes(before, edited)


def _no_item_begun(state: TaskState, pause: Pause) -> None:
    assert pause.step is not None
    if state.steps[pause.step].items_open or state.steps[pause.step].items_ended:
        raise _invalid("some items have been called already, so nobody can answer for all", "approve or reject it")


def _list_of(schema: JsonObject | None, shown: JsonValue) -> JsonObject:
    length = len(shown) if isinstance(shown, list) else 0
    return {"type": "array", "items": schema or {}, "minItems": length, "maxItems": length}


def output_schema(state: TaskState, pause: Pause, kit: Kit) -> JsonObject | None:
    """What the step's tool promises to return; of a producer that gave nothing, all that the whole step would give."""
    lacked = pause.reason.producing_step if isinstance(pause.reason, UnresolvedDependency) else None
    path = lacked or pause.step
    assert path is not None
    spec, index = spec_of(state, path), split_path(path)[1]
    entry = kit.catalog.find(spec.tool or "")
    schema = None if entry is None else entry.spec.output_schema
    if lacked is None or spec.for_each is None or index is not None:
        return schema
    return {"type": "array", "items": {} if schema is None else {"anyOf": [schema, {"type": "null"}]}}


def more_than_used(reached: LimitReached, most: JsonValue) -> None:
    """Raises Validation if a limit would not be raised by this, or to what no limit can be."""
    if isinstance(most, bool) or not isinstance(most, int | float) or not most > reached.used:
        raise _invalid(f"'max' must be a number above the {reached.used:g} that are used", "allow more, or `cancel`")
    highest = INTEGER_MAX // SHOWN_PER.get(reached.limit, 1)
    if most > highest:
        raise _invalid(f"'max' is at most {highest}", "allow less")


def fits(schema: JsonObject | None, value: JsonValue, kit: Kit) -> None:
    """Raises Validation if a value is not what it stands for."""
    if schema is None:
        return
    violations = kit.codec.validator(schema)(value)
    if violations:
        text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in violations)
        raise _invalid(f"the answer does not fit: {text}", "correct the value")


def _invalid(message: str, what_to_do: str) -> Validation:
    return Validation(message, code="answer_invalid", what_to_do=what_to_do)
