"""Where a list goes on: opaque to callers, of one list only, and recognisably altered if somebody alters it."""

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

from everstep.domain.errors import Validation


def cursor_of(where: str, place: str) -> str:
    """After `place` in the list `where`."""
    return urlsafe_b64encode(f"{place}\n{_mark(where, place)}".encode()).decode().rstrip("=")


def place_in(where: str, cursor: str | None) -> str | None:
    """The place; raises Validation for a cursor that is not ours."""
    if cursor is None:
        return None
    try:
        place, _, mark = urlsafe_b64decode(f"{cursor}===").decode().rpartition("\n")
    except ValueError:
        raise altered() from None
    if mark != _mark(where, place) or cursor != cursor_of(where, place):
        raise altered()
    return place


def altered() -> Validation:
    """The refusal."""
    return Validation("the cursor was altered", what_to_do="begin without a cursor")


def _mark(where: str, place: str) -> str:
    return f"{zlib.crc32(f'{where} {place}'.encode()):08x}"
