"""Breakers as they are kept, and as their object at every door (interfaces, 4.2)."""

from collections.abc import Iterable
from typing import Final

from msgspec.json import Decoder, Encoder

from everstep.domain.breaker import Breaker
from everstep.domain.ids import StepPath, TaskId
from everstep.domain.values import JsonObject
from everstep.wire.times import maybe_text

_encode: Final = Encoder().encode
_decode: Final = Decoder(Breaker).decode


def encode_breaker(breaker: Breaker) -> bytes:
    """As it is kept."""
    return _encode(breaker)


def decode_breaker(encoded: str | bytes) -> Breaker:
    """The breaker again."""
    return _decode(encoded)


def breaker_json(breaker: Breaker, held: Iterable[tuple[TaskId, StepPath]] = ()) -> JsonObject:
    """One breaker, and the steps that wait for it."""
    return {
        "id": breaker.key.id,
        "tool": breaker.key.tool,
        "target": breaker.key.target,
        "state": breaker.state.value,
        "failures": breaker.streak,
        "opened_at": maybe_text(breaker.opened_at),
        "retry_at": maybe_text(breaker.retry_at),
        "last_error": breaker.last_error,
        "held_steps": [{"task": task, "step": step} for task, step in held],
    }
