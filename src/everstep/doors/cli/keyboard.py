"""What somebody types while the screen is alive: read key by key, shown by the screen, handed over line by line.

The terminal is taken out of line mode only while a question is open, so a killed process leaves it as it was.
"""

import asyncio
import codecs
import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, Final

_BACKSPACE: Final = frozenset({"\x7f", "\x08"})
_CLEAR: Final = "\x15"
_END: Final = "\x04"
_LINE_CHARS_MAX: Final = 10_000


class Keyboard:
    """The terminal's input, on the running event loop."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        self.typed = ""
        self._heard = heard
        self._saved: list[Any] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._escape = False

    def listen(self) -> None:
        """Take the keys; what was typed before the question is not an answer to it."""
        if self._saved is not None:
            return
        import termios

        device = sys.stdin.fileno()
        self.typed = ""
        self._saved = termios.tcgetattr(device)
        changed = [*self._saved]
        changed[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(device, termios.TCSAFLUSH, changed)
        asyncio.get_running_loop().add_reader(device, self._read)

    def leave(self) -> None:
        """Give the terminal back."""
        saved, self._saved = self._saved, None
        if saved is None:
            return
        import termios

        device = sys.stdin.fileno()
        with contextlib.suppress(RuntimeError):  # the loop may be gone already
            asyncio.get_running_loop().remove_reader(device)
        termios.tcsetattr(device, termios.TCSADRAIN, saved)

    def _read(self) -> None:
        data = os.read(sys.stdin.fileno(), 4096)
        if not data:
            self.leave()
            self._heard(_END)
        for char in self._decoder.decode(data):
            self.press(char)

    def press(self, char: str) -> None:
        """One key."""
        if self._escape:
            self._escape = not char.isalpha() and char != "~"
        elif char == "\x1b":
            self._escape = True
        elif char in "\r\n":
            line, self.typed = self.typed, ""
            self._heard(line)
        elif char in _BACKSPACE:
            self.typed = self.typed[:-1]
        elif char == _CLEAR:
            self.typed = ""
        elif char == _END and not self.typed:
            self._heard(_END)
        elif char.isprintable() and len(self.typed) < _LINE_CHARS_MAX:
            self.typed += char


END: Final = _END
"""Heard instead of a line when nobody will type any more."""


def in_front() -> bool:
    """Whether keys typed at the terminal come to this process at all."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, AttributeError, ValueError):
        return False
