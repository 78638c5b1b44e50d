"""THE table of settings: key -> kind, default, bounds, one line of meaning. Reading, refusals and the reference use it.

A key is here when something uses it. How values are found is `files`' and the package's business.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from everstep.domain.errors import SettingsError
from everstep.domain.suggest import did_you_mean, suggest
from everstep.domain.values import JsonObject, JsonValue
from everstep.settings.kinds import (
    AMOUNT,
    COUNT,
    DAY,
    DIGESTS,
    DURATION,
    EMPTY,
    FLAG,
    HOUR,
    KIB,
    OWNER,
    PERMISSIONS,
    RATE,
    SCOPE,
    SECOND,
    SHARE,
    SHOWN_CHARS_MAX,
    SIZE,
    SOME_TEXT,
    TEXT,
    WORDS,
    Key,
    Value,
    flag_key,
    one_of,
    some_of,
)
from everstep.settings.kinds import key_of as _key
from everstep.settings.mcp_keys import MCP_FAMILIES, MCP_KEYS
from everstep.settings.notify import OCCASIONS
from everstep.settings.tool_keys import TOOL_FAMILIES, TOOL_KEYS

# --- the table ---

KEYS: Final = (
    _key("store", SOME_TEXT, ".everstep/everstep.db", "what keeps all tasks: a SQLite file, or postgresql://HOST/NAME"),
    _key("server", TEXT, "", "the server that commands speak to; empty: the store's own engine"),
    _key("token_file", TEXT, "", "the file with the token; empty: beside the store"),
    _key("owner", OWNER, "local", "whose tasks these are"),
    _key("workspace", TEXT, "", "the folder tools work in; empty: the project folder"),
    _key("tools", WORDS, [], "modules and packages whose tools this project uses"),
    _key("plans.dirs", WORDS, ["plans", "."], "where plans are found by name"),
    _key("plans.trusted", DIGESTS, [], "plans that are trusted whoever sends them, by digest (`everstep plan show`)"),
    _key("artifacts", TEXT, "", "the folder of large values; empty: beside the store"),
    _key(
        "durability",
        one_of("power", "process"),
        "power",
        "what acknowledged facts survive: a power cut, or only the death of the process",
    ),
    _key(
        "log_level",
        one_of("debug", "info", "warning", "error"),
        "info",
        "the least important line that is written to the log",
    ),
    _key("serve.host", SOME_TEXT, "127.0.0.1", "where `everstep serve` listens"),
    _key("serve.port", COUNT, 7717, "its port; 0: any that is free", within=(0, 65_535)),
    flag_key("serve.ui", "whether it serves the dashboard", default=True),
    flag_key("serve.mcp", "whether it serves MCP", default=True),
    _key("serve.tls_cert", TEXT, "", "the certificate, with its chain, in PEM"),
    _key("serve.tls_key", TEXT, "", "the key of the certificate"),
    flag_key(
        "serve.behind_tls_proxy",
        "whether a proxy in front of it speaks TLS; needed to listen beyond the loopback without a certificate",
        default=False,
    ),
    _key("serve.allowed_hosts", WORDS, [], "names under which it may be asked, besides the loopback"),
    _key("serve.allowed_origins", WORDS, [], "web pages that may ask it, besides its own"),
    _key("serve.request_timeout", DURATION, "30s", "how long one request may take", within=(100, HOUR)),
    _key("serve.rate", RATE, "50/1s", "requests of one token"),
    _key("events.heartbeat", DURATION, "15s", "a stream that has been silent for so long says so", within=(100, HOUR)),
    _key("events.tick_hz", COUNT, 4, "ticks of a running task in a second, at most", within=(1, 10)),
    _key("events.queue", COUNT, 1_000, "frames that wait for one slow reader", within=(10, 100_000)),
    _key("events.queue_bytes", SIZE, "1MiB", "and how much they may be together", within=(64 * KIB, 1 << 30)),
    _key("events.sockets_per_token", COUNT, 32, "streams of one token at the same time", within=(1, 100_000)),
    _key("notify.on", some_of(*OCCASIONS), ["needs_you", "failed"], "of what somebody is told"),
    _key("notify.command", WORDS, [], "a command that is told, as JSON on its stdin"),
    _key("notify.webhook", TEXT, "", "an address that is told, by POST with JSON"),
    flag_key("notify.bell", "whether a terminal that follows a task rings when it needs you", default=True),
    _key("engine.tasks", COUNT, 64, "tasks at work in one process", within=(1, 10_000)),
    _key("engine.heartbeat", DURATION, "5s", "how often a worker gives a sign of life", within=(100, 60 * SECOND)),
    _key(
        "engine.stale_after",
        DURATION,
        "30s",
        "a worker silent for so long is dead; more than twice the heartbeat",
        within=(200, HOUR),
    ),
    _key(
        "engine.max_recoveries",
        COUNT,
        5,
        "recoveries of a task without a recorded outcome, before it fails",
        within=(0, 10_000),
    ),
    _key(
        "engine.janitor",
        DURATION,
        "5s",
        "how often an engine looks for what dead workers have left, on PostgreSQL",
        within=(100, 60 * SECOND),
    ),
    _key("engine.name", TEXT, "", "what this worker is called in lists; empty: the name of the host"),
    _key("engine.kind", one_of("embedded", "temporal"), "embedded", "who carries tasks: engines, or a Temporal server"),
    _key("temporal.address", TEXT, "127.0.0.1:7233", "the Temporal server that carries tasks, as HOST:PORT"),
    _key("temporal.namespace", TEXT, "default", "the namespace there"),
    _key("temporal.queue", TEXT, "everstep", "the task queue there; calls have one of their own beside it"),
    _key("engine.listen_dsn", TEXT, "", "an address that reaches PostgreSQL past a pooler, to listen for hints"),
    _key(
        "engine.shutdown_grace",
        DURATION,
        "10s",
        "how long the engine may take to stop; calls may go on for seven tenths of it",
        within=(1, HOUR),
    ),
    _key(
        "engine.step_timeout",
        DURATION,
        "60s",
        "how long one attempt may take, unless tool or plan says otherwise",
        within=(1, DAY),
    ),
    _key(
        "engine.pause_timeout",
        DURATION,
        "24h",
        "how long a task stays paused by a person, unless the task says otherwise",
        within=(1, 365 * DAY),
    ),
    _key("engine.on_pause_timeout", one_of("cancel", "resume"), "cancel", "what follows when it was paused too long"),
    _key(
        "engine.signal_keep",
        DURATION,
        "24h",
        "how long a signal waits for a step that wants it",
        within=(1, 365 * DAY),
    ),
    flag_key("engine.allow_fuse", "open a store on FUSE, which then has to keep flushes and locks", default=False),
    _key("limits.body", SIZE, "1MiB", "the body of one request", within=(KIB, 64 * KIB * KIB)),
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
    _key("limits.wall_time", DURATION, "24h", "how long one task may run, pauses not counted", within=(1, 365 * DAY)),
    _key("limits.cpu_time", DURATION, "30m", "CPU time of all processes of one task", within=(1, 365 * DAY)),
    _key("limits.memory", SIZE, "2GB", "memory of the processes of one task at the same time", within=(1, 1 << 50)),
    _key("limits.disk", SIZE, "1GiB", "what one task may write to files, in all", within=(1, 1 << 50)),
    _key("limits.output", SIZE, "64MiB", "output of all steps of one task together", within=(1, 1 << 40)),
    _key("limits.inline", SIZE, "32KiB", "larger values are kept as artifacts", within=(64, 32 * KIB)),
    _key("limits.artifact", SIZE, "16MiB", "the largest value that is kept", within=(KIB, 256 * KIB * KIB)),
    _key("retention.completed", DURATION, "30d", "how long completed tasks are kept", within=(0, 3650 * DAY)),
    _key("retention.failed", DURATION, "90d", "how long failed ones are kept", within=(0, 3650 * DAY)),
    _key("retention.cancelled", DURATION, "30d", "how long cancelled ones are kept", within=(0, 3650 * DAY)),
    _key("retention.keys", DURATION, "30d", "how long the key of a deleted task stays taken", within=(0, 3650 * DAY)),
    _key("retry.times", COUNT, 3, "retries of a transient failure", within=(0, 20)),
    _key(
        "retry.delay", DURATION, "1s", "before the first retry, doubling; not more than `max_delay`", within=(1, HOUR)
    ),
    _key("audit.key", TEXT, "", "a secret that seals the audit chain; empty: it shows stray edits only"),
    _key("policy.llm_approvals", WORDS, [], "tools whose calls an LLM may approve, where a trusted plan says so"),
    _key("retry.max_delay", DURATION, "30s", "between two retries, at most", within=(1, DAY)),
    _key("breaker.failures", COUNT, 5, "counted failures in a row that open a breaker", within=(1, 1_000)),
    _key("breaker.share", SHARE, 0.5, "or this share of the last calls", within=(1, 1_000)),
    _key("breaker.last", COUNT, 20, "how many of the last calls are looked at", within=(1, 1_000)),
    _key("breaker.min", COUNT, 10, "how many there must be for the share to count", within=(1, 1_000)),
    _key("breaker.window", DURATION, "60s", "older calls do not count for the share", within=(1, DAY)),
    _key("breaker.cool_down", DURATION, "30s", "how long it stays open, doubling; not more than", within=(1, DAY)),
    _key("breaker.max_cool_down", DURATION, "300s", "how long it stays open, at most", within=(1, DAY)),
    _key("breaker.close_after", COUNT, 2, "successful probes in a row that close it", within=(1, 1_000)),
    *TOOL_KEYS,
    *MCP_KEYS,
)
_POOLS: Final = (1, 10_000)
FAMILIES: Final = {
    "pools": _key(
        "pools.NAME",
        COUNT,
        4,
        "calls of one pool at the same time, per worker; for all workers together: `{size = 4, scope = 'fleet'}`",
        within=_POOLS,
    ),
    "rates": _key("rates.NAME", RATE, "5/1s", "calls of one provider, for all workers together"),
    "quotas": _key("quotas.NAME", COUNT, None, "calls of one provider in a day (UTC)", within=(0, 10**9)),
    "policy.permissions": _key(
        "policy.permissions.OWNER",
        PERMISSIONS,
        [],
        "what this owner may use tools for; one that is not named: everything",
    ),
    "policy.approve": _key(
        "policy.approve.TOOL",
        FLAG,
        None,
        "ask before every call of this tool; false: its own question is left out in trusted plans",
        within=(0, 1),
    ),
    "policy.untrusted": _key(
        "policy.untrusted.TOOL",
        one_of("ask", "allow"),
        "ask",
        "whether data from outside may decide a path, URL or address of this tool's calls without being asked about",
    ),
    **{
        f"breakers.*.{key.name.removeprefix('breaker.')}": replace(
            key, name=key.name.replace("breaker.", "breakers.NAME."), meaning=f"as `{key.name}`, for steps that name it"
        )
        for key in KEYS
        if key.name.startswith("breaker.")
    },
    **TOOL_FAMILIES,
    **MCP_FAMILIES,
}
"""Keys with a name of the operator's own in them."""
BY_NAME: Final[Mapping[str, Key]] = {key.name: key for key in KEYS}
_SHORT: Final[Mapping[str, str]] = {key.name.rpartition(".")[2]: key.name for key in KEYS if "." in key.name}
"""Who writes `heartbeat` means `engine.heartbeat`."""


