"""What exceptions carry, and what is made of those that resist."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain.failure import Category, EffectState
from everstep.domain.raised import (
    CLIENTS,
    client_column,
    failure_of,
    plain_details,
    retry_after_ms,
    status_of,
    text_of,
)
from everstep.domain.values import JsonObject
from everstep.wire.values import canonical


def carrying(**attributes: Any) -> Exception:
    exc = Exception("x")
    for name, value in attributes.items():
        setattr(exc, name, value)
    return exc


def answered(**headers: str) -> Exception:
    return carrying(response=SimpleNamespace(headers={name.replace("_", "-"): text for name, text in headers.items()}))


class Hostile(Exception):
    """Raises whatever it is asked."""

    @property
    def status_code(self) -> int:
        raise RuntimeError("no")

    @property
    def response(self) -> int:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("exc", "status"),
    [
        (carrying(status_code=503), 503),
        (carrying(status=404), 404),
        (carrying(response=SimpleNamespace(status_code=429)), 429),
        (carrying(status_code="503"), None),
        (carrying(status_code=200), None),
        (carrying(status_code=399, status=599), 599),
        (carrying(status=600), None),
        (carrying(status=True), None),
        (carrying(response={"status_code": 500}), None),
        (Hostile(), None),
        (ValueError("x"), None),
    ],
)
def test_status(exc: Exception, status: int | None) -> None:
    assert status_of(exc) == status


@pytest.mark.parametrize(
    ("exc", "wait_ms"),
    [
        (carrying(retry_after=2), 2_000),
        (carrying(retry_after=0.25), 250),
        (carrying(retry_after="5s"), 5_000),
        (carrying(retry_after="7"), 7_000),
        (carrying(retry_after="soon"), None),
        (carrying(retry_after=-1), None),
        (carrying(retry_after=float("nan")), None),
        (carrying(retry_after=float("inf")), None),
        (carrying(retry_after=[3]), None),
        (carrying(retry_after="9" * 5_000), None),
        (answered(Retry_After="120"), 120_000),
        (answered(retry_after="3"), 3_000),
        (answered(Retry_After="Fri, 31 Jan 2026 12:00:10 GMT", Date="Fri, 31 Jan 2026 12:00:00 GMT"), 10_000),
        (answered(Retry_After="Fri, 31 Jan 2026 12:00:00 GMT", Date="Fri, 31 Jan 2026 12:00:10 GMT"), 0),
        (answered(Retry_After="Fri, 31 Jan 2026 12:00:10 GMT"), None),
        (answered(Retry_After="Fri, 31 Foo 2026 12:00:10 GMT"), None),
        (answered(Retry_After="Fri, 99 Jan 2026 12:00:10 GMT"), None),
        (carrying(response=SimpleNamespace(headers=None)), None),
        (Hostile(), None),
        (ValueError(), None),
    ],
)
def test_wish_to_wait(exc: Exception, wait_ms: int | None) -> None:
    assert retry_after_ms(exc) == wait_ms


def client_error(package: str, name: str, cause: Exception | None = None) -> Exception:
    listed = type(name, (Exception,), {"__module__": f"{package}.errors"})
    derived: type[Exception] = type("Derived", (listed,), {"__module__": "mine"})
    exc = derived()
    exc.__cause__ = cause
    return exc


COLUMNS = [
    (package, name, state)
    for package, names in CLIENTS.items()
    for column, state in zip(names, (EffectState.NONE, EffectState.UNKNOWN), strict=True)
    for name in sorted(column)
]


@pytest.mark.parametrize(("package", "name", "state"), COLUMNS)
def test_known_clients_are_told_by_name_along_their_bases(package: str, name: str, state: EffectState) -> None:
    assert client_column(client_error(package, name)) is state
    assert client_column(client_error("mine", name)) is None
    assert client_column(client_error(package, "Other")) is None


def test_a_listed_cause_knows_better() -> None:
    never_sent = client_error("httpx", "ConnectError")
    assert client_column(client_error("openai", "APIConnectionError", never_sent)) is EffectState.NONE
    assert client_column(client_error("openai", "APIConnectionError", OSError())) is EffectState.UNKNOWN
    assert client_column(client_error("mine", "Error", never_sent)) is None
    looped = client_error("httpx", "ReadError")
    looped.__cause__ = looped
    assert client_column(looped) is EffectState.UNKNOWN


def test_text() -> None:
    assert text_of(ValueError("  a  ")) == "a"
    assert text_of(ValueError()) == "ValueError"
    assert text_of(Hostile()) == "Hostile"
    assert text_of(ValueError("half \udc80")) == "half \\udc80"
    assert len(text_of(ValueError("a" * 10_000))) == 2_001


def test_missing_words_come_from_the_catalogue_or_the_category() -> None:
    known = failure_of("os_enospc", "")
    assert (known.category, known.message, known.what_to_do) == (
        Category.RESOURCE,
        "the disk is full",
        "free disk space, then retry",
    )
    own = failure_of("printer_on_fire", "", category=Category.LOGIC)
    assert (own.message, own.what_to_do) == ("printer_on_fire", "decide what should happen instead")
    assert own.effect_state is EffectState.NONE


@pytest.mark.parametrize(
    ("details", "plain"),
    [
        (None, None),
        ("text", None),
        ({}, {}),
        ({"a": 1, "b": [1.5, None, True]}, {"a": 1, "b": [1.5, None, True]}),
        ({1: float("nan"), "big": 2**60}, {"1": "nan", "big": str(2**60)}),
        ({"t": (1, {2})}, {"t": [1, "{2}"]}),
        ({"e": Hostile()}, {"e": "Hostile"}),
        ({"half": "\ud800"}, {"half": "\\ud800"}),
    ],
)
def test_details_become_strict_json(details: object, plain: JsonObject | None) -> None:
    assert plain_details(details) == plain


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=5), anything, max_size=3))
def test_any_details_can_be_written(details: dict[str, object]) -> None:
    plain = plain_details(details)
    assert plain is not None
    assert json.loads(canonical(plain)) is not None
