"""Signals as they are kept, and as the output of the step that waited for one."""

from everstep.domain.actors import Actor, ActorKind
from everstep.domain.ids import Instant
from everstep.domain.signal import Signal
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.times import from_text, to_text
from everstep.wire.values import canonical, loads_strict


def heard(event: str, key: str | None, data: JsonValue, at: Instant) -> JsonObject:
    """What a step that waited completes with."""
    return {"event": event, "key": key, "data": data, "at": to_text(at)}


def encode_signal(signal: Signal) -> bytes:
    """As it is kept: what is said in the output is said once."""
    actor: JsonObject = {"kind": signal.actor.kind.value, "id": signal.actor.id, "via": signal.actor.via}
    return canonical({"id": signal.id, "owner": signal.owner, "actor": actor, "output": signal.output})


def decode_signal(encoded: str | bytes) -> Signal:
    """The signal again."""
    match loads_strict(encoded):
        case {
            "id": str(id),
            "owner": str(owner),
            "actor": {"kind": str(kind), "id": str(who), "via": str(via)},
            "output": {"event": str(event), "key": (str() | None) as key, "data": data, "at": str(at)},
        }:
            actor = Actor(kind=ActorKind(kind), id=who, via=via)
            output: JsonObject = {"event": event, "key": key, "data": data, "at": at}
            return Signal(id=id, owner=owner, event=event, key=key, at=from_text(at), actor=actor, output=output)
        case _:
            raise ValueError("a kept signal is not what it was")
