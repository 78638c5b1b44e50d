"""The words of an expression: names, numbers, texts and signs, each with its place.

Every pattern reads each character once, and no further than an expression may be long.
"""

import re
from typing import Final, Literal, NoReturn, TypeAlias, get_args

from everstep.domain.expression import BadExpression, Span
from everstep.domain.record import record
from everstep.domain.values import INTEGER_MAX, JsonValue

EXPRESSION_CHARS_MAX: Final = 1_000


class BadError(Exception):
    """Leaves the parser from any depth; `grammar` catches it."""

    def __init__(self, why: BadExpression) -> None:
        self.why = why


def refuse(message: str, span: Span, *, suggestion: str | None = None) -> NoReturn:
    """Give up, and say why."""
    raise BadError(BadExpression(code="bad_expression", message=message, span=span, suggestion=suggestion))


Kind: TypeAlias = Literal["name", "number", "string", "sign", "end"]
_KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:
        ([A-Za-z_][A-Za-z0-9_]*)
      | ([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | ("(?:[^"\\\x00-\x1f]|\\.)*+"|'(?:[^'\\\x00-\x1f]|\\.)*+')
      | (==|!=|<=|>=|[-<>()\[\],.])
      | (\})
    )""",
    re.VERBOSE,
)
_SPACE: Final = re.compile(r"[ \t\r\n]*")


@record
class Token:
    """One word, with its place in the text."""

    kind: Kind
    text: str
    span: Span


def tokens_from(text: str, start: int) -> list[Token]:
    """All tokens up to and with the closing `}`."""
    limit = start + EXPRESSION_CHARS_MAX + 1
    tokens: list[Token] = []
    at = start
    while True:
        match = _TOKEN.match(text, at, limit)
        if match is None or match.lastindex is None:
            _refuse_token(text, start, at)
        kind = _KINDS[match.lastindex - 1]
        tokens.append(Token(kind=kind, text=match[match.lastindex], span=match.span(match.lastindex)))
        at = match.end()
        if kind == "end":
            return tokens


def _refuse_token(text: str, start: int, at: int) -> NoReturn:
    space = _SPACE.match(text, at)
    at = space.end() if space else at
    here = (at, min(at + 1, len(text)))
    if at >= start + EXPRESSION_CHARS_MAX or (len(text) > start + EXPRESSION_CHARS_MAX and text[at] in "\"'"):
        refuse(f"an expression has at most {EXPRESSION_CHARS_MAX} characters", (start - 2, start))
    if at >= len(text):
        refuse("'}' is missing", (start - 2, start))
    if text[at] == "{":
        inner = text[at + 1 :].partition("}")[0].strip()
        refuse("'{' does not belong here", here, suggestion=f"${{{inner}}}")
    if text[at] in "\"'":
        refuse("this text has no end", here)
    refuse(f"{text[at]!r} does not belong here", here)


_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {
    '"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip


def string_value(token: Token) -> str:
    """The text between the quotes; escapes as in JSON, and the single quote."""

    def plain(match: re.Match[str]) -> str:
        if match[1] is not None:
            return chr(int(match[1], 16))
        if match[2] not in _ESCAPES:
            start = token.span[0] + 1 + match.start()
            refuse(f"'\\{match[2]}' is not an escape", (start, start + 2))
        return _ESCAPES[match[2]]

    body = token.text[1:-1]
    if "\\" not in body:
        return body
    try:
        return _ESCAPE.sub(plain, body).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        refuse("half a surrogate pair is not a character", token.span)


def number_value(text: str, span: Span) -> JsonValue:
    """A number as JSON knows it."""
    digits = text.lstrip("-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        refuse(f"{text} can be read in two ways, write it without the leading 0", span)
    if digits.isdigit():
        whole = int(text)
        if abs(whole) > INTEGER_MAX:
            refuse("whole numbers end at 2^53", span)
        return whole
    number = float(text)
    if number in (float("inf"), float("-inf")):
        refuse("this number is too large", span)
    return number
