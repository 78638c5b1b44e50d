"""Request and Response: what crosses a door, whatever carries it. No framework, no socket."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Final, cast
from urllib.parse import parse_qsl, unquote

from everstep.domain.access import ALL_SCOPES, Principal
from everstep.domain.errors import Validation
from everstep.domain.events import Who
from everstep.domain.ids import Instant, Millis
from everstep.domain.record import record
from everstep.domain.suggest import did_you_mean, suggest
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.times import from_text

NO_STORE: Final[Mapping[str, str]] = {"cache-control": "no-store", "content-type": "application/json"}
SECONDS_MAX: Final = 10**12
"""More than anybody waits, and far from what no clock can count."""


@record
class Request:
    """One request. Names of headers are lower case; `local`: it came from the same user, through the local door.

    `who` is None for a stranger, whom only open routes answer; `principal` says by which token, over the network.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: JsonValue
    who: Who | None
    local: bool = False
    principal: Principal | None = None

    @property
    def by(self) -> Principal:
        """Who asks, with what they may do: at the local door, everything."""
        assert self.who is not None
        return self.principal or Principal(owner=self.who.owner, actor=self.who.actor, scopes=ALL_SCOPES)


@record
class Response:
    """One reply; the body is JSON text unless its headers say otherwise, empty if there is none."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    parts: AsyncIterator[bytes] | None = None
    """What follows the body, made while it is sent."""

    def json(self) -> JsonObject:
        """The body as an object."""
        return cast("JsonObject", json.loads(self.body)) if self.body else {}


def reply(body: JsonValue, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON reply."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace")
    return Response(status=status, headers={**NO_STORE, **(headers or {})}, body=text)


def split_target(target: str) -> tuple[str, dict[str, str]]:
    """Path and query of a request line; raises Validation for a key given twice."""
    path, _, tail = target.partition("?")
    pairs = parse_qsl(tail, keep_blank_values=True)
    query = dict(pairs)
    if len(query) < len(pairs):
        raise Validation("a query key is given twice")
    return path, query


def segments(path: str) -> list[str]:
    """The parts of a path, unescaped one by one, so that an escaped slash stays inside its part."""
    return [unquote(part) for part in path.split("/")[1:]]


# --- reading what was sent ---


def unknown_query(given: Mapping[str, str], allowed: frozenset[str]) -> Validation | None:
    """The refusal of query keys that mean nothing here."""
    wrong = [name for name in given if name not in allowed]
    if not wrong:
        return None
    said = [did_you_mean(f"'{name}' is no query key here", suggest(name, allowed)) for name in wrong]
    return Validation("; ".join(said), details={"unknown": [*wrong], "allowed": [*sorted(allowed)]})


def unknown_fields(given: JsonObject, allowed: frozenset[str]) -> Validation | None:
    """The refusal of body fields that mean nothing here: all of them at once."""
    wrong = [name for name in given if name not in allowed]
    if not wrong:
        return None
    problems: list[JsonValue] = [
        {"code": "unknown_field", "path": f"/{name}", "message": f"'{name}' is no field here", "suggestion": guess}
        for name in wrong
        for guess in [suggest(name, allowed)]
    ]
    said = [did_you_mean(f"'{name}' is no field here", suggest(name, allowed)) for name in wrong]
    return Validation("; ".join(said), code="unknown_field", details={"problems": problems})


class Fields:
    """The fields of a body, by type; a wrong type is refused by name."""

    def __init__(self, body: JsonObject) -> None:
        self._body = body

    def __contains__(self, name: str) -> bool:
        return self._body.get(name) is not None

    def given(self, name: str) -> bool:
        """Whether it was sent, be it null."""
        return name in self._body

    def text(self, name: str) -> str | None:
        """A text, if there is one."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, str):
            raise Validation(f"'{name}' must be text")
        return value

    def some_text(self, name: str) -> str:
        """A text that must be there."""
        value = self.text(name)
        if not value:
            raise Validation(f"'{name}' is missing")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false if it is not there."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, bool):
            raise Validation(f"'{name}' must be true or false")
        return bool(value)

    def count(self, name: str, default: int) -> int:
        """A whole number."""
        value = self._body.get(name, default)
        if type(value) is not int:
            raise Validation(f"'{name}' must be a whole number")
        return value

    def map(self, name: str) -> JsonObject | None:
        """An object, if there is one."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, dict):
            raise Validation(f"'{name}' must be an object")
        return value

    def texts(self, name: str) -> dict[str, str] | None:
        """An object of texts, if there is one."""
        given = self.map(name)
        if given is None:
            return None
        texts = {key: value for key, value in given.items() if isinstance(value, str)}
        if len(texts) < len(given):
            raise Validation(f"'{name}' must be texts")
        return texts

    def seconds(self, name: str) -> Millis | None:
        """A length of time in seconds, if there is one."""
        said = self.value(name)
        if said is None:
            return None
        if isinstance(said, bool) or not isinstance(said, int | float):
            raise Validation(f"'{name}' must be a number of seconds")
        if abs(said) > SECONDS_MAX:
            raise Validation(f"'{name}' must be at most {SECONDS_MAX} seconds")
        return Millis(round(said * 1000))

    def time(self, name: str, code: str = "bad_request") -> Instant | None:
        """A moment, if there is one."""
        text = self.text(name)
        try:
            return None if text is None else from_text(text)
        except ValueError:
            raise Validation(f"'{name}' is no time such as 2026-11-15T18:00:00.000Z", code=code) from None

    def value(self, name: str) -> JsonValue:
        """Whatever was sent."""
        return self._body.get(name)


def number_in(query: Mapping[str, str], name: str, default: int, *, most: int) -> int:
    """A whole number of the query; more than `most` is cut."""
    text = query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise Validation(f"'{name}' must be a whole number")
    return min(int(text), most)


def limit_in(query: Mapping[str, str], default: int, *, most: int) -> int:
    """How many the caller wants: at least one."""
    limit = number_in(query, "limit", default, most=most)
    if limit < 1:
        raise Validation("'limit' must be at least 1")
    return limit


def flag_in(query: Mapping[str, str], name: str, *, default: bool) -> bool:
    """A yes or no of the query."""
    text = query.get(name)
    words = {"1": True, "true": True, "0": False, "false": False}
    if text is not None and text not in words:
        raise Validation(f"'{name}' must be 1 or 0")
    return default if text is None else words[text]


def wanted_types(query: Mapping[str, str]) -> tuple[str, ...]:
    """Types of events, or beginnings such as `step.`; none: all."""
    return tuple(filter(None, query.get("types", "").split(",")))
