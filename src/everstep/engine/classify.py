"""What was raised -> Failure: the only translation into our categories. Pure and total.

Order: our own exceptions, what the adapter knows (classes named in `@tool`), what the exception carries, known
clients, then the built-in classes, from which several clients derive. What no rule knows is a bug in the tool,
named with its file and line, never ours and never transient.
"""

import errno
import os
from pathlib import PurePath
from typing import Final

from everstep.domain.catalogue import SAID
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.raised import (
    client_column,
    effect_of,
    failure_of,
    plain_details,
    retry_after_ms,
    said,
    status_of,
    text_of,
)
from everstep.ports.tool import ToolError


def classify(exc: BaseException, *, tool: str, adapter_says: Failure | None = None) -> Failure:
    """What `exc`, raised by `tool`, means."""
    if isinstance(exc, ToolError):
        return _said(exc)
    if adapter_says is not None:
        return adapter_says
    text = text_of(exc)
    if (status := status_of(exc)) is not None:
        return failure_of(
            f"http_{status}",
            f"the server answered {status}: {text}",
            effect_state=effect_of(exc),
            retry_after_ms=retry_after_ms(exc),
        )
    if (column := client_column(exc)) is not None:
        return failure_of(_CLIENT_CODES[column], text, retry_after_ms=retry_after_ms(exc))
    if (code := _builtin(exc)) is not None:
        return failure_of(code, text, retry_after_ms=retry_after_ms(exc))
    return failure_of("tool_bug", f"bug in tool '{tool}': {_named(exc, text)}{_place(exc)}")


def _said(exc: ToolError) -> Failure:
    """The author's own words; what they leave out comes from the catalogue. Their class may have skipped ours."""
    category = _CATEGORIES.get(exc.category, Category.INTERNAL)
    effect_state = getattr(exc, "effect_state", EffectState.NONE)
    uncertain = category is Category.TRANSIENT and effect_state is EffectState.UNKNOWN
    return failure_of(
        said(exc, "code") or ("tool_uncertain" if uncertain else SAID[category]),
        text_of(exc),
        category=category,
        effect_state=effect_state,
        what_to_do=said(exc, "what_to_do"),
        retry_after_ms=retry_after_ms(exc),
        details=plain_details(getattr(exc, "details", None)),
    )


_CATEGORIES: Final[dict[str, Category]] = {category.value: category for category in Category}
_CLIENT_CODES: Final = {EffectState.NONE: "net_connect", EffectState.UNKNOWN: "net_read"}


# --- built-in classes ---

_BY_ERRNO: Final = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "os_denied"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "os_missing"),
    **dict.fromkeys((errno.EEXIST, errno.ENOTEMPTY), "os_conflict"),
    **dict.fromkeys((errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH), "net_reset"),
    errno.ENOSPC: "os_enospc",
    errno.EDQUOT: "os_edquot",
    errno.EMFILE: "os_emfile",
    errno.ENFILE: "os_enfile",
    errno.EIO: "os_eio",
    errno.EAGAIN: "os_eagain",
    errno.ETIMEDOUT: "os_etimedout",
}
# These count their errors in numbers of their own, so they are looked up by name before any number is.
_BY_NAME: Final = {
    ("ssl", "SSLCertVerificationError"): "net_tls",
    ("ssl", "CertificateError"): "net_tls",
    ("ssl", "SSLError"): "net_reset",
    ("socket", "herror"): "net_host",
}
_BY_CLASS: Final = (
    (ConnectionRefusedError, "net_refused"),
    (ConnectionError, "net_reset"),
    (FileNotFoundError, "os_missing"),
    (NotADirectoryError, "os_missing"),
    (FileExistsError, "os_conflict"),
    (PermissionError, "os_denied"),
    (BlockingIOError, "os_eagain"),
    (TimeoutError, "timeout"),
    (MemoryError, "limit_memory"),
)
_EAI_AGAIN: Final = -3
"""Name look-up failed for now. The number of Linux and glibc; others say it in words."""


def _builtin(exc: BaseException) -> str | None:
    for cls in type(exc).__mro__:
        if (cls.__module__, cls.__name__) == ("socket", "gaierror"):
            return _lookup(exc)
        if (code := _BY_NAME.get((cls.__module__, cls.__name__))) is not None:
            return code
    if isinstance(exc, OSError) and exc.errno in _BY_ERRNO:
        return _BY_ERRNO[exc.errno]
    return next((code for cls, code in _BY_CLASS if isinstance(exc, cls)), None)


def _lookup(exc: BaseException) -> str:
    temporary = getattr(exc, "errno", None) == _EAI_AGAIN or "temporary" in text_of(exc).lower()
    return "net_dns" if temporary else "net_host"


# --- bugs: where in the user's code ---

_OURS: Final = str(PurePath(__file__).parents[1]) + os.sep
_LIBRARIES: Final = (
    _OURS,
    str(PurePath(os.__file__).parent) + os.sep,
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    "<frozen ",
)
_CAUSES_MAX: Final = 8


def _named(exc: BaseException, text: str) -> str:
    name = type(exc).__name__
    return name if text == name else f"{name}: {text}"


def _place(exc: BaseException) -> str:
    """` (tools.py:41)`: the innermost frame that is the user's own; of what an adapter translated, its cause's."""
    at: BaseException | None = exc
    for _ in range(_CAUSES_MAX):
        if at is None:
            break
        own = [frame for frame in _frames(at) if not _is_library(frame[0])]
        if own:
            return _spelled(own[-1])
        at = at.__cause__
    frames = _frames(exc)
    return _spelled(frames[-1]) if frames else ""


def _frames(exc: BaseException) -> list[tuple[str, int]]:
    """File and line of each frame, outermost first."""
    frames: list[tuple[str, int]] = []
    at = exc.__traceback__
    while at is not None:
        frames.append((at.tb_frame.f_code.co_filename, at.tb_lineno))
        at = at.tb_next
    return frames


def _is_library(path: str) -> bool:
    return any(part in path for part in _LIBRARIES)


def _spelled(frame: tuple[str, int]) -> str:
    return f" ({PurePath(frame[0]).name}:{frame[1]})"
