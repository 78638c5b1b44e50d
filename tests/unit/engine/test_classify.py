"""Everything a tool may raise, and what it then means."""

import asyncio
import errno
import socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain.catalogue import ERROR_CODES
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.raised import failure_of
from everstep.engine.classify import classify
from everstep.ports.tool import (
    Denied,
    Impossible,
    Misconfigured,
    NeedsInput,
    ResourceExceeded,
    ToolError,
    Transient,
    Uncertain,
)

NONE, UNKNOWN, MADE = EffectState.NONE, EffectState.UNKNOWN, EffectState.MADE


def carrying(**attributes: Any) -> Exception:
    exc = Exception("sorry")
    for name, value in attributes.items():
        setattr(exc, name, value)
    return exc


def client_error(package: str, name: str) -> Exception:
    cls = type(name, (ConnectionError,), {"__module__": f"{package}._errors"})
    exc = cls("gone")
    assert isinstance(exc, Exception)
    return exc


ROWS: list[tuple[BaseException, str, Category, EffectState]] = [
    # our own
    (Transient("m"), "tool_transient", Category.TRANSIENT, NONE),
    (Uncertain("m"), "tool_uncertain", Category.TRANSIENT, UNKNOWN),
    (Misconfigured("m"), "tool_misconfigured", Category.CONFIGURATION, NONE),
    (Denied("m"), "tool_denied", Category.PERMISSION, NONE),
    (ResourceExceeded("m", limit="memory", used=2, max=1), "limit_memory", Category.RESOURCE, NONE),
    (Impossible("m"), "tool_impossible", Category.LOGIC, NONE),
    (Impossible("m", code="mine", effect_state="made"), "mine", Category.LOGIC, MADE),
    (ToolError("m"), "tool_error", Category.INTERNAL, NONE),
    (NeedsInput("m"), "tool_error", Category.INTERNAL, NONE),
    # carried statuses
    (carrying(status_code=503), "http_503", Category.TRANSIENT, NONE),
    (carrying(status=502), "http_502", Category.TRANSIENT, UNKNOWN),
    (carrying(response=SimpleNamespace(status_code=404)), "http_404", Category.CONFIGURATION, NONE),
    (carrying(status_code=401), "http_401", Category.PERMISSION, NONE),
    (carrying(status_code=409), "http_409", Category.LOGIC, NONE),
    (carrying(status_code=413), "http_413", Category.RESOURCE, NONE),
    # known clients, though they derive from a built-in class
    (client_error("httpx", "ConnectError"), "net_connect", Category.TRANSIENT, NONE),
    (client_error("requests", "ReadTimeout"), "net_read", Category.TRANSIENT, UNKNOWN),
    # built-in classes
    (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), "net_refused", Category.TRANSIENT, NONE),
    (ConnectionResetError("reset"), "net_reset", Category.TRANSIENT, UNKNOWN),
    (BrokenPipeError(), "net_reset", Category.TRANSIENT, UNKNOWN),
    (ConnectionAbortedError(), "net_reset", Category.TRANSIENT, UNKNOWN),
    (OSError(errno.EHOSTUNREACH, "no way"), "net_reset", Category.TRANSIENT, UNKNOWN),
    (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), "net_dns", Category.TRANSIENT, NONE),
    (socket.gaierror(socket.EAI_NONAME, "Name not known"), "net_host", Category.CONFIGURATION, NONE),
    (ssl.SSLCertVerificationError(1, "bad"), "net_tls", Category.CONFIGURATION, NONE),
    (ssl.SSLError(1, "record"), "net_reset", Category.TRANSIENT, UNKNOWN),
    (ssl.SSLEOFError(8, "eof"), "net_reset", Category.TRANSIENT, UNKNOWN),
    (TimeoutError(), "timeout", Category.TRANSIENT, UNKNOWN),
    (TimeoutError("timed out"), "timeout", Category.TRANSIENT, UNKNOWN),
    (OSError(errno.ETIMEDOUT, "x"), "os_etimedout", Category.TRANSIENT, UNKNOWN),
    (FileNotFoundError("x"), "os_missing", Category.CONFIGURATION, NONE),
    (OSError(errno.ENOENT, "x"), "os_missing", Category.CONFIGURATION, NONE),
    (OSError(errno.ENOTDIR, "x"), "os_missing", Category.CONFIGURATION, NONE),
    (PermissionError("x"), "os_denied", Category.PERMISSION, NONE),
    (OSError(errno.EACCES, "x"), "os_denied", Category.PERMISSION, NONE),
    (OSError(errno.EPERM, "x"), "os_denied", Category.PERMISSION, NONE),
    (OSError(errno.EROFS, "x"), "os_denied", Category.PERMISSION, NONE),
    (OSError(errno.ENOSPC, "x"), "os_enospc", Category.RESOURCE, NONE),
    (OSError(errno.EDQUOT, "x"), "os_edquot", Category.RESOURCE, NONE),
    (OSError(errno.EMFILE, "x"), "os_emfile", Category.RESOURCE, NONE),
    (OSError(errno.ENFILE, "x"), "os_enfile", Category.RESOURCE, NONE),
    (FileExistsError("x"), "os_conflict", Category.LOGIC, NONE),
    (OSError(errno.ENOTEMPTY, "x"), "os_conflict", Category.LOGIC, NONE),
    (OSError(errno.EIO, "x"), "os_eio", Category.TRANSIENT, UNKNOWN),
    (OSError(errno.EAGAIN, "x"), "os_eagain", Category.TRANSIENT, UNKNOWN),
    (BlockingIOError(), "os_eagain", Category.TRANSIENT, UNKNOWN),
    (MemoryError(), "limit_memory", Category.RESOURCE, UNKNOWN),
    # nothing knows these
    (OSError("x"), "tool_bug", Category.INTERNAL, MADE),
    (OSError(errno.EISDIR, "x"), "tool_bug", Category.INTERNAL, MADE),
    (KeyError("id"), "tool_bug", Category.INTERNAL, MADE),
    (RecursionError(), "tool_bug", Category.INTERNAL, MADE),
    (KeyboardInterrupt(), "tool_bug", Category.INTERNAL, MADE),
    (asyncio.CancelledError(), "tool_bug", Category.INTERNAL, MADE),
]


