"""The text of a plan file, and where in it each value stands.

Readers note only where values begin and end, in the order of the file; lines, columns and the way into a text are
worked out for the few places that a problem names. So a good plan pays almost nothing for being locatable.
"""

import re
from array import array
from bisect import bisect_right
from dataclasses import replace
from typing import Final, TypeAlias

from everstep.domain.pointer import keys
from everstep.domain.problem import Problem
from everstep.domain.record import record
from everstep.domain.values import JsonValue
from everstep.wire.scalars import BLOCK_SIGNS, binding_in_block, offsets_in

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
Spot: TypeAlias = tuple[int, int]
"""First offset in the source, and the one after the last."""


class Source:
    """A text, by lines."""

    def __init__(self, text: str, file: str | None = None) -> None:
        self.text = text
        self.file = file
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def line_column(self, offset: int) -> tuple[int, int]:
        """Both from 1, in code points."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """One line without its end."""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def placed(self, problem: Problem, spot: Spot) -> Problem:
        """The problem with line and columns; what runs over several lines is shown to the end of the first."""
        line, column = self.line_column(spot[0])
        end_line, end_column = self.line_column(spot[1])
        if end_line > line:
            end_column = len(self.line(line)) + 1
        return replace(problem, file=self.file, line=line, column=column, end_column=max(end_column, column + 1))


@record
class Mark:
    """Where a value stands, and its key if it has one."""

    spot: Spot
    key: Spot | None
    value: JsonValue


class Marks:
    """Where values stand, in the order in which they begin: keys and values of maps in turn, items of lists.

    Three numbers each: begin, end, and the index of what comes behind, so that whole branches are stepped over.
    """

    def __init__(self) -> None:
        self._begin = array("L")
        self._end = array("L")
        self._behind = array("L")

    def open(self, begin: int, end: int) -> int:
        """A key or value begins; its index. A scalar is complete with that."""
        at = len(self._begin)
        self._begin.append(begin)
        self._end.append(end)
        self._behind.append(at + 1)
        return at

    def close(self, at: int, end: int) -> None:
        """The list or map `at` ends."""
        self._end[at] = end
        self._behind[at] = len(self._begin)

    def spot(self, at: int) -> Spot:
        """Begin and end of what has this index."""
        return self._begin[at], self._end[at]

    def find(self, value: JsonValue, pointer: str) -> Mark:
        """Where `pointer` leads in `value`; if it leads nowhere, the last thing on the way that is there."""
        at = 0
        key_spot: Spot | None = None
        for key in keys(pointer):
            if isinstance(value, dict) and key in value:
                key_at = self._skip(at + 1, 2 * [*value].index(key))
                key_spot, at = self.spot(key_at), key_at + 1
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                key_spot, at = None, self._skip(at + 1, int(key))
                value = value[int(key)]
            else:
                break
        return Mark(spot=self.spot(at), key=key_spot, value=value)

    def _skip(self, at: int, count: int) -> int:
        for _ in range(count):
            at = self._behind[at]
        return at


@record
class Located:
    """A value that was read from a text."""

    source: Source
    value: JsonValue
    marks: Marks

    def locate(self, problem: Problem) -> Problem:
        """The problem with its line and column."""
        mark = self.marks.find(self.value, problem.path)
        if problem.other is not None:
            line, _ = self.source.line_column(self.marks.find(self.value, problem.other).spot[0])
            message = problem.message.replace(f"at {problem.other}", f"on line {line}")
            problem = replace(problem, message=message, other=None)
        if problem.on_key and mark.key is not None:
            return self.source.placed(problem, mark.key)
        if problem.span is None or not isinstance(mark.value, str):
            return self.source.placed(problem, mark.spot)
        return self._inside(problem, mark.spot, mark.value, problem.span)

    def _inside(self, problem: Problem, spot: Spot, text: str, span: Spot) -> Problem:
        """Inside a text: at the very characters, but in block scalars only the line of the binding."""
        raw = self.source.text[spot[0] : spot[1]]
        if raw.startswith(BLOCK_SIGNS):
            line, _ = self.source.line_column(spot[0] + binding_in_block(raw, text, span[0]))
            return replace(problem, file=self.source.file, line=line)
        first, last = offsets_in(raw, span)
        return self.source.placed(problem, (spot[0] + first, spot[0] + last))
