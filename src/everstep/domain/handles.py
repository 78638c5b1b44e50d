"""Values a tool holds by handle: bytes kept by their digest, text that must not be shown."""

from pathlib import PurePosixPath
from typing import Final, NoReturn

from everstep.domain.ids import Digest
from everstep.domain.record import record
from everstep.domain.values import JsonObject

NAME_CHARS_MAX: Final = 200
_MEDIA_TYPES: Final = {
    ".csv": "text/csv",
    ".gif": "image/gif",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".txt": "text/plain",
    ".webp": "image/webp",
    ".zip": "application/zip",
}


@record
class Artifact:
    """Stored bytes, named by their content; what travels between steps is this handle."""

    name: str
    digest: Digest
    media_type: str
    bytes: int

    def handle(self) -> JsonObject:
        """As it stands in an output."""
        return {"name": self.name, "digest": self.digest, "media_type": self.media_type, "bytes": self.bytes}


@record
class Left:
    """What a call leaves beside its output."""

    artifact: Artifact
    raw: bytes


def named(name: str) -> str:
    """A name that can be shown in one line and saved under; raises ValueError."""
    if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable() or "/" in name:
        raise ValueError(
            f"the name of an artifact is one printable line of at most {NAME_CHARS_MAX} characters, no '/'"
        )
    return name


def media_type_of(name: str) -> str:
    """By how the name ends."""
    return _MEDIA_TYPES.get(PurePosixPath(name).suffix.lower(), "application/octet-stream")


class Secret:
    """A value that prints as `***`; only the tool that needs it asks for the text."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself. Hand it to the one call that needs it, nowhere else."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    def __format__(self, _spec: str) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not copied into other formats")
