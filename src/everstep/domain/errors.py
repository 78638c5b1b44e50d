"""What went wrong for the caller or the store: exceptions with a stable `code`, never stored.

    EverstepError  .code .what_to_do
      RequestError   the caller can fix it:   PlanError NotFound Conflict Validation NotAllowed LimitExceeded
      StoreError     the operator can fix it: Unavailable StoreLocked StoreFull StoreRefused; LeaseLost (internal)
      SettingsError  EngineClosed

What happened to a *step* is a `Failure` value instead.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from everstep.domain.values import JsonObject

if TYPE_CHECKING:
    from everstep.domain.problem import Problem

PROBLEMS_SHOWN: Final = 20
"""In a traceback; `problems` has them all."""


class EverstepError(Exception):
    """Something the caller or the operator can act on. A traceback shows the message, and below it what to do."""

    code = "internal"
    what_to_do = "report this with the log file"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        what_to_do: str | None = None,
        details: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.what_to_do = what_to_do or self.what_to_do
        self.details: JsonObject = details or {}
        self.add_note(f"what to do: {self.what_to_do}")


class RequestError(EverstepError):
    """The caller can fix it."""

    code = "bad_request"
    what_to_do = "correct the request"


class PlanError(RequestError):
    """A plan or its inputs have problems; all of them are listed."""

    code = "plan_invalid"
    what_to_do = "correct the plan; `everstep plan check FILE` shows every problem"

    def __init__(
        self,
        message: str,
        problems: Sequence["Problem"] = (),
        *,
        code: str | None = None,
        what_to_do: str | None = None,
    ) -> None:
        super().__init__(message, code=code, what_to_do=what_to_do)
        self.problems = tuple(problems)
        for problem in self.problems[:PROBLEMS_SHOWN]:
            self.add_note(f"{problem.path or '/'}: {problem.message}")


class NotFound(RequestError):
    """Nothing of that name, or it is another owner's."""

    code = "not_found"
    what_to_do = "list what there is: everstep ls"


class Conflict(RequestError):
    """The current state does not allow it."""

    code = "illegal_state"
    what_to_do = "look at the current state: everstep show TASK"


class Validation(RequestError):
    """A value breaks its rules."""

    code = "bad_request"


class NotAllowed(RequestError):
    """Whoever asks may not."""

    code = "forbidden"
    what_to_do = "ask somebody who may"


class LimitExceeded(RequestError):
    """A bound is reached."""

    code = "too_large"
    what_to_do = "ask for less, or raise the limit in everstep.toml"


class StoreError(EverstepError):
    """The operator can fix it."""

    code = "store_unavailable"
    what_to_do = "everstep doctor"


class Unavailable(StoreError):
    """The store does not answer, or fails."""


class StoreLocked(StoreError):
    """Another engine holds this store."""

    code = "store_locked"


class StoreFull(StoreError):
    """No space is left."""

    code = "store_full"
    what_to_do = "free disk space; nothing is lost, work goes on by itself"


class StoreRefused(StoreError):
    """Not a store of ours, a newer one, or on a file system that cannot keep its promises."""

    code = "store_refused"


class LeaseLost(StoreError):
    """The task is somebody else's now. Internal: the walk stops and writes nothing more."""


class SettingsError(EverstepError):
    """A setting is unknown or has a bad value."""

    code = "config_invalid"
    what_to_do = "correct the setting"


class EngineClosed(EverstepError):
    """The engine is not open (any more)."""

    code = "not_ready"
    what_to_do = "open the engine first: `async with Engine(...) as engine`"
