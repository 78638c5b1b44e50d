"""YAML 1.2 core, as far as a plan needs it, with the place of every value.

PyYAML gives the events; what they mean is decided here, because its own resolver speaks YAML 1.1 (`yes` is true,
`12:30` a number). What could make a small text a large value (anchors, aliases, merges), run code (tags) or mean two
things (`010`, repeated keys) is refused before any value is built from it. Nothing here recurses.
"""

import re
from math import isfinite
from typing import Final

import yaml

from everstep.domain.values import INTEGER_MAX, JsonValue
from everstep.wire.builder import Builder
from everstep.wire.scalars import BLOCK_SIGNS
from everstep.wire.source import Spot

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULLS: Final = frozenset({"null", "Null", "NULL", "~", ""})
_BOOLEANS: Final = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WHOLE: Final = re.compile(r"[-+]?[0-9]+")
_BASES: Final = ((re.compile(r"0o[0-7]+"), 8), (re.compile(r"0x[0-9a-fA-F]+"), 16))
_FRACTION: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NUMBER_CHARS_MAX: Final = 40


class BadNumberError(ValueError):
    """A plain scalar that looks like a number and cannot be one."""


def read_yaml(builder: Builder) -> None:
    """Read the builder's source into it; may stop in the middle."""
    reader = _Reader(builder)
    try:
        for event in yaml.parse(builder.source.text, Loader=LOADER):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        _note_syntax(error, builder)
    except yaml.YAMLError as error:
        builder.refuse("bad_syntax", str(error).partition("\n")[0], (0, 1))


def resolved(text: str) -> JsonValue:
    """The value of a plain scalar; raises BadNumberError."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] in "+-.0123456789" and len(text) <= _NUMBER_CHARS_MAX:
        return _number(text)
    return text


def _number(text: str) -> JsonValue:
    if _WHOLE.fullmatch(text):
        digits = text.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0":
            plain = digits.lstrip("0") or "0"
            raise BadNumberError(f'{text} can be read in two ways, write {plain} or "{text}"')
        return _bounded(int(text))
    for pattern, base in _BASES:
        if pattern.fullmatch(text):
            return _bounded(int(text, base))
    if _NOT_FINITE.fullmatch(text):
        raise BadNumberError(f'{text} is not a number of JSON, write "{text}" for the text')
    if not _FRACTION.fullmatch(text):
        return text
    number = float(text)
    if not isfinite(number):
        raise BadNumberError(f"{text} is too large for a number")
    return number


def _bounded(number: int) -> int:
    if abs(number) > INTEGER_MAX:
        raise BadNumberError("whole numbers end at 2^53, write larger ones as text")
    return number


def _spot(event: yaml.Event) -> Spot:
    assert event.start_mark is not None, "events of a parser have marks"
    assert event.end_mark is not None, "at both ends"
    return event.start_mark.index, event.end_mark.index


class _Reader:
    """Takes events one by one."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        spot = _spot(event)
        match event:
            case yaml.ScalarEvent():
                self._check_properties(event.anchor, event.tag, spot)
                self._scalar(event, spot)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._check_properties(event.anchor, event.tag, spot)
                self._check_no_key(spot)
                self._builder.open({} if isinstance(event, yaml.MappingStartEvent) else [], spot)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._builder.close(spot[1])
            case yaml.AliasEvent():
                self._builder.refuse("yaml_alias", f"'*{event.anchor}' is an alias, write the value out", spot)
                self._check_no_key(spot)
                self._builder.scalar(None, spot)
            case yaml.DocumentStartEvent():
                self._document(event, spot)
            case _:
                return

    def _document(self, event: yaml.DocumentStartEvent, spot: Spot) -> None:
        self._documents += 1
        if event.version is not None or event.tags:
            self._builder.stop("yaml_documents", "a plan takes no directives, leave out the line with '%'", spot)
        if self._documents > 1:
            self._builder.stop("yaml_documents", "one document per file", spot)

    def _check_properties(self, anchor: str | None, tag: str | None, spot: Spot) -> None:
        if anchor is not None:
            self._builder.refuse("yaml_alias", f"'&{anchor}' is an anchor, write the value out", self._word(spot, "&"))
        if tag is not None:
            word = self._word(spot, "!")
            name = self._builder.source.text[slice(*word)]
            self._builder.refuse("yaml_tag", f"'{name}' is a tag, leave it out", word)

    def _word(self, spot: Spot, sign: str) -> Spot:
        """The word that begins with `sign`, at or shortly after the spot's begin."""
        found = re.compile(rf"{re.escape(sign)}[^\s,\[\]{{}}]*").search(self._builder.source.text, spot[0])
        return found.span() if found else spot

    def _check_no_key(self, spot: Spot) -> None:
        if self._builder.wants_key:
            line, _ = self._builder.source.line_column(spot[0])
            hint = quote_hint(self._builder.source.line(line))
            self._builder.stop("bad_syntax", "a key must be text", spot, hint=hint)

    def _scalar(self, event: yaml.ScalarEvent, spot: Spot) -> None:
        plain = not event.style
        if self._builder.wants_key:
            if plain and event.value == "<<":
                self._builder.refuse("yaml_alias", "'<<' merges maps, write the keys out", spot)
            self._builder.key(event.value, spot)
            return
        value: JsonValue = event.value
        if plain:
            try:
                value = resolved(event.value)
            except BadNumberError as bad:
                self._builder.refuse("bad_number", str(bad), spot)
        self._builder.scalar(value, spot)


