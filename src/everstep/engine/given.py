"""The arguments of a client's call: placeholders that came back stand for recorded values, and the whole must fit."""

from everstep.domain.bindings import NeedsPayload
from everstep.domain.consequence import spec_of
from everstep.domain.continued import ClientCall
from everstep.domain.errors import Unavailable, Validation
from everstep.domain.ids import Digest, StepPath
from everstep.domain.placeholder import TakenBack, taken_back
from everstep.domain.scope import StateScope
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, JsonValue
from everstep.engine.kit import Kit
from everstep.engine.stall import missing_tools


async def given_arguments(state: TaskState, path: StepPath, call: ClientCall, kit: Kit) -> JsonObject:
    """What is called, exactly; raises if it cannot be, before anything is written."""
    if missing_tools(state, kit):
        raise Unavailable("this engine does not have the tools of the task", what_to_do="use one that has them")
    arguments = await _values(state, path, call.arguments, kit)
    entry = kit.catalog.get(call.tool)
    problems = entry.problems(entry.call(arguments))
    if problems:
        text = "; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems)
        raise Validation(f"the arguments do not fit {call.tool}: {text}")
    return arguments


async def _values(state: TaskState, path: StepPath, given: JsonObject, kit: Kit) -> JsonObject:
    scope = StateScope(state, kit.graph(state))
    planned = spec_of(state, path).arguments
    while True:
        match taken_back(planned, given, scope):
            case TakenBack(arguments=arguments):
                return arguments
            case NeedsPayload(digests=digests):
                _put(state, dict(zip(digests, await kit.store.get_payloads(digests), strict=True)))
            case gap:
                raise Validation(f"'{gap.argument}' stands for a value that is not there: {gap.message}")


def _put(state: TaskState, values: dict[Digest, JsonValue]) -> None:
    for sealed in (state.inputs, *(step.output for step in state.steps.values())):
        if sealed is not None and not sealed.present and sealed.digest in values:
            sealed.value, sealed.present = values[sealed.digest], True
