"""`fault("intent.commit.before")`: a named point where tests may strike. A no-op unless armed."""

from collections.abc import Callable
from typing import TypeAlias

Fault: TypeAlias = Callable[[str], None]


def no_fault(_point: str) -> None:
    """The production answer."""
