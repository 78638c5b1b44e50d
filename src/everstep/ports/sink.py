"""Sink: where the engine's own remarks go. Never the journal, never a step's values."""

from collections.abc import Callable
from typing import Protocol

from everstep.domain.ids import StepPath, TaskId
from everstep.domain.values import JsonValue


class Listener(Protocol):
    """Hears what running calls say, from any thread; it must not keep them."""

    def progress(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """How far one has come."""

    def output(self, task: TaskId, step: StepPath, attempt: int, text: str) -> None:
        """Text that one produces while it works."""


class Sink(Protocol):
    """Structured remarks for operators."""

    def note(self, event: str, **fields: JsonValue) -> None:
        """Worth a line in the log."""

    def trouble(self, event: str, error: BaseException, **fields: JsonValue) -> None:
        """Something of ours went wrong; the log keeps the stack."""

    def progress(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """How far a running call has come: volatile, shown to whoever watches."""

    def output(self, task: TaskId, step: StepPath, attempt: int, text: str) -> None:
        """Text that a running call produces: volatile, shown to whoever watches."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear of progress and output; returns how to stop."""
