"""How a text with `${…}` is read: tokens, then one method per rule.

Written by hand, not with `ast`: fields may be called `from` or `class`, positions must be exact, and no text may
crash the reader. Everything is bounded (length, nesting, parts), so a hostile text costs no more than a good one.
"""

import re
from typing import Final, Literal, NoReturn, get_args

from everstep.domain.expression import (
    FUNCTIONS,
    WORDS,
    BadExpression,
    Call,
    Choice,
    Compare,
    Constant,
    Expression,
    Junction,
    Listing,
    Not,
    Part,
    Ref,
    Sign,
    Span,
)
from everstep.domain.tokens import (
    EXPRESSION_CHARS_MAX,
    BadError,
    Token,
    number_value,
    refuse,
    string_value,
    tokens_from,
)
from everstep.domain.values import JsonValue

NESTING_MAX: Final = 32
PARTS_MAX: Final = 200


def parse_text(text: str) -> tuple[Part, ...] | BadExpression:
    """Split a text into plain pieces and bindings; `$${` stands for `${`. Total: any text gives an answer."""
    parts: list[Part] = []
    plain = ""
    at = 0
    try:
        while (found := text.find("${", at)) >= 0:
            if found > at and text[found - 1] == "$":
                plain += text[at : found - 1] + "${"
                at = found + 2
                continue
            plain += text[at:found]
            if plain:
                parts.append(plain)
                plain = ""
            expression, at = _parse_binding(text, found)
            parts.append(expression)
    except BadError as bad:
        return bad.why
    plain += text[at:]
    if plain:
        parts.append(plain)
    return tuple(parts)


def _parse_binding(text: str, start: int) -> tuple[Expression, int]:
    """The expression after the `${` at `start`, and the offset behind its `}`."""
    plain = _PLAIN.match(text, start, start + 3 + EXPRESSION_CHARS_MAX)
    if plain is not None and plain[1] not in WORDS:
        return _plain_ref(plain), plain.end()
    tokens = tokens_from(text, start + 2)
    parser = _Parser(tokens)
    expression = parser.expression()
    parser.expect_end()
    return expression, tokens[-1].span[1]


_PLAIN: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*+)(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+\}")
"""Most bindings are a name and fields; they need no parser."""


def _plain_ref(match: re.Match[str]) -> Ref:
    at = match.start(1)
    parts = []
    names = match[0][2:-1].split(".")
    for name in names:
        parts.append((at, at + len(name)))
        at += len(name) + 1
    return Ref(root=names[0], path=tuple(names[1:]), parts=tuple(parts), span=(parts[0][0], parts[-1][1]))


_COMPARISONS: Final[dict[str, Sign]] = {sign: sign for sign in get_args(Sign) if sign != "not in"}
_WORD_VALUES: Final[dict[str, JsonValue]] = {"true": True, "false": False, "null": None}


