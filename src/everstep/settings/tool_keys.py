"""Settings of the built-in tools: what they may reach, and the places, programs and accounts an operator names."""

from typing import Final

from everstep.settings.kinds import (
    AMOUNT,
    COUNT,
    DAY,
    DURATION,
    HOUR,
    SECOND,
    SIZE,
    SOME_TEXT,
    TEXT,
    WORDS,
    Key,
    flag_key,
    one_of,
)
from everstep.settings.kinds import key_of as _key

TOOL_KEYS: Final = (
    _key(
        "policy.network_reads",
        one_of("public", "allowlist"),
        "public",
        "what may be read: anything public, or only `policy.hosts`",
    ),
    _key("policy.hosts", WORDS, [], "hosts that may be written to: `api.example.com`, `*.example.com`, `host:8080`"),
    _key("secrets.dir", TEXT, "", "a folder of files, one secret each, that only you can read"),
    _key(
        "containment.uid_base",
        COUNT,
        61184,
        "the user that programs run as where the engine is root, and the next one for the browser; "
        "0: root, without capabilities",
        within=(0, 2**31),
    ),
    _key("file.undo_window", DURATION, "24h", "how long changes of files can be taken back", within=(0, 365 * DAY)),
    _key(
        "file.undo_bytes", SIZE, "1GiB", "how much is kept for taking back; the oldest goes first", within=(0, 1 << 50)
    ),
    _key(
        "cache.bytes",
        SIZE,
        "1GB",
        "how much of what pure tools gave is kept to be given again",
        within=(0, 1 << 50),
    ),
    _key("search.cache", DURATION, "24h", "how long a result of a search is used again", within=(0, 365 * DAY)),
    _key(
        "search.stale", DURATION, "7d", "how long it is better than none, if no engine answers", within=(0, 365 * DAY)
    ),
    _key("mail.server", TEXT, "", "where mail goes out: `smtp://host:587` or `smtps://host`; empty: there is no mail"),
    _key("mail.sender", TEXT, "", "the address that mail comes from"),
    _key("mail.auth", TEXT, "", "user and the name of a secret: `anna:mail_password`"),
    _key("mail.blocked_domains", WORDS, [], "domains that get no mail"),
    _key("mail.recipients", COUNT, 20, "recipients of one message, in all", within=(1, 1_000)),
    _key("mail.internal_domains", WORDS, [], "domains that get mail without being asked about"),
    _key(
        "mail.lookup",
        TEXT,
        "",
        "a Maildir where sent mail arrives, or a URL with {message_id} (200: it has, 404: not): then a lost answer is "
        "looked up",
    ),
    _key(
        "mail.confirm",
        one_of("accepted", "delivered"),
        "accepted",
        "when a message counts as sent: the server took it, or `mail.lookup` has it",
    ),
    _key("llm.timeout", DURATION, "120s", "how long a model may take to answer", within=(SECOND, HOUR)),
    flag_key("browser.enabled", "whether there are `browser.*` tools", default=False),
    _key("browser.executable", TEXT, "", "the browser's program; empty: the Chromium of the system"),
    _key("policy.networks", WORDS, [], "private networks that data may lead to: `10.1.0.0/16:443`"),
)


