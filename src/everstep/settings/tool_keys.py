"""Settings of the built-in tools: what they may reach, and the places, programs and accounts an operator names."""

from typing import Final

from everstep.settings.kinds import SOME_TEXT, TEXT, WORDS, Key, flag_key, one_of
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
    _key("policy.networks", WORDS, [], "private networks that data may lead to: `10.1.0.0/16:443`"),
)


_TARGET: Final = "http.targets.NAME"
_HOOK: Final = "webhook.targets.NAME"
TOOL_FAMILIES: Final[dict[str, Key]] = {
    "secrets.grants": _key(
        "secrets.grants.OWNER", WORDS, [], "secrets that this owner may use; `local` may use all unless said"
    ),
    "http.targets.*.url": _key(f"{_TARGET}.url", SOME_TEXT, None, "a place that may be written to, and all below it"),
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
}
"""Tables of the operator's: the star stands for a name."""
