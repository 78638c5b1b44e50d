"""Sealed values as Payload objects (interfaces, 5.1): inline with their digest, or a reference to an artifact.

A sealed value is encoded once, when it is sealed: its bytes are copied into whatever carries it.
"""

from typing import Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from everstep.domain.canonical import canonical_text
from everstep.domain.ids import Digest
from everstep.domain.values import Sealed

PREVIEW_BYTES_MAX: Final = 2048
MEDIA_TYPE: Final = "application/json"


class Payload(Struct, kw_only=True):
    """Both forms: `value` and `digest`, or `artifact`, `media_type` and `preview`."""

    value: Any = UNSET  # `Raw` when written; any JSON when read: msgspec has no recursive type for it
    digest: str | UnsetType = UNSET
    artifact: str | UnsetType = UNSET
    media_type: str | UnsetType = UNSET
    bytes: int
    preview: str | UnsetType = UNSET
    untrusted: bool


def write(sealed: Sealed) -> Payload:
    """The Payload object of a value."""
    if sealed.by_reference:
        return Payload(
            artifact=sealed.digest,
            media_type=MEDIA_TYPE,
            bytes=sealed.size_bytes,
            preview=_preview(sealed),
            untrusted=sealed.untrusted,
        )
    raw = sealed.raw
    if raw is None:
        raw = canonical_text(sealed.value).encode()
    return Payload(value=Raw(raw), digest=sealed.digest, bytes=sealed.size_bytes, untrusted=sealed.untrusted)


def maybe_write(sealed: Sealed | None) -> Payload | None:
    """As `write`; nothing stays nothing."""
    return None if sealed is None else write(sealed)


def read(payload: Payload) -> Sealed:
    """The value again; one kept as an artifact is named, but not present."""
    if payload.artifact is not UNSET:
        return Sealed(
            None,
            Digest(payload.artifact),
            payload.bytes,
            untrusted=payload.untrusted,
            by_reference=True,
            present=False,
        )
    if payload.digest is UNSET or payload.value is UNSET:
        raise ValueError("a payload has either a value and its digest, or an artifact")
    return Sealed(payload.value, Digest(payload.digest), payload.bytes, untrusted=payload.untrusted)


def maybe_read(payload: Payload | None) -> Sealed | None:
    """As `read`; nothing stays nothing."""
    return None if payload is None else read(payload)


def _preview(sealed: Sealed) -> str:
    if not sealed.present:
        return ""
    raw = sealed.raw
    if raw is None:
        raw = canonical_text(sealed.value).encode()
    return raw[:PREVIEW_BYTES_MAX].decode(errors="ignore")
