"""Codec: strict JSON in, sealed values out; JSON Schema checks."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from everstep.domain.values import JsonObject, JsonValue, Sealed

Violation: TypeAlias = tuple[str, str]
"""JSON Pointer and message."""
Validator: TypeAlias = Callable[[JsonValue], Sequence[Violation]]


class Codec(Protocol):
    """Made once; pure."""

    def seal(self, value: JsonValue, *, untrusted: bool = False) -> Sealed:
        """Check, measure and name a value; raises NotJson."""

    def seal_copy(self, value: JsonValue, *, untrusted: bool = False) -> Sealed:
        """The same, apart from `value`: whoever holds on to that changes nothing."""

    def fresh(self, sealed: Sealed) -> JsonValue:
        """A copy of the recorded value, so that nobody can change what was sealed."""

    def keep(self, raw: bytes) -> Sealed:
        """Bytes of any kind by their digest, as nobody has vouched for them; raises NotJson if they are too many."""

    def payload(self, value: JsonValue) -> bytes:
        """Canonical bytes."""

    def validator(self, schema: JsonObject) -> Validator:
        """A check compiled once; never fetches a remote reference."""