_TARGET: Final = "http.targets.NAME"
_HOOK: Final = "webhook.targets.NAME"
_COMMAND: Final = "shell.commands.NAME"
_MODEL: Final = "llm.endpoints.NAME"
TOOL_FAMILIES: Final[dict[str, Key]] = {
    "search.providers": _key(
        "search.providers.NAME", SOME_TEXT, None, "a SearXNG-compatible search engine; the first is asked unless said"
    ),
    "secrets.grants": _key(
        "secrets.grants.OWNER", WORDS, [], "secrets that this owner may use; `local` may use all unless said"
    ),
    "file.roots.*.path": _key(
        "file.roots.NAME.path", SOME_TEXT, None, "a folder beside the workspace that `file.*` reach as `NAME:path`"
    ),
    "file.roots.*.mode": _key("file.roots.NAME.mode", one_of("ro", "rw"), "ro", "whether files there may be changed"),
    "http.targets.*.url": _key(f"{_TARGET}.url", SOME_TEXT, None, "a place that may be written to, and all below it"),
    "http.targets.*.auth": _key(f"{_TARGET}.auth", TEXT, "", "the token that goes along: `secret:NAME`"),
    "http.targets.*.token_url": _key(
        f"{_TARGET}.token_url",
        TEXT,
        "",
        "where that secret (a refresh token, or `client:password`) is exchanged for a token that runs out",
    ),
    "http.targets.*.idempotency_header": _key(
        f"{_TARGET}.idempotency_header", TEXT, "", "the header that takes the key: then a call may be repeated"
    ),
    "http.targets.*.probe": _key(
        f"{_TARGET}.probe", TEXT, "", "a URL with {key}: 200, the request has arrived; 404, it has not"
    ),
    "http.targets.*.health": _key(f"{_TARGET}.health", TEXT, "", "a URL that says whether the place is well"),
    "webhook.targets.*.url": _key(f"{_HOOK}.url", SOME_TEXT, None, "where webhooks of this name go"),
    "webhook.targets.*.secrets": _key(f"{_HOOK}.secrets", WORDS, [], "names of the secrets that sign them"),
    "webhook.targets.*.drops_repeats": flag_key(
        f"{_HOOK}.drops_repeats", "whether it drops a message with an id it has seen", default=False
    ),
    "llm.endpoints.*.url": _key(
        f"{_MODEL}.url", SOME_TEXT, None, "where models answer, as OpenAI's do: `https://host/v1`; the first is asked"
    ),
    "llm.endpoints.*.auth": _key(f"{_MODEL}.auth", TEXT, "", "the name of the secret that is sent as bearer token"),
    "llm.endpoints.*.model": _key(f"{_MODEL}.model", TEXT, "", "the model that answers unless said"),
    "llm.endpoints.*.price_in": _key(
        f"{_MODEL}.price_in",
        AMOUNT,
        0,
        "what a million tokens of questions cost, in the unit of `limits.cost`",
        within=(0, 1_000_000),
    ),
    "llm.endpoints.*.price_out": _key(
        f"{_MODEL}.price_out", AMOUNT, 0, "what a million tokens of answers cost", within=(0, 1_000_000)
    ),
    "llm.endpoints.*.json_schema": flag_key(
        f"{_MODEL}.json_schema", "whether it takes a JSON Schema for its answer; else it is told in words", default=True
    ),
    "shell.commands.*.program": _key(f"{_COMMAND}.program", SOME_TEXT, None, "the program's absolute path"),
    "shell.commands.*.arguments": _key(
        f"{_COMMAND}.arguments",
        WORDS,
        [],
        "patterns, one of which each argument must match as a whole; none: no arguments",
    ),
    "shell.commands.*.effect": _key(
        f"{_COMMAND}.effect", one_of("pure", "idempotent", "verifiable", "once"), "once", "what a repeated call may do"
    ),
    "shell.commands.*.network": flag_key(f"{_COMMAND}.network", "whether it may use the network", default=False),
    "shell.commands.*.probe": _key(
        f"{_COMMAND}.probe", WORDS, [], "a command that looks whether a call happened: exit 0, it did; 1, it did not"
    ),
    "shell.commands.*.transient_exit": _key(
        f"{_COMMAND}.transient_exit", WORDS, ["75"], "exit codes that mean: try again later"
    ),
    "containment.require": _key(
        "containment.require.TOOL",
        one_of("restricted", "limited"),
        None,
        "the walls a tool's programs need; unset: all of them for plans that are not trusted",
    ),
}
"""Tables of the operator's: the star stands for a name."""