# --- what the parser says, in other words ---------------------------------------------------------------------------

_SENTENCES: Final = (
    ("mapping values are not allowed", "':' does not belong here: quote the text, or check the indentation"),
    ("could not find expected ':'", "a key must be followed by ':'"),
    ("did not find expected key", "the indentation is off, or a ',' or quote is missing"),
    ("did not find expected '-' indicator", "the indentation is off, or a '-' is missing"),
    ("did not find expected ',' or '}'", "',' or '}' is missing"),
    ("did not find expected ',' or ']'", "',' or ']' is missing"),
    ("found unexpected end of stream", "a quote or bracket is not closed"),
    ("found unknown escape character", "this escape is not known, write \\\\ for a backslash"),
    ("unknown directive", "a plan takes no directives, leave out the line with '%'"),
)


def _note_syntax(error: yaml.MarkedYAMLError, builder: Builder) -> None:
    mark = error.problem_mark or error.context_mark
    at = min(mark.index, len(builder.source.text)) if mark else 0
    if at == len(builder.source.text) and error.context_mark is not None:
        at = error.context_mark.index
    said = str(error.problem)
    message = next((ours for theirs, ours in _SENTENCES if theirs in said), said)
    if builder.source.text[at : at + 1] == "\t":
        message = "a tab cannot indent, use spaces"
    line, _ = builder.source.line_column(at)
    builder.refuse("bad_syntax", message, (at, at + 1), hint=quote_hint(builder.source.line(line)))


_UNQUOTED: Final = re.compile(r"[:\[,{-]\s*(\$?\{\{|\$\{)")


def quote_hint(line: str) -> str | None:
    """What to do about a binding without quotes in `{…}` or `[…]`."""
    return 'quote it: "${…}"' if _UNQUOTED.search(line) else None


_COMMENT: Final = re.compile(r"(?:^|[ \t])#", re.MULTILINE)


def has_comments(text: str) -> bool:
    """Whether a well-formed file holds comments, which no value keeps: any `#` between its scalars."""
    at = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.ScalarEvent):
            begin, end = _spot(event)
            if event.style in BLOCK_SIGNS:
                begin = text.find("\n", begin)
            if _COMMENT.search(text, at, begin):
                return True
            at = end
    return _COMMENT.search(text, at) is not None
