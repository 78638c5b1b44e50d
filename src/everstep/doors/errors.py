"""One table: code -> HTTP status, exit code, category, title. And a refusal as problem+json, the same at every door.

A code is the contract: the same word in HTTP, on the command line and in the docs. Nothing but a code, its message
and what the raiser put into `details` ever leaves: no stack, no path of the host, no SQL.
"""

import secrets
from collections.abc import Mapping
from typing import Final

from everstep.domain.errors import EverstepError, PlanError
from everstep.domain.failure import Category
from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.wire.show import to_json as problem_to_json

MEDIA_TYPE: Final = "application/problem+json"


@record
class Refusal:
    """How one code is answered. Without a status it never crosses HTTP."""

    status: int
    exit: int
    category: Category
    title: str


def _row(status: int, exit: int, title: str, category: Category = Category.CONFIGURATION) -> Refusal:
    return Refusal(status=status, exit=exit, category=category, title=title)


USAGE, FAILED, INVALID, DENIED, MISSING, AWAY, CLASH, BUG = 2, 1, 3, 4, 5, 6, 9, 70
"""Exit codes of the command line (interfaces, 2.2)."""

REFUSALS: Final[Mapping[str, Refusal]] = {
    # the request
    "bad_request": _row(400, USAGE, "The request cannot be understood"),
    "too_large": _row(413, USAGE, "The request is too large", Category.RESOURCE),
    "not_found": _row(404, MISSING, "There is no such thing"),
    "too_many_tasks": _row(429, FAILED, "There are too many unfinished tasks", Category.RESOURCE),
    "task_terminal": _row(409, CLASH, "The task has ended", Category.LOGIC),
    "method_not_allowed": _row(405, MISSING, "This cannot be done here"),
    "resync_required": _row(410, MISSING, "These events are not there"),
    "forbidden": _row(403, DENIED, "This is not allowed", Category.PERMISSION),
    # the state
    "illegal_state": _row(409, CLASH, "The task's state does not allow it", Category.LOGIC),
    "answer_needed": _row(409, CLASH, "The task waits for an answer", Category.LOGIC),
    "already_answered": _row(409, CLASH, "Somebody has answered already", Category.LOGIC),
    "idempotency_conflict": _row(409, CLASH, "The key belongs to another task", Category.LOGIC),
    "version_conflict": _row(412, CLASH, "The task has changed since", Category.LOGIC),
    "task_not_completed": _row(409, FAILED, "The task did not complete", Category.LOGIC),
    # the values
    "plan_invalid": _row(422, INVALID, "The plan has problems"),
    "inputs_invalid": _row(422, INVALID, "The inputs do not fit the plan"),
    "answer_invalid": _row(422, INVALID, "This is no valid answer"),
    "unknown_field": _row(422, INVALID, "The request has an unknown field"),
    "config_invalid": _row(500, INVALID, "A setting is wrong"),
    # the engine and its store
    "internal": _row(500, BUG, "Something went wrong in everstep", Category.INTERNAL),
    "not_ready": _row(503, AWAY, "The engine takes no work now", Category.TRANSIENT),
    "overloaded": _row(503, AWAY, "The engine has too much to do", Category.TRANSIENT),
    "store_unavailable": _row(503, AWAY, "The store does not answer", Category.TRANSIENT),
    "store_full": _row(507, AWAY, "No space is left", Category.RESOURCE),
    "store_locked": _row(503, AWAY, "Another engine holds the store", Category.RESOURCE),
    "store_refused": _row(500, AWAY, "This cannot be used as a store"),
    "durability_not_met": _row(500, AWAY, "The store cannot keep its promises"),
}
RETRY_AFTER_S: Final[Mapping[str, int]] = {"not_ready": 1, "overloaded": 1, "store_unavailable": 1}
"""When it is worth asking again."""


def refusal_of(error: EverstepError) -> Refusal:
    """The row of an error; a code without one is our bug, and a test says so."""
    return REFUSALS.get(error.code, REFUSALS["internal"])


def problem(error: EverstepError) -> JsonObject:
    """The problem+json of a refusal (RFC 9457), with the whole Error object."""
    row = refusal_of(error)
    return {
        "type": f"urn:everstep:error:{error.code}",
        "title": row.title,
        "status": row.status,
        "detail": error.message,
        "error": error_object(error),
    }


def error_object(error: EverstepError) -> JsonObject:
    """The Error object (interfaces, 5.6) of something that went wrong for the caller."""
    details = dict(error.details)
    if isinstance(error, PlanError):
        details["problems"] = [problem_to_json(one) for one in error.problems]
    return {
        "id": f"e_{_new_id()}",
        "code": error.code,
        "category": refusal_of(error).category.value,
        "message": error.message,
        "what_to_do": error.what_to_do,
        "step": None,
        "attempt": None,
        "retry": None,
        "impact": None,
        "suggestions": [],
        "details": details or None,
        "cause": None,
    }


_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"


def _new_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(26))
