"""A sink that no secret passes: remarks, stacks and progress are redacted before anybody writes or shows them."""

import traceback
from collections.abc import Callable
from typing import cast

from everstep.domain.ids import StepPath, TaskId
from everstep.domain.redact import Redactor
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.sink import Listener, Sink

STACK_CHARS_MAX = 8 * 1024


class RedactedSink:
    """In front of another sink."""

    def __init__(self, inner: Sink, redactor: Redactor) -> None:
        self._inner = inner
        self._redactor = redactor

    def note(self, event: str, **fields: JsonValue) -> None:
        """Without them."""
        self._inner.note(self._redactor.text(event), **self._clean(fields))

    def trouble(self, event: str, error: BaseException, **fields: JsonValue) -> None:
        """Without them, in the stack too."""
        stack = "".join(traceback.format_exception(error))
        said: JsonObject = {**fields, "error": f"{type(error).__name__}: {error}", "stack": stack[-STACK_CHARS_MAX:]}
        self._inner.note(event, **{**self._clean(said), "level": "error"})

    def progress(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """Without them."""
        self._inner.progress(task, step, fraction, None if text is None else self._redactor.text(text))

    def output(self, task: TaskId, step: StepPath, attempt: int, text: str) -> None:
        """As it comes: who makes it redacts it as a stream."""
        self._inner.output(task, step, attempt, text)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Of the inner one."""
        return self._inner.listen(listener)

    def _clean(self, fields: JsonObject) -> JsonObject:
        return cast("JsonObject", self._redactor.value(fields))