# --- refusals ---


def known(name: str, place: str) -> Key:
    """The key of that name; raises SettingsError."""
    key = find(name)
    if key is None:
        raise refused(place, unknown(name), name)
    return key


def find(name: str) -> Key | None:
    """The key of that name, if there is one."""
    return BY_NAME.get(name) or _of_family(name)


def unknown(name: str) -> str:
    """What is said of a name that is no key's."""
    return did_you_mean(f"'{name}' is not a setting", suggest(name, BY_NAME, _SHORT))


def _of_family(name: str) -> Key | None:
    """`pools.browser`, also spelled `pools.browser.size`, with `pools.browser.scope`."""
    family = next((one for one in FAMILIES if _belongs(name, one)), None)
    if family is None:
        return None
    if family == "pools" and name.endswith(".scope"):
        return replace(FAMILIES[family], name=name, kind=SCOPE)
    return replace(FAMILIES[family], name=name)


def declares(name: str) -> bool:
    """Whether an empty table of this name says something."""
    key = _of_family(name)
    return key is not None and key.kind is EMPTY


def _belongs(name: str, family: str) -> bool:
    """`rates` takes any name below it; `http.targets.*.url` one word in the place of each star."""
    if "*" not in family:
        return name.startswith(f"{family}.") and name != f"{family}."
    words, pattern = name.split("."), family.split(".")
    return len(words) == len(pattern) and all(
        word == wanted or (wanted == "*" and word) for word, wanted in zip(words, pattern, strict=True)
    )


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
