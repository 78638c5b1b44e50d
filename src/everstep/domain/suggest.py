"""Did you mean …? What people and models write from habit, then the closest name that is valid there.

Suggested, never accepted: a plan that ran because a guess was right would stop when the guess changes.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

SIMILARITY_MIN: Final = 0.55
_NAME_CHARS_MAX: Final = 64
_CANDIDATES_MAX: Final = 600

STEP_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("args", "params", "arguments", "input"), "with"),
    **dict.fromkeys(("uses", "action", "call", "type"), "tool"),
    **dict.fromkeys(("depends_on", "after"), "needs"),
    **dict.fromkeys(("if", "condition"), "when"),
    **dict.fromkeys(("foreach", "loop", "with_items"), "for_each"),
    **dict.fromkeys(("retries", "max_attempts"), "retry"),
    **dict.fromkeys(("continue-on-error", "optional"), "on_error: continue"),
    **dict.fromkeys(("output", "as"), "bind"),
    **dict.fromkeys(("max_parallel", "concurrency"), "parallel"),
    **dict.fromkeys(("requires_approval", "confirm"), "approve"),
    **dict.fromkeys(("compensate", "rollback"), "undo"),
}
PLAN_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("timeout", "deadline"), "limits.wall_time"),
    **dict.fromkeys(("max_parallel", "concurrency"), "parallel"),
    **dict.fromkeys(("always", "cleanup", "on_exit"), "finally"),
}
ON_ERROR: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ignore", "skip"), "continue"),
    "abort": "fail",
    "ask": "pause",
}
FUNCTIONS: Final[Mapping[str, str]] = {"length": "len", "count": "len", "size": "len", "str": "text", "strip": "trim"}
TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int", "whole"), "integer"),
    **dict.fromkeys(("float", "decimal"), "number"),
    **dict.fromkeys(("bool", "flag"), "boolean"),
    **dict.fromkeys(("list", "tuple"), "array"),
    **dict.fromkeys(("dict", "map"), "object"),
}


def suggest(name: str, valid: Iterable[str], synonyms: Mapping[str, str] | None = None) -> str | None:
    """What was probably meant by `name`; None if nothing comes close."""
    if synonyms and name in synonyms:
        return synonyms[name]
    if len(name) > _NAME_CHARS_MAX:
        return None
    candidates = sorted(valid)[:_CANDIDATES_MAX]
    matches = get_close_matches(name, candidates, n=1, cutoff=SIMILARITY_MIN)
    return matches[0] if matches else None


def did_you_mean(message: str, suggestion: str | None) -> str:
    """A message with its suggestion, as people read it in one line."""
    return f"{message} (did you mean '{suggestion}'?)" if suggestion else message
