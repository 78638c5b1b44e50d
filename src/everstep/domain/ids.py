"""Names of things, as types that cannot be confused. How they are drawn is the entropy port's business."""

import hashlib
import re
from typing import Final, NewType, TypeAlias

TaskId = NewType("TaskId", str)
"""`t_` and 26 characters."""
PauseId = NewType("PauseId", str)
"""`p_` and 26 characters; of an approval also the `approvalId`."""
WorkerId = NewType("WorkerId", str)
"""`w_` and 26 characters: one incarnation of one process. `x_…`: a holder that is no process. Never used twice."""
StepPath = NewType("StepPath", str)
"""A step's plan id, or a sub-step of it: `pages`, `pages[3]`, `pages[call]`."""
Item: TypeAlias = int | str
"""Which sub-step: the number of an item, or one of PARTS."""
Seq = NewType("Seq", int)
"""1, 2, 3, … in the journal of one task."""
Epoch = NewType("Epoch", int)
"""Rises at every claim and recovery of a task, never repeats."""
Digest = NewType("Digest", str)
"""`sha256:` and 64 hex characters."""
Instant = NewType("Instant", int)
"""Milliseconds since 1970, UTC."""
Millis = NewType("Millis", int)
"""A length of time."""

TASK_ID: Final = re.compile(r"t_[0-9a-z]{26}")
"""A whole one: nothing else is called so, and it begins no other."""
KEY = re.compile(r"(?!t_|mt_)[A-Za-z0-9._-]{1,128}")
"""What a creator may call its task."""

BEFORE, CALL, AFTER = PARTS = ("before", "call", "after")
"""What a step with resources beside its call consists of."""
ELSEWHERE = "x_"
"""How holders begin that are no process: whoever carries the task outside says whether they live, no beat of ours."""

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_ITEM: Final = re.compile(r"(.+)\[(?:(\d+)|(before|call|after))\]")


def item_path(step: str, item: Item) -> StepPath:
    """The sub-step of one item of a `for_each`, or of one part."""
    return StepPath(f"{step}[{item}]")


def split_path(path: StepPath) -> tuple[str, Item | None]:
    """The step of the plan, and which item or part of it."""
    if path[-1] != "]":
        return path, None
    match = _ITEM.fullmatch(path)
    return (match[1], match[3] or int(match[2])) if match else (path, None)


def child_id(key: str) -> TaskId:
    """The task that a call with this key makes: the same for every repeat of the call."""
    number = int.from_bytes(hashlib.sha256(f"child\n{key}".encode()).digest()[:17], "big")
    return TaskId("t_" + "".join(_CROCKFORD[number >> 5 * place & 31] for place in range(26)))


def idempotency_key(task: TaskId, path: StepPath, logical_try: int) -> str:
    """The same for every repeat of one call, another for every deliberate retry."""
    return hashlib.sha256(f"{task}\n{path}\n{logical_try}".encode()).hexdigest()
