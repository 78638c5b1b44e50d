"""THE table of settings: key -> kind, default, bounds, one line of meaning. Reading, refusals and the reference use it.

A key is here when something uses it. How values are found is `files`' and the package's business.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Final, TypeAlias

from everstep.domain.errors import SettingsError
from everstep.domain.ids import Millis
from everstep.domain.quantities import format_duration, format_size, parse_duration, parse_size
from everstep.domain.rate import parse_rate
from everstep.domain.record import record
from everstep.domain.suggest import did_you_mean, suggest
from everstep.domain.values import JsonObject, JsonValue

Value: TypeAlias = str | int | float | tuple[str, ...] | None
"""As it is kept: durations in milliseconds, sizes in bytes. None: not set, and there is no fixed default."""

SHOWN_CHARS_MAX: Final = 80


@record
class Kind:
    """What a value must be, and how it is written."""

    noun: str
    read: Callable[[JsonValue], Value]
    """The value as it is kept; None if it is not of this kind."""
    from_text: Callable[[str], JsonValue] = str
    """What the text of a variable means."""
    show: Callable[[int], JsonValue] = int
    """A number as it would be written."""


@record
class Key:
    """One setting."""

    name: str
    kind: Kind
    default: JsonValue
    meaning: str
    least: int = 0
    most: int = 0

    @property
    def usual(self) -> Value:
        """The default as it is kept."""
        return None if self.default is None else self.kind.read(self.default)

    def written(self, value: Value) -> JsonValue:
        """A kept value as it would be written."""
        if isinstance(value, tuple):
            return list(value)
        return self.kind.show(value) if isinstance(value, int) else value


# --- kinds ---


def _text(value: JsonValue) -> Value:
    return value if isinstance(value, str) and "\0" not in value else None


def _some_text(value: JsonValue) -> Value:
    return _text(value) or None


_OWNER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")


def _owner(value: JsonValue) -> Value:
    return value if isinstance(value, str) and _OWNER.fullmatch(value) else None


def _count(value: JsonValue) -> Value:
    return value if type(value) is int else None


def _count_in(text: str) -> JsonValue:
    return int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else text


def _amount(value: JsonValue) -> Value:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) else None


def _amount_in(text: str) -> JsonValue:
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text) else text


def _words(value: JsonValue) -> Value:
    if not isinstance(value, list | tuple):
        return None
    words = tuple(word for word in value if isinstance(word, str) and word and "\0" not in word)
    return words if len(words) == len(value) else None


def _words_in(text: str) -> JsonValue:
    return [word.strip() for word in text.split(",") if word.strip()]


def _flag(value: JsonValue) -> Value:
    return int(value) if isinstance(value, bool) else None


def _flag_in(text: str) -> JsonValue:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)


def _duration(value: JsonValue) -> Value:
    return parse_duration(value) if isinstance(value, str) else None


def _size(value: JsonValue) -> Value:
    return parse_size(value) if isinstance(value, str) else None


def _one_of(*words: str) -> Kind:
    return Kind(
        noun=f"one of {', '.join(words)}",
        read=lambda value: value if isinstance(value, str) and value in words else None,
    )


def _share(value: JsonValue) -> Value:
    return round(value * 1_000) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _share_in(text: str) -> JsonValue:
    return float(text) if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?", text) else text


TEXT: Final = Kind(noun="text", read=_text)
SOME_TEXT: Final = Kind(noun="text that is not empty", read=_some_text)
OWNER: Final = Kind(noun="1 to 128 letters, digits, '.', '_', '@', '-'", read=_owner)
FLAG: Final = Kind(noun="true or false", read=_flag, from_text=_flag_in, show=bool)
WORDS: Final = Kind(noun="a list of texts", read=_words, from_text=_words_in)
COUNT: Final = Kind(noun="a whole number", read=_count, from_text=_count_in)
AMOUNT: Final = Kind(noun="a number that is not negative", read=_amount, from_text=_amount_in)
DURATION: Final = Kind(
    noun="a duration such as 500ms, 30s, 1h30m", read=_duration, show=lambda length: format_duration(Millis(length))
)
SHARE: Final = Kind(
    noun="a share such as 0.5", read=_share, from_text=_share_in, show=lambda thousandths: thousandths / 1_000
)
"""Kept in thousandths."""
RATE: Final = Kind(
    noun="a rate such as 10/1s",
    read=lambda value: value if isinstance(value, str) and parse_rate(value) is not None else None,
)
SCOPE: Final = _one_of("worker", "fleet")
SIZE: Final = Kind(noun="a size such as 32KiB, 16MB", read=_size, show=format_size)

_SECOND: Final = 1_000
_HOUR: Final = 3_600 * _SECOND
_DAY: Final = 24 * _HOUR
_KIB: Final = 1_024


# --- the table ---


def _key(name: str, kind: Kind, default: JsonValue, meaning: str, *, within: tuple[int, int] = (0, 0)) -> Key:
    return Key(name=name, kind=kind, default=default, meaning=meaning, least=within[0], most=within[1])


def _flag_key(name: str, meaning: str, *, default: bool) -> Key:
    return Key(name=name, kind=FLAG, default=default, meaning=meaning, most=1)


KEYS: Final = (
    _key("store", SOME_TEXT, ".everstep/everstep.db", "the SQLite file that keeps all tasks"),
    _key("server", TEXT, "", "the server that commands speak to; empty: the store's own engine"),
    _key("token_file", TEXT, "", "the file with the token; empty: beside the store"),
    _key("owner", OWNER, "local", "whose tasks these are"),
    _key("workspace", TEXT, "", "the folder tools work in; empty: the project folder"),
    _key("tools", WORDS, [], "modules and packages whose tools this project uses"),
    _key("plans.dirs", WORDS, ["plans", "."], "where plans are found by name"),
    _key("artifacts", TEXT, "", "the folder of large values; empty: beside the store"),
    _key(
        "durability",
        _one_of("power", "process"),
        "power",
        "what acknowledged facts survive: a power cut, or only the death of the process",
    ),
    _key(
        "log_level",
        _one_of("debug", "info", "warning", "error"),
        "info",
        "the least important line that is written to the log",
    ),
    _key("serve.host", SOME_TEXT, "127.0.0.1", "where `everstep serve` listens"),
    _key("serve.port", COUNT, 7717, "its port; 0: any that is free", within=(0, 65_535)),
    _flag_key("serve.ui", "whether it serves the dashboard", default=True),
    _flag_key("serve.mcp", "whether it serves MCP", default=True),
    _key("serve.tls_cert", TEXT, "", "the certificate, with its chain, in PEM"),
    _key("serve.tls_key", TEXT, "", "the key of the certificate"),
    _flag_key(
        "serve.behind_tls_proxy",
        "whether a proxy in front of it speaks TLS; needed to listen beyond the loopback without a certificate",
        default=False,
    ),
    _key("serve.allowed_hosts", WORDS, [], "names under which it may be asked, besides the loopback"),
    _key("serve.allowed_origins", WORDS, [], "web pages that may ask it, besides its own"),
    _key("serve.request_timeout", DURATION, "30s", "how long one request may take", within=(100, _HOUR)),
    _key("serve.rate", RATE, "50/1s", "requests of one token"),
    _key("events.heartbeat", DURATION, "15s", "a stream that has been silent for so long says so", within=(100, _HOUR)),
    _key("events.tick_hz", COUNT, 4, "ticks of a running task in a second, at most", within=(1, 10)),
    _key("events.queue", COUNT, 1_000, "frames that wait for one slow reader", within=(10, 100_000)),
    _key("events.queue_bytes", SIZE, "1MiB", "and how much they may be together", within=(64 * _KIB, 1 << 30)),
    _key("events.sockets_per_token", COUNT, 32, "streams of one token at the same time", within=(1, 100_000)),
    _key("engine.tasks", COUNT, 64, "tasks at work in one process", within=(1, 10_000)),
    _key("engine.heartbeat", DURATION, "5s", "how often a worker gives a sign of life", within=(100, 60 * _SECOND)),
    _key(
        "engine.stale_after",
        DURATION,
        "30s",
        "a worker silent for so long is dead; more than twice the heartbeat",
        within=(200, _HOUR),
    ),
    _key(
        "engine.max_recoveries",
        COUNT,
        5,
        "recoveries of a task without a recorded outcome, before it fails",
        within=(0, 10_000),
    ),
    _key("engine.shutdown_grace", DURATION, "10s", "how long calls may go on when the engine stops", within=(1, _HOUR)),
    _key(
        "engine.step_timeout",
        DURATION,
        "60s",
        "how long one attempt may take, unless tool or plan says otherwise",
        within=(1, _DAY),
    ),
    _key(
        "engine.pause_timeout",
        DURATION,
        "24h",
        "how long a task stays paused by a person, unless the task says otherwise",
        within=(1, 365 * _DAY),
    ),
    _key("engine.on_pause_timeout", _one_of("cancel", "resume"), "cancel", "what follows when it was paused too long"),
    _key(
        "engine.signal_keep",
        DURATION,
        "24h",
        "how long a signal waits for a step that wants it",
        within=(1, 365 * _DAY),
    ),
    _key("limits.body", SIZE, "1MiB", "the body of one request", within=(_KIB, 64 * _KIB * _KIB)),
    _key("limits.items", COUNT, 10_000, "items of one `for_each`", within=(1, 100_000)),
    _key(
        "limits.live_tasks",
        COUNT,
        None,
        "unfinished tasks of one owner; unset: 10000 for `local`, 100 for others",
        within=(1, 1_000_000),
    ),
    _key("limits.calls", COUNT, 20_000, "tool calls of one task", within=(0, 10_000_000)),
    _key("limits.cost", AMOUNT, 10, "what one task may cost, as its tools report it", within=(0, 10**12)),
    _key("limits.wall_time", DURATION, "24h", "how long one task may run, pauses not counted", within=(1, 365 * _DAY)),
    _key("limits.output", SIZE, "64MiB", "output of all steps of one task together", within=(1, 1 << 40)),
    _key("limits.inline", SIZE, "32KiB", "larger values are kept as artifacts", within=(64, 32 * _KIB)),
    _key("limits.artifact", SIZE, "16MiB", "the largest value that is kept", within=(_KIB, 256 * _KIB * _KIB)),
    _key("retry.times", COUNT, 3, "retries of a transient failure", within=(0, 20)),
    _key(
        "retry.delay", DURATION, "1s", "before the first retry, doubling; not more than `max_delay`", within=(1, _HOUR)
    ),
    _key("audit.key", TEXT, "", "a secret that seals the audit chain; empty: it shows stray edits only"),
    _key("policy.llm_approvals", WORDS, [], "tools whose calls an LLM may approve, where a trusted plan says so"),
    _key("retry.max_delay", DURATION, "30s", "between two retries, at most", within=(1, _DAY)),
    _key("breaker.failures", COUNT, 5, "counted failures in a row that open a breaker", within=(1, 1_000)),
    _key("breaker.share", SHARE, 0.5, "or this share of the last calls", within=(1, 1_000)),
    _key("breaker.last", COUNT, 20, "how many of the last calls are looked at", within=(1, 1_000)),
    _key("breaker.min", COUNT, 10, "how many there must be for the share to count", within=(1, 1_000)),
    _key("breaker.window", DURATION, "60s", "older calls do not count for the share", within=(1, _DAY)),
    _key("breaker.cool_down", DURATION, "30s", "how long it stays open, doubling; not more than", within=(1, _DAY)),
    _key("breaker.max_cool_down", DURATION, "300s", "how long it stays open, at most", within=(1, _DAY)),
    _key("breaker.close_after", COUNT, 2, "successful probes in a row that close it", within=(1, 1_000)),
)
_POOLS: Final = (1, 10_000)
FAMILIES: Final = {
    "pools": _key("pools.NAME", COUNT, 4, "calls of one pool at the same time, per worker", within=_POOLS),
    "rates": _key("rates.NAME", RATE, "5/1s", "calls of one provider, for all workers together"),
    "quotas": _key("quotas.NAME", COUNT, None, "calls of one provider in a day (UTC)", within=(0, 10**9)),
    "policy.approve": _key(
        "policy.approve.TOOL",
        FLAG,
        None,
        "ask before every call of this tool; false: its own question is left out in trusted plans",
        within=(0, 1),
    ),
    "policy.untrusted": _key(
        "policy.untrusted.TOOL",
        _one_of("ask", "allow"),
        "ask",
        "whether data from outside may decide a path, URL or address of this tool's calls without being asked about",
    ),
}
"""Keys with a name of the operator's own in them."""
BY_NAME: Final[Mapping[str, Key]] = {key.name: key for key in KEYS}
_SHORT: Final[Mapping[str, str]] = {key.name.rpartition(".")[2]: key.name for key in KEYS if "." in key.name}
"""Who writes `heartbeat` means `engine.heartbeat`."""


