"""References inside Python text. An f-string cannot hold one, so it prints as a marker that only its plan knows.

Text is literal: whatever looks like a binding in it is escaped, and a marker carries a nonce, so pasted data can
become neither an expression nor a reference.
"""

import os
import re
from typing import Final

NONCE_BYTES: Final = 8
_MARKER: Final = re.compile(r"<<([0-9a-f]{16}):(\d+)>>")
"""One for all plans: compiled anew for each, it would push every other expression out of Python's memory."""


class Markers:
    """The references that one plan has printed."""

    def __init__(self) -> None:
        self._nonce = os.urandom(NONCE_BYTES).hex()
        self._head = f"<<{self._nonce}:"
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
        spelled, at = "", 0
        for marker in _MARKER.finditer(text):
            if marker[1] == self._nonce:
                spelled += _before_binding(text[at : marker.start()]) + binding(self._printed[int(marker[2])])
                at = marker.end()
        return spelled + escaped(text[at:])


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
