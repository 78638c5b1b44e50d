"""Secrets by value, in all their forms and across any boundary (S61)."""

import html
import json
import textwrap
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain.redact import Redactor

AWKWARD = [
    "hunter2-correct",
    "pa ss\twith\nspaces",
    'quote"back\\slash/<&>',
    "ümläut-geheim-€",
    "sk_live_0123456789abcdef",
    "aaaaaaaa",
    "%41%42+%2B=value",
    "-----BEGIN KEY-----\nMIIB\n-----END KEY-----",
    "日本語の秘密です",
    "[secret:other]x",
    "$(reboot);`id`",
    "0xdeadbeef==",
]


def spellings(value: str) -> list[str]:
    raw = value.encode()
    plain = [
        value,
        value.upper() if value.isascii() else value,
        json.dumps(value),
        json.dumps([value], ensure_ascii=False),
    ]
    plain += [quote(value), quote(value, safe=""), quote_plus(value), html.escape(value), raw.hex(), raw.hex().upper()]
    for before in (b"", b"u", b"us", b"user:"):
        for after in (b"", b"\n", b"xyz"):
            plain += [b64encode(before + raw + after).decode(), urlsafe_b64encode(before + raw + after).decode()]
    wrapped = b64encode(b"head" * 20 + raw + b"tail" * 20).decode()
    plain += ["\n".join(textwrap.wrap(wrapped, 19)), "\r\n".join(textwrap.wrap(raw.hex(), 7))]
    return [*plain, value.encode("utf-16-le").decode("latin-1"), b64encode(value.encode("utf-16-le")).decode()]


@pytest.mark.req("1.5")
@pytest.mark.parametrize("value", AWKWARD)
def test_no_spelling_gets_through(value: str) -> None:
    redactor = Redactor({"mine": value})
    for spelled in spellings(value):
        shown = redactor.text(f"before {spelled} after")
        assert "[secret:mine]" in shown, spelled
        assert value not in shown


def test_what_is_none_stays_as_it_is() -> None:
    value = {"a": ["hunter", 1, None, {"b": "hunter2-correc"}]}
    assert Redactor({"mine": "hunter2-correct"}).value(value) == value  # type: ignore[arg-type]
    assert Redactor().value(value) is value  # type: ignore[arg-type]
    assert not Redactor()


def test_keys_and_depth() -> None:
    redactor = Redactor({"mine": "hunter2-correct", "other": "another-value"})
    assert redactor.value({"hunter2-correct": [{"x": "a another-value b"}]}) == {
        "[secret:mine]": [{"x": "a [secret:other] b"}]
    }


def test_what_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="'pin' has less than 8 bytes"):
        Redactor({"pin": "1234567"})


@given(
    st.sampled_from(AWKWARD),
    st.text(max_size=30),
    st.text(max_size=30),
    st.lists(st.integers(1, 12), min_size=1, max_size=60),
)
def test_no_boundary_lets_it_through(value: str, before: str, after: str, cuts: list[int]) -> None:
    """S61: whatever the pieces are, the stream shows what the whole text would."""
    redactor = Redactor({"mine": value})
    text = before + value + after + b64encode(b"x" + value.encode()).decode() + after
    stream, shown, at = redactor.stream(), "", 0
    for cut in [*cuts, len(text)]:
        shown += stream.feed(text[at : at + cut])
        at += cut
    shown += stream.close()
    assert shown.count("[secret:mine]") >= 2
    if value != "[secret:other]x":
        assert value not in shown
