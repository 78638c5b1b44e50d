"""Sink: where the engine's own remarks go. Never the journal, never a step's values."""

from typing import Protocol

from everstep.domain.ids import StepPath, TaskId
from everstep.domain.values import JsonValue


class Sink(Protocol):
    """Structured remarks for operators."""

    def note(self, event: str, **fields: JsonValue) -> None:
        """Worth a line in the log."""

    def trouble(self, event: str, error: BaseException, **fields: JsonValue) -> None:
        """Something of ours went wrong; the log keeps the stack."""

    def progress(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """How far a running call has come: volatile, shown to whoever watches."""
