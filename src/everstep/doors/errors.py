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
    "unsupported_media_type": _row(415, USAGE, "The body is of another kind"),
    "wrong_host": _row(421, USAGE, "This server is not asked under that name"),
    "unauthenticated": _row(401, DENIED, "A token is needed", Category.PERMISSION),
    "origin_refused": _row(403, DENIED, "This page may not ask", Category.PERMISSION),
    "rate_limited": _row(429, FAILED, "There are too many requests", Category.TRANSIENT),
    "not_found": _row(404, MISSING, "There is no such thing"),
    "too_many_tasks": _row(429, FAILED, "There are too many unfinished tasks", Category.RESOURCE),
    "method_not_allowed": _row(405, MISSING, "This cannot be done here"),
    "gone": _row(410, MISSING, "It was deleted"),
    "resync_required": _row(410, MISSING, "These events are not there"),
    "forbidden": _row(403, DENIED, "This is not allowed", Category.PERMISSION),
    "answer_not_allowed": _row(403, DENIED, "Somebody else has to answer this", Category.PERMISSION),
    # the state
    "illegal_state": _row(409, CLASH, "The task's state does not allow it", Category.LOGIC),
    "answer_needed": _row(409, CLASH, "The task waits for an answer", Category.LOGIC),
    "already_answered": _row(409, CLASH, "Somebody has answered already", Category.LOGIC),
    "task_terminal": _row(409, CLASH, "The task has ended", Category.LOGIC),
    "task_busy": _row(409, CLASH, "A step of the task has no certain end yet", Category.LOGIC),
    "task_paused": _row(409, CLASH, "The task stands still", Category.LOGIC),
    "effects_would_repeat": _row(409, CLASH, "Effects would be made a second time", Category.LOGIC),
    "nothing_to_undo": _row(409, CLASH, "There is nothing to take back", Category.LOGIC),
    "patch.stale_revision": _row(409, CLASH, "The plan has another revision", Category.LOGIC),
    "patch.step_started": _row(409, CLASH, "The step has begun", Category.LOGIC),
    "stale_digest": _row(409, CLASH, "The call is another one by now", Category.LOGIC),
    "idempotency_conflict": _row(409, CLASH, "The key belongs to another task", Category.LOGIC),
    "version_conflict": _row(412, CLASH, "The task has changed since", Category.LOGIC),
    "task_not_completed": _row(409, FAILED, "The task did not complete", Category.LOGIC),
    # the values
    "plan_invalid": _row(422, INVALID, "The plan has problems"),
    "inputs_invalid": _row(422, INVALID, "The inputs do not fit the plan"),
    "patch.effect_raised": _row(422, INVALID, "The change would make a step riskier"),
    "patch.approval_loosened": _row(422, INVALID, "The change would make a step easier to approve"),
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
    "port_in_use": _row(500, AWAY, "Somebody listens at this address", Category.RESOURCE),
}
REMEDIES: Final[Mapping[str, str]] = {
    "bad_request": "correct the request; `details` says where",
    "too_large": "send less, or hand large values over as files",
    "unsupported_media_type": "send JSON: Content-Type: application/json",
    "wrong_host": "ask it as localhost, or add the name to `serve.allowed_hosts`",
    "unauthenticated": "send Authorization: Bearer TOKEN; everstep token new NAME makes one",
    "origin_refused": "open its own page, or add the other to `serve.allowed_origins`",
    "rate_limited": "ask again after `Retry-After` seconds, or raise `serve.rate`",
    "not_found": "list what there is: everstep ls",
    "method_not_allowed": "use one of the methods in `details.allow`",
    "gone": "use another key",
    "resync_required": "read the task again, then its events from there on",
    "forbidden": "ask the operator for a token with the scope that is named",
    "illegal_state": "look at the task first: everstep show TASK",
    "answer_needed": "answer what it waits for: everstep inbox",
    "already_answered": "look what was answered: everstep show TASK",
    "stale_digest": "look at the call again, then approve what you see",
    "answer_not_allowed": "let one of those answer whom `may_answer` names",
    "too_many_tasks": "let some end or cancel them, or raise `limits.live_tasks`",
    "task_terminal": "retry or fork the task: everstep retry TASK",
    "task_busy": "answer what is uncertain, or wait until the step has ended",
    "task_paused": "resume it first: everstep resume TASK",
    "effects_would_repeat": "confirm it (confirm_effects, --yes), or begin at a later step",
    "nothing_to_undo": "see what can be taken back: everstep undo TASK --dry-run",
    "patch.stale_revision": "look at the plan again, then change what it is now: everstep show TASK --plan",
    "patch.step_started": "change a later step, or retry or fork the task from this one",
    "patch.effect_raised": "append it as a step of its own",
    "patch.approval_loosened": "keep its `approve` at least as strict, or skip the step",
    "idempotency_conflict": "use another key, or the same plan and inputs",
    "version_conflict": "look again, then decide",
    "task_not_completed": "look why: everstep show TASK",
    "plan_invalid": "correct the plan: everstep plan check FILE names every problem",
    "inputs_invalid": "correct the inputs; `details.problems` names all of them",
    "answer_invalid": "give one of the answers that the pause lists",
    "unknown_field": "leave the field out, or correct its name",
    "config_invalid": "correct the setting at the place that is named",
    "internal": "report it with the id of the error",
    "not_ready": "try again in a moment; health says what it waits for",
    "overloaded": "try again in a moment",
    "store_unavailable": "see whether its disk is there and well: everstep doctor",
    "store_full": "free disk space; nothing is lost, and work goes on by itself",
    "store_locked": "use the engine that holds it, or end that process: everstep doctor",
    "store_refused": "name another store, or use the program that made it",
    "port_in_use": "end the other process, or choose another port: everstep serve --port N",
    "durability_not_met": "put the store on a local disk, or set `durability` to process",
}
"""What a person can do about each, where the error itself does not know better."""
RETRY_AFTER_S: Final[Mapping[str, int]] = {"not_ready": 1, "overloaded": 1, "store_unavailable": 1, "rate_limited": 1}
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
