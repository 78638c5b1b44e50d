"""References inside Python text. An f-string cannot hold one, so it prints as a marker that only its plan knows.

Text is literal: whatever looks like a binding in it is escaped, and a marker carries a nonce, so pasted data can
become neither an expression nor a reference.
"""

import os
import re
from typing import Final

NONCE_BYTES: Final = 8


class Markers:
    """The references that one plan has printed."""

    def __init__(self) -> None:
        nonce = os.urandom(NONCE_BYTES).hex()
        self._head = f"<<{nonce}:"
        self._pattern = re.compile(rf"<<{nonce}:(\d+)>>")
        self._printed: list[str] = []

    def print(self, expression: str) -> str:
        """The marker of an expression."""
        if expression not in self._printed:
            self._printed.append(expression)
        return f"{self._head}{self._printed.index(expression)}>>"

    def holds(self, text: str) -> bool:
        """Whether a text holds a reference."""
        return self._head in text

    def template(self, text: str) -> str:
        """A Python text as a plan spells it: markers become bindings, all else stays what it is."""
        if not self.holds(text):
            return escaped(text)
        literal, *rest = self._pattern.split(text)
        spelled = ""
        for index, following in zip(rest[::2], rest[1::2], strict=True):
            spelled += _before_binding(literal) + binding(self._printed[int(index)])
            literal = following
        return spelled + escaped(literal)


def binding(expression: str) -> str:
    """`${…}`."""
    return f"${{{expression}}}"


def escaped(text: str) -> str:
    """Text that stays text."""
    return text.replace("${", "$${")


def _before_binding(text: str) -> str:
    """The same in front of a binding, where a `$` at the end would make an escape of it."""
    bare = text.rstrip("$")
    dollars = text[len(bare) :]
    return escaped(bare) + (binding(f'"{dollars}"') if dollars else "")