class _Parser:
    """One method per rule of the grammar, in its order; each consumes what it reads."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._count = 0

    def expect_end(self) -> None:
        token = self._tokens[self._at]
        if token.kind != "end":
            refuse(f"expected '}}', not {token.text!r}", token.span)

    def expression(self) -> Expression:
        self._enter()
        value = self._or()
        if self._take_word("if"):
            condition = self._or()
            if not self._take_word("else"):
                self._expected("'else'")
            otherwise = self.expression()
            span = (value.span[0], otherwise.span[1])
            value = self._made(Choice(condition=condition, then=value, otherwise=otherwise, span=span))
        self._depth -= 1
        return value

    def _or(self) -> Expression:
        parts = [self._and()]
        while self._take_word("or"):
            parts.append(self._and())
        return self._junction("or", parts)

    def _and(self) -> Expression:
        parts = [self._not()]
        while self._take_word("and"):
            parts.append(self._not())
        return self._junction("and", parts)

    def _junction(self, word: Literal["and", "or"], parts: list[Expression]) -> Expression:
        if len(parts) == 1:
            return parts[0]
        return self._made(Junction(word=word, parts=tuple(parts), span=(parts[0].span[0], parts[-1].span[1])))

    def _not(self) -> Expression:
        start = self._peek().span[0]
        if not self._take_word("not"):
            return self._compare()
        self._enter()
        value = self._not()
        self._depth -= 1
        return self._made(Not(value=value, span=(start, value.span[1])))

    def _compare(self) -> Expression:
        left = self._value()
        sign = self._comparison()
        if sign is None:
            return left
        right = self._value()
        return self._made(Compare(sign=sign, left=left, right=right, span=(left.span[0], right.span[1])))

    def _comparison(self) -> Sign | None:
        token = self._peek()
        if token.kind in ("sign", "name") and token.text in _COMPARISONS:
            self._at += 1
            return _COMPARISONS[token.text]
        if self._take_word("not"):
            if not self._take_word("in"):
                self._expected("'in' after 'not'")
            return "not in"
        return None

    def _value(self) -> Expression:
        token = self._next()
        if token.kind == "name":
            return self._named(token)
        if token.kind == "string":
            return self._made(Constant(value=string_value(token), span=token.span))
        if token.kind == "number":
            return self._made(Constant(value=number_value(token.text, token.span), span=token.span))
        if token.text == "-":
            return self._negative(token)
        if token.text == "[":
            return self._listing(token)
        if token.text == "(":
            inner = self.expression()
            self._take_sign(")")
            return inner
        self._at -= 1
        return self._expected("a value")

    def _named(self, token: Token) -> Expression:
        if token.text in _WORD_VALUES:
            return self._made(Constant(value=_WORD_VALUES[token.text], span=token.span))
        if token.text in WORDS:
            self._at -= 1
            self._expected("a value")
        if self._peek().text == "(" and self._peek().kind == "sign":
            return self._call(token)
        return self._ref(token)

    def _negative(self, minus: Token) -> Expression:
        token = self._next()
        if token.kind != "number":
            self._at -= 1
            self._expected("a number after '-'")
        span = (minus.span[0], token.span[1])
        return self._made(Constant(value=number_value("-" + token.text, span), span=span))

    def _listing(self, opening: Token) -> Expression:
        items = [] if self._peek().text == "]" else self._expressions()
        end = self._take_sign("]")
        return self._made(Listing(items=tuple(items), span=(opening.span[0], end)))

    def _call(self, name: Token) -> Expression:
        if name.text not in FUNCTIONS:
            message = f"no function '{name.text}'"
            raise BadError(BadExpression(code="unknown_function", message=message, span=name.span, name=name.text))
        self._take_sign("(")
        arguments = self._expressions()
        span = (name.span[0], self._take_sign(")"))
        wanted = FUNCTIONS[name.text]
        if len(arguments) != wanted:
            refuse(f"'{name.text}' takes {wanted} value{'s' if wanted > 1 else ''}, not {len(arguments)}", span)
        return self._made(Call(function=name.text, arguments=tuple(arguments), span=span))

    def _expressions(self) -> list[Expression]:
        items = [self.expression()]
        while self._peek().text == "," and self._peek().kind == "sign":
            self._at += 1
            items.append(self.expression())
        return items

    def _ref(self, root: Token) -> Expression:
        path: list[str | int] = []
        parts = [root.span]
        while self._peek().kind == "sign" and self._peek().text in ".[":
            token = self._next()
            key, span = self._field() if token.text == "." else self._subscript(token)
            path.append(key)
            parts.append(span)
        span = (root.span[0], parts[-1][1])
        return self._made(Ref(root=root.text, path=tuple(path), parts=tuple(parts), span=span))

    def _field(self) -> tuple[str, Span]:
        token = self._peek()
        if token.kind != "name":
            self._expected("a name after '.'")
        self._at += 1
        return token.text, token.span

    def _subscript(self, opening: Token) -> tuple[str | int, Span]:
        token = self._next()
        key: str | int
        if token.kind == "string":
            key = string_value(token)
        else:
            minus = token.text == "-"
            token = self._next() if minus else token
            if token.kind != "number" or not token.text.isdigit():
                self._at -= 1
                self._expected("a whole number or a quoted key inside '[…]'")
            key = int(token.text) * (-1 if minus else 1)
        return key, (opening.span[0], self._take_sign("]"))

    # --- small change

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > NESTING_MAX:
            refuse(f"nested more than {NESTING_MAX} deep", self._peek().span)

    def _made(self, made: Expression) -> Expression:
        self._count += 1
        if self._count > PARTS_MAX:
            refuse(f"an expression has at most {PARTS_MAX} parts", made.span)
        return made

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        """The next token; the closing `}` is never passed."""
        token = self._tokens[self._at]
        if token.kind == "end":
            self._expected("a value")
        self._at += 1
        return token

    def _take_word(self, word: str) -> bool:
        token = self._peek()
        taken = token.kind == "name" and token.text == word
        self._at += taken
        return taken

    def _take_sign(self, sign: str) -> int:
        """Consume `sign` and say where it ends."""
        token = self._peek()
        if token.text != sign or token.kind != "sign":
            self._expected(f"'{sign}'")
        self._at += 1
        return token.span[1]

    def _expected(self, what: str) -> NoReturn:
        token = self._peek()
        found = "the end" if token.kind == "end" else repr(token.text)
        suffix = "" if "after '.'" in what else f", not {found}"
        refuse(f"expected {what}{suffix}", token.span)
