"""JSON values, and values that are sealed: checked, measured and named by their content, once."""

from collections.abc import Callable
from typing import TypeAlias, Union

from everstep.domain.ids import Digest

JsonValue: TypeAlias = Union[bool, int, float, str, "list[JsonValue]", "dict[str, JsonValue]", None]
JsonObject: TypeAlias = dict[str, "JsonValue"]

INTEGER_MAX = 2**53
DEPTH_MAX = 64
INLINE_BYTES_MAX = 32 * 1024
ARTIFACT_BYTES_MAX = 16 * 1024 * 1024
LISTED_MAX = 200
"""So many calls in flight are listed in a line of the journal; of thousands nobody reads more."""
UNFINISHED_BYTES_MAX = 24_000
"""Of names in the last line of a task. The steps of a plan always fit."""


class NotJson(ValueError):
    """A value that cannot be kept: not strict JSON, or too large. Never repaired, never replaced."""

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer}: {reason}" if pointer else reason)
        self.pointer = pointer
        self.reason = reason


class Sealed:
    """A strict JSON value with its canonical digest; made only by a Codec.

    `raw` holds the canonical bytes between sealing and the commit that writes them; a sealed value read from the
    journal has none. A value over the inline limit lives in an artifact: `by_reference` is true and `value` may
    have to be fetched (`present` tells). With `thaw` the value is read from `raw` when somebody asks: most results
    are never looked at again.
    """

    __slots__ = ("_thaw", "_value", "by_reference", "digest", "present", "raw", "size_bytes", "untrusted")

    def __init__(
        self,
        value: JsonValue,
        digest: Digest,
        size_bytes: int,
        *,
        raw: bytes | None = None,
        untrusted: bool = False,
        by_reference: bool = False,
        present: bool = True,
        thaw: Callable[[bytes], JsonValue] | None = None,
    ) -> None:
        self._value = value
        self._thaw = thaw
        self.digest = digest
        self.size_bytes = size_bytes
        self.raw = raw
        self.untrusted = untrusted
        self.by_reference = by_reference
        self.present = present

    @property
    def value(self) -> JsonValue:
        """The value itself."""
        if self._thaw is not None:
            assert self.raw is not None
            self.value = self._thaw(self.raw)
        return self._value

    @value.setter
    def value(self, value: JsonValue) -> None:
        self._value = value
        self._thaw = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sealed) and (self.digest, self.untrusted) == (other.digest, other.untrusted)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Sealed({self.digest[:15]}…, {self.size_bytes} B)"
