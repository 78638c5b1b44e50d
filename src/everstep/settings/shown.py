"""What may be shown of a setting: never a secret, the account in an address, or what an address says after its path.

Secrets are handed over by name, so most settings hold none. A few may hold one all the same: those are shown only as
far as they certainly do not.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Final

from everstep.domain.values import JsonValue
from everstep.settings.place import shown_store

HIDDEN: Final = "[hidden]"
_DATABASES: Final = ("store", "engine.listen_dsn")
_VALUES: Final = ("audit.key", "mcp.servers.*.auth", "mcp.servers.*.env.*")
"""The secret itself may stand here; `secret:NAME` is none."""
_NAMES: Final = ("http.targets.*.auth", "llm.endpoints.*.auth", "mail.auth", "webhook.targets.*.secrets")
"""The name of a secret stands here, behind a user in `mail.auth`; what cannot be a name may be a secret by mistake."""
_HOOKS: Final = ("notify.webhook", "webhook.targets.*.url")
"""Whoever knows such an address may write there, so its path is as good as a password."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S*")
_TELLING: Final = re.compile(r"(?:^|[-_./])(?:api-?)?(?:auth\w*|key|token|secret|pass\w*|credentials?)$", re.IGNORECASE)
_SAID: Final = re.compile(r"([^=:\s]+)(=|:\s*)(.+)", re.DOTALL)


def shown(name: str, value: JsonValue) -> JsonValue:
    """The value of this key as anybody may see it."""
    if isinstance(value, list):
        texts = [one if isinstance(one, str) else "" for one in value]
        return [_text(name, one) for one in texts] if _is(name, _NAMES) else _command(texts)
    return _text(name, value) if isinstance(value, str) else value


def _text(name: str, text: str) -> str:
    if not text:
        return text
    if name in _DATABASES:
        return _database(text)
    if _is(name, _VALUES):
        return text if _names_one(text) else HIDDEN
    if _is(name, _NAMES):
        who, colon, secret = text.rpartition(":") if name == "mail.auth" else ("", "", text)
        return text if _names_one(secret) or _NAME.fullmatch(secret) else f"{who}{colon}{HIDDEN}"
    if _is(name, _HOOKS):
        scheme, _, rest = _address(text).partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/{HIDDEN}" if "/" in rest else HIDDEN
    return _ADDRESS.sub(lambda found: _address(found[0]), text)


def _database(text: str) -> str:
    """An address; the name of a file; or words and values, one of which is a password."""
    if "://" not in text:
        return HIDDEN if "password=" in text.replace(" ", "").lower() else text
    seen = _address(text)
    try:
        return seen if seen.endswith(f"://{HIDDEN}") else shown_store(text)
    except ValueError:
        return seen


def _is(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _names_one(text: str) -> bool:
    return text.startswith("secret:") and _NAME.fullmatch(text.removeprefix("secret:")) is not None


def _address(text: str) -> str:
    """Where it leads; not who signs in there, and not what follows the path."""
    scheme, _, rest = text.partition("://")
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = place.partition("/")
    if "@" in rest and "@" not in host:  # a password with a slash in it, or only a path with an @: nobody knows
        return f"{scheme}://{HIDDEN}"
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}{'' if place == rest else f'?{HIDDEN}'}"


def _command(words: Sequence[str]) -> list[JsonValue]:
    """A list of texts; of a command, not what stands behind `--token`, `PASSWORD=` or `Authorization:`."""
    told: list[JsonValue] = []
    hide = False
    for word in words:
        said = _SAID.fullmatch(word)
        if hide:
            told.append(HIDDEN)
        elif said and _TELLING.search(said[1]) and not _names_one(word):
            told.append(f"{said[1]}{said[2]}{HIDDEN}")
        else:
            told.append(_ADDRESS.sub(lambda found: _address(found[0]), word))
        hide = not hide and word.startswith("-") and _TELLING.search(word) is not None
    return told
