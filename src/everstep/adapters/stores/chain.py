"""The audit chain: every line of a journal is sealed together with the seal of the line before it.

    h(0) = SHA-256( owner ),  h(n) = SHA-256( h(n-1) + event n )

Whoever changes, removes or swaps lines leaves a chain that does not fit. With a key only its owner can forge one. Large
values stand in events by their digest, so the chain holds whatever becomes of the values themselves.
"""

import hmac
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final, TypeAlias

Seal: TypeAlias = Callable[[bytes], bytes]

START: Final = b""
"""What the first line was linked to before owners were part of the chain."""


def beginning(owner: str) -> bytes:
    """What the first line of a journal is linked to: whose task it is stands in no event, and is not to be changed."""
    return sha256(owner.encode()).digest()


def seal_with(key: str) -> Seal:
    """How links are made: plain, or with a key."""
    if not key:
        return _plain
    secret = key.encode()
    return lambda text: hmac.digest(secret, text, "sha256")


def _plain(text: bytes) -> bytes:
    return sha256(text).digest()


def head_of(heads: Iterable[tuple[str, bytes | None]]) -> str:
    """One word for the heads of all journals: whoever knows it notices a cut tail too."""
    whole = sha256()
    for task, head in heads:
        whole.update(task.encode() + b"\0" + (head or START))
    return f"sha256:{whole.hexdigest()}"
