"""What goes wrong for a client: a code of the protocol, or a result that a model can act on."""

from typing import Final

from everstep.domain.errors import EverstepError
from everstep.domain.values import JsonObject

INVALID_PARAMS: Final = -32602
METHOD_NOT_FOUND: Final = -32601
MISSING_CAPABILITY: Final = -32021
HEADER_MISMATCH: Final = -32020
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
OURS: Final = frozenset({"internal", "store_unavailable", "store_full", "store_locked", "not_ready", "overloaded"})
"""Codes that no model can do anything about."""


class Refused(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, message: str, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def no_such_task() -> Refused:
    """Unknown, foreign and expired are the same."""
    return Refused(INVALID_PARAMS, "Task not found")


def broken(error: EverstepError) -> Refused:
    """Ours, or the store's: a code and an id, nothing of the inside."""
    return Refused(INTERNAL_ERROR, error.message, {"code": error.code})


def error_json(error: EverstepError) -> JsonObject:
    """What a model can act on."""
    return {"code": error.code, "message": error.message, "what_to_do": error.what_to_do, "details": error.details}
