"""What an exception carries, whoever raised it: text, HTTP status, a wish to wait, and whether anything was sent.

Pure and total: clients are known by the names of their classes, never by importing them, and a foreign property that
raises counts as absent.
"""

import re
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import Final

from everstep.domain.catalogue import ERROR_CODES
from everstep.domain.failure import TREATMENT, Category, EffectState, Failure
from everstep.domain.quantities import parse_duration
from everstep.domain.values import INTEGER_MAX, JsonObject, JsonValue

TEXT_CHARS_MAX: Final = 2_000
DETAILS_DEPTH_MAX: Final = 8
DETAILS_ITEMS_MAX: Final = 100
CAUSES_MAX: Final = 8

# Top package -> classes raised before anything was sent, and classes after which the request may have arrived.
_HTTPX: Final = (
    frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"}),
    frozenset({"ReadTimeout", "WriteTimeout", "ReadError", "WriteError", "CloseError", "RemoteProtocolError"}),
)
_LLM: Final = (frozenset[str](), frozenset({"APITimeoutError", "APIConnectionError"}))
CLIENTS: Final = {
    "httpx": _HTTPX,
    "httpx2": _HTTPX,
    "requests": (
        frozenset({"ConnectTimeout"}),
        frozenset({"ReadTimeout", "Timeout", "ConnectionError", "ChunkedEncodingError"}),
    ),
    "aiohttp": (
        frozenset({"ClientConnectorError", "ConnectionTimeoutError"}),
        frozenset(
            {
                "ServerDisconnectedError",
                "ServerTimeoutError",
                "SocketTimeoutError",
                "ClientOSError",
                "ClientPayloadError",
            }
        ),
    ),
    "openai": _LLM,
    "anthropic": _LLM,
}


def failure_of(
    code: str,
    message: str,
    *,
    category: Category | None = None,
    effect_state: EffectState | None = None,
    what_to_do: str | None = None,
    retry_after_ms: int | None = None,
    details: JsonObject | None = None,
) -> Failure:
    """A failure whose missing words come from the catalogue, or from its category if the code is the author's own."""
    row = ERROR_CODES.get(code)
    category = category or (row.category if row else Category.INTERNAL)
    return Failure(
        code=code,
        category=category,
        message=message or (row.title if row else code),
        what_to_do=what_to_do or (row.what_to_do if row else TREATMENT[category].then),
        effect_state=effect_state or (row.effect_state if row else EffectState.NONE),
        retry_after_ms=retry_after_ms,
        details=details,
    )


def text_of(exc: BaseException) -> str:
    """The exception's own words, cut and writable; its class if it has none."""
    text = ""
    with suppress(Exception):
        text = str(exc).strip()
    return _cut(text) or type(exc).__name__


def said(exc: BaseException, name: str) -> str | None:
    """What the author put under `name`, as text; None if nothing."""
    value = _carried(exc, name)
    plain = None if value is None else _plain(value, 0)
    return None if plain is None or plain == "" else str(plain)


def plain_details(details: object) -> JsonObject | None:
    """An author's details as strict JSON; what JSON cannot say becomes text, what is too much is left out."""
    plain = _plain(details, DETAILS_DEPTH_MAX)
    return plain if isinstance(plain, dict) else None


def _plain(value: object, depth: int) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= INTEGER_MAX:
        return int(value)
    if isinstance(value, float) and isfinite(value) and (abs(value) <= INTEGER_MAX or not value.is_integer()):
        return float(value)
    if depth and isinstance(value, dict):
        some = list(value.items())[:DETAILS_ITEMS_MAX]
        return {_cut(str(key)): _plain(item, depth - 1) for key, item in some}
    if depth and isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value[:DETAILS_ITEMS_MAX]]
    text = type(value).__name__
    with suppress(Exception):
        text = str(value)
    return _cut(text)


def writable(text: str) -> str:
    """Without half characters: file names that are no text arrive as such."""
    return text.encode(errors="backslashreplace").decode()


def _cut(text: str) -> str:
    text = writable(text)
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[:TEXT_CHARS_MAX]}…"


def status_of(exc: BaseException) -> int | None:
    """The HTTP status it carries, if that is an error's."""
    for status in (_carried(exc, "status_code"), _carried(exc, "status"), _carried(exc, "response", "status_code")):
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599:
            return int(status)
    return None


def effect_of(exc: BaseException) -> EffectState | None:
    """What its adapter knows of the effect; None: its kind says."""
    known = _carried(exc, "effect_state")
    return known if isinstance(known, EffectState) else None


def retry_after_ms(exc: BaseException) -> int | None:
    """How long it asks us to wait: its own `retry_after`, else the header of its response."""
    wish = _carried(exc, "retry_after")
    if wish is not None:
        return _wish_ms(wish)
    header = _header(exc, "Retry-After")
    if header is None:
        return None
    moment = _http_date(header)
    if moment is None:
        return _wish_ms(header)
    sent = _http_date(_header(exc, "Date") or "")  # their clock, not ours: only the difference counts
    return None if sent is None else max(0, round((moment - sent).total_seconds() * 1000))


def effect_of_client(exc: BaseException) -> EffectState:
    """Whether a named client's error leaves the request in doubt; anything unlisted was not sent."""
    return client_column(exc) or EffectState.NONE


def client_column(exc: BaseException) -> EffectState | None:
    """The column of a known client's error; a listed cause knows better. None: not a known client's."""
    found: EffectState | None = None
    at: BaseException | None = exc
    for _ in range(CAUSES_MAX):
        column = None if at is None else _column(type(at))
        if column is None or at is None:
            return found
        found, at = column, at.__cause__
    return found


def _column(cls: type) -> EffectState | None:
    for base in cls.__mro__:
        never_sent, maybe_sent = CLIENTS.get(str(base.__module__).partition(".")[0], (frozenset(), frozenset()))
        if base.__name__ in never_sent:
            return EffectState.NONE
        if base.__name__ in maybe_sent:
            return EffectState.UNKNOWN
    return None


def _carried(value: object, *names: str) -> object:
    for name in names:
        found: object = None
        with suppress(Exception):
            found = getattr(value, name, None)
        value = found
    return value


def _header(exc: BaseException, name: str) -> str | None:
    get = _carried(exc, "response", "headers", "get")
    found: object = None
    if callable(get):
        with suppress(Exception):
            found = get(name) or get(name.lower())
    return found if isinstance(found, str) else None


def _wish_ms(wish: object) -> int | None:
    if isinstance(wish, str):
        wish = wish.strip()
        if not wish.isascii() or not wish.isdecimal():
            return parse_duration(wish)
        wish = int(wish[:12])
    if isinstance(wish, int | float) and 0 <= wish < 1e9:
        return round(wish * 1000)
    return None


_HTTP_DATE: Final = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _http_date(text: str) -> datetime | None:
    """By hand: `strptime` reads month names in the machine's language."""
    match = _HTTP_DATE.fullmatch(text.strip())
    if match is None or match[2] not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(match[at]) for at in (1, 3, 4, 5, 6))
    with suppress(ValueError):
        return datetime(year, _MONTHS.index(match[2]) + 1, day, hour, minute, second, tzinfo=UTC)
    return None
