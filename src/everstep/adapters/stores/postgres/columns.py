"""Columns of many rows as one value each, in the database's binary form: a batch is sent without a loop per value.

The driver writes lists too, but looks at every member; here a column knows its kind.
"""

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, Final

from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format

_HEAD: Final = struct.Struct(">5i").pack
_LENGTH: Final = struct.Struct(">i").pack
_NULL: Final = _LENGTH(-1)


class Column(bytes):
    """A one-dimensional array, written out."""

    ARRAY: ClassVar[int]
    """The type of such an array, by its number in every PostgreSQL."""
    MEMBER: ClassVar[int]

    @classmethod
    def of(cls, values: Sequence[Any]) -> "Column":
        """Written out."""
        head = _HEAD(1, int(None in values), cls.MEMBER, len(values), 1)
        return cls(head + cls.members(values))

    @classmethod
    def members(cls, values: Sequence[Any]) -> bytes:
        """Each behind its length."""
        parts = []
        for value in values:
            if value is None:
                parts.append(_NULL)
            else:
                raw = cls.member(value)
                parts += (_LENGTH(len(raw)), raw)
        return b"".join(parts)

    member: ClassVar[Callable[[Any], bytes]]


class BigInts(Column):
    """Whole numbers, which are nearly always all there."""

    ARRAY, MEMBER = 1016, 20
    member = struct.Struct(">q").pack

    @classmethod
    def members(cls, values: Sequence[Any]) -> bytes:
        if None in values:
            return super().members(values)
        flat = [8] * (2 * len(values))
        flat[1::2] = values
        return _interleaved(len(values))(*flat)


class Texts(Column):
    """Words."""

    ARRAY, MEMBER = 1009, 25
    member = str.encode


class Blobs(Column):
    """Bytes."""

    ARRAY, MEMBER = 1001, 17
    member = bytes


class Bools(Column):
    """Yes and no."""

    ARRAY, MEMBER = 1000, 16
    member = struct.Struct(">?").pack


@cache
def _interleaved(members: int) -> Callable[..., bytes]:
    return struct.Struct(">" + "iq" * members).pack


def _dumper(kind: type[Column]) -> type[Dumper]:
    class Written(Dumper):
        format = Format.BINARY
        oid = kind.ARRAY

        def dump(self, obj: Column) -> bytes:
            return obj

    return Written


_DUMPERS: Final = {kind: _dumper(kind) for kind in (BigInts, Texts, Blobs, Bools)}


def teach(adapters: AdaptersMap) -> None:
    """A connection knows these from now on."""
    for kind, dumper in _DUMPERS.items():
        adapters.register_dumper(kind, dumper)


_N, _T, _B, _Y = BigInts.of, Texts.of, Blobs.of, Bools.of
_KINDS: Final[dict[str, tuple[Callable[[Sequence[Any]], Column], ...]]] = {
    "insert_tasks": (_N, *[_T] * 7, _N, _N, _N, _T, *[_N] * 6, _T, _T, _N, _N, _N, *[_T] * 4),
    "insert_events": (_N, _N, _N, _T, _T, _T, _B),
    "touch_tasks": (*[_N] * 6, _T, _N),
    "update_tasks": (_T, *[_N] * 6, _T, _T, _N, _N, _N, _T, _N, _T, _N, _Y),
    "claim_task": (_T, _T, *[_N] * 5),
    "withdraw_all_pauses": (_N,),
}
"""What the columns of each of these statements are."""


def columns(name: str, rows: Sequence[Sequence[Any]]) -> list[Column]:
    """The rows of a statement, column by column."""
    return [written(column) for written, column in zip(_KINDS[name], zip(*rows, strict=True), strict=True)]