@pytest.mark.req("6.2")
@pytest.mark.parametrize(("exc", "code", "category", "effect_state"), ROWS, ids=lambda part: repr(part)[:50])
def test_the_table(exc: BaseException, code: str, category: Category, effect_state: EffectState) -> None:
    failure = classify(exc, tool="deploy.push")
    assert (failure.code, failure.category, failure.effect_state) == (code, category, effect_state)
    assert failure.message
    assert failure.what_to_do
    assert failure.code in ERROR_CODES or failure.code == "mine"


def test_our_own_words_are_kept() -> None:
    failure = classify(
        Misconfigured("no such branch", code="git_branch", what_to_do="name another", details={"branch": "x"}),
        tool="a.b",
    )
    assert failure == Failure(
        code="git_branch",
        category=Category.CONFIGURATION,
        message="no such branch",
        what_to_do="name another",
        effect_state=NONE,
        details={"branch": "x"},
    )
    assert classify(Transient("busy", retry_after="5s"), tool="a.b").retry_after_ms == 5_000


def test_the_order() -> None:
    says = failure_of("tool_denied", "as named")
    assert classify(KeyError(), tool="a.b", adapter_says=says) is says
    assert classify(Transient("ours first"), tool="a.b", adapter_says=says).code == "tool_transient"
    timeout = TimeoutError()
    timeout.status_code = 404  # type: ignore[attr-defined]
    assert classify(timeout, tool="a.b").code == "http_404"


def test_retry_after_is_honoured_everywhere() -> None:
    response = SimpleNamespace(status_code=429, headers={"Retry-After": "7"})
    assert classify(carrying(response=response), tool="a.b").retry_after_ms == 7_000
    reset = ConnectionResetError()
    reset.retry_after = 2  # type: ignore[attr-defined]
    assert classify(reset, tool="a.b").retry_after_ms == 2_000


def test_an_author_who_skipped_our_constructor() -> None:
    class Mine(Transient):
        def __init__(self) -> None:
            Exception.__init__(self, "mine")

    failure = classify(Mine(), tool="a.b")
    assert (failure.code, failure.message, failure.effect_state) == ("tool_transient", "mine", NONE)

    class Odd(ToolError):
        category = "odd"

    assert classify(Odd("x"), tool="a.b").category is Category.INTERNAL


def raised(source: str, file: Path) -> BaseException:
    """What a user's module raises."""
    file.write_text(source)
    names: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), names)
    try:
        names["push"]()
    except BaseException as exc:  # noqa: BLE001 -- what is looked at
        return exc
    raise AssertionError


def test_a_bug_names_the_line_of_the_users_code(tmp_path: Path) -> None:
    exc = raised("def push():\n    return deeper()\ndef deeper():\n    return {}['id']\n", tmp_path / "tools.py")
    assert classify(exc, tool="deploy.push").message == "bug in tool 'deploy.push': KeyError: 'id' (tools.py:4)"


def test_library_frames_are_passed_over(tmp_path: Path) -> None:
    exc = raised("import json\ndef push():\n    json.loads('{')\n", tmp_path / "tools.py")
    assert classify(exc, tool="a.b").message.endswith("(tools.py:3)")


def test_what_an_adapter_translated_is_told_by_its_cause(tmp_path: Path) -> None:
    cause = raised("def push():\n    raise SystemExit(3)\n", tmp_path / "tools.py")
    exc = RuntimeError("it left")
    exc.__cause__ = cause
    assert classify(exc, tool="a.b").message == "bug in tool 'a.b': RuntimeError: it left (tools.py:2)"


def test_causes_that_go_in_circles_end() -> None:
    exc = ValueError("round")
    exc.__cause__ = exc
    assert classify(exc, tool="a.b").message == "bug in tool 'a.b': ValueError: round"


def test_a_bug_without_any_frame() -> None:
    assert classify(ValueError(), tool="a.b").message == "bug in tool 'a.b': ValueError"


@given(
    st.sampled_from([Exception, OSError, KeyError, TimeoutError, ToolError, Transient, MemoryError, UnicodeError]),
    st.text(st.characters()),
    st.dictionaries(
        st.sampled_from(["status", "status_code", "retry_after", "response", "code", "details", "errno", "category"]),
        st.none() | st.integers() | st.floats() | st.text() | st.just(object()),
    ),
)
def test_total(cls: type[Exception], text: str, attributes: dict[str, Any]) -> None:
    exc = cls.__new__(cls, text)
    for name, value in attributes.items():
        try:
            setattr(exc, name, value)
        except TypeError:
            continue
    failure = classify(exc, tool="a.b")
    assert isinstance(failure.code, str)
    assert failure.code
    assert failure.message
    assert failure.what_to_do
    assert isinstance(failure.category, Category)
    assert isinstance(failure.effect_state, EffectState)
