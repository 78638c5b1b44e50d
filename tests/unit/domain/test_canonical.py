"""RFC 8785: the number table of its appendix, the order of keys, the escapes."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain.canonical import canonical_text, number_text

# RFC 8785, appendix B: the bits of a double and its only spelling.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_of_the_rfc(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert number_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_itself(number: float) -> None:
    assert float(number_text(number)) == number


def test_keys_are_sorted_by_utf16_code_units() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    text = canonical_text(dict.fromkeys(keys))
    assert [*json.loads(text)] == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('\u20ac$\u000f\nA\'B"\\"/', '"\u20ac$\\u000f\\nA\'B\\"\\\\\\"/"'),
        ("\b\f\t\x7f", '"\\b\\f\\t\x7f"'),
        ([], "[]"),
        ({}, "{}"),
        ([1, True, None, [2.0, {}], "x"], '[1,true,null,[2,{}],"x"]'),
        ({"b": 1, "a": {"d": [], "c": False}}, '{"a":{"c":false,"d":[]},"b":1}'),
    ],
)
def test_values(value: object, text: str) -> None:
    assert canonical_text(value) == text  # type: ignore[arg-type]  # a table of JSON values
