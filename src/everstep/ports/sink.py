"""Sink: where the engine's own remarks go. Never the journal, never a step's values."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from everstep.domain.ids import StepPath, TaskId
from everstep.domain.values import JsonValue

Listener: TypeAlias = Callable[[TaskId, StepPath, float, str | None], None]


class Sink(Protocol):
    """Structured remarks for operators."""

    def note(self, event: str, **fields: JsonValue) -> None:
        """Worth a line in the log."""

    def trouble(self, event: str, error: BaseException, **fields: JsonValue) -> None:
        """Something of ours went wrong; the log keeps the stack."""

    def progress(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """How far a running call has come: volatile, shown to whoever watches."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear of progress; returns how to stop."""