# --- refusals ---


def known(name: str, place: str) -> Key:
    """The key of that name; raises SettingsError."""
    key = BY_NAME.get(name) or _of_family(name)
    if key is None:
        raise refused(place, did_you_mean(f"'{name}' is not a setting", suggest(name, BY_NAME, _SHORT)), name)
    return key


def _of_family(name: str) -> Key | None:
    """`pools.browser`, also spelled `pools.browser.size`; of the scopes only `worker` differs from nothing."""
    family = next((one for one in FAMILIES if name.startswith(f"{one}.") and name != f"{one}."), None)
    if family is None:
        return None
    if family == "pools" and name.endswith(".scope"):
        return replace(FAMILIES[family], name=name, kind=SCOPE)
    return replace(FAMILIES[family], name=name)


def checked(key: Key, value: JsonValue, place: str) -> Value:
    """A value as it is kept; raises SettingsError."""
    read = key.kind.read(value)
    if read is None:
        raise refused(place, f"'{key.name}' must be {key.kind.noun}, not {_shown(value)}", key.name)
    if isinstance(read, int | float) and not key.least <= read <= key.most:
        bounds = f"between {key.kind.show(key.least)} and {key.kind.show(key.most)}"
        raise refused(place, f"'{key.name}' must be {bounds}, not {_shown(value)}", key.name)
    return read


def refused(place: str, why: str, key: str | None = None) -> SettingsError:
    """The one form of a refusal: where, what, and which key."""
    details: JsonObject = {"place": place, "key": key}
    return SettingsError(f"{place}: {why}", details=details)


def _shown(value: JsonValue) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[: SHOWN_CHARS_MAX - 1]}…"
