"""Settings of the built-in tools: what they may reach, and the places, programs and accounts an operator names."""

from typing import Final

from everstep.settings.kinds import SOME_TEXT, TEXT, WORDS, Key, one_of
from everstep.settings.kinds import key_of as _key

TOOL_KEYS: Final = (
    _key(
        "policy.network_reads",
        one_of("public", "allowlist"),
        "public",
        "what may be read: anything public, or only `policy.hosts`",
    ),
    _key("policy.hosts", WORDS, [], "hosts that may be written to: `api.example.com`, `*.example.com`, `host:8080`"),
    _key("policy.networks", WORDS, [], "private networks that data may lead to: `10.1.0.0/16:443`"),
)


_TARGET: Final = "http.targets.NAME"
TOOL_FAMILIES: Final[dict[str, Key]] = {
    "http.targets.*.url": _key(f"{_TARGET}.url", SOME_TEXT, None, "a place that may be written to, and all below it"),
    "http.targets.*.idempotency_header": _key(
        f"{_TARGET}.idempotency_header", TEXT, "", "the header that takes the key: then a call may be repeated"
    ),
    "http.targets.*.probe": _key(
        f"{_TARGET}.probe", TEXT, "", "a URL with {key}: 200, the request has arrived; 404, it has not"
    ),
    "http.targets.*.health": _key(f"{_TARGET}.health", TEXT, "", "a URL that says whether the place is well"),
}
"""Tables of the operator's: the star stands for a name."""
