"""The one text of a JSON value (RFC 8785): same value, same text, same digest.

Exact and in plain Python, so that bindings can use it where nothing third-party may go; `wire/values` uses it for
the values its faster encoder would spell differently. Callers hand in strict JSON: `NaN` or a lone surrogate has
no canonical text.
"""

from json.encoder import encode_basestring  # C-accelerated
from typing import Final

from everstep.domain.values import JsonValue

_WORDS: Final = {None: "null", True: "true", False: "false"}
_PLAIN_DIGITS_MAX: Final = 21
"""ECMAScript writes numbers below 10^21 without an exponent …"""
_PLAIN_ZEROS_MAX: Final = 6
"""… and small ones down to 10^-6."""


def canonical_text(value: JsonValue) -> str:
    """`value` as RFC 8785 text."""
    out: list[str] = []
    _write(value, out)
    return "".join(out)


def _write(value: JsonValue, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(encode_basestring(value))
    elif value is None or isinstance(value, bool):
        out.append(_WORDS[value])
    elif isinstance(value, int):
        out.append(str(value))
    elif isinstance(value, float):
        out.append(number_text(value))
    elif isinstance(value, list):
        _write_list(value, out)
    else:
        _write_object(value, out)


def _write_list(items: list[JsonValue], out: list[str]) -> None:
    separator = "["
    for item in items:
        out.append(separator)
        _write(item, out)
        separator = ","
    out.append("]" if items else "[]")


def _write_object(fields: dict[str, JsonValue], out: list[str]) -> None:
    separator = "{"
    for key in sorted(fields, key=utf16_order):
        out.append(separator)
        out.append(encode_basestring(key))
        out.append(":")
        _write(fields[key], out)
        separator = ","
    out.append("}" if fields else "{}")


def utf16_order(key: str) -> bytes:
    """RFC 8785 sorts keys by UTF-16 code units, which differs from code points above U+FFFF."""
    return key.encode("utf-16-be")


def number_text(number: float) -> str:
    """A finite float as ECMAScript prints it: shortest digits that read back as the same number."""
    text = repr(number)
    if "e" not in text and not text.endswith(".0"):
        return text  # between 1e-4 and 1e16 both languages agree on fractions
    if number == 0:
        return "0"
    sign, text = ("-", text[1:]) if number < 0 else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0").rstrip("0")
    point = len(whole) + int(exponent or "0")
    return sign + _place(digits, point)


def _place(digits: str, point: int) -> str:
    """ECMA-262, Number::toString: `digits` with the decimal point after `point` of them."""
    count = len(digits)
    if count <= point <= _PLAIN_DIGITS_MAX:
        return digits + "0" * (point - count)
    if 0 < point <= _PLAIN_DIGITS_MAX:
        return f"{digits[:point]}.{digits[point:]}"
    if -_PLAIN_ZEROS_MAX < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
