"""Paths that a plan may name: relative, beneath the workspace, none of them ours.

Only the text is judged here. Where a path really leads is the kernel's business (`beneath`).
"""

import unicodedata
from typing import Final, TypeAlias

from everstep.ports.tool import Denied, Misconfigured

PATH_BYTES_MAX: Final = 4_096
NAME_BYTES_MAX: Final = 255
RESERVED_PREFIX: Final = ".everstep"
"""Our own folder, and the temporary files of writes."""
RESERVED_NAMES: Final = frozenset({"everstep.toml"})
_INVISIBLE: Final = frozenset({"Cc", "Cf"})

Names: TypeAlias = tuple[bytes, ...]


def names_of(path: str) -> Names:
    """The components of a path inside the workspace; refuses every path that could mean something else."""
    try:
        raw = path.encode()
    except UnicodeEncodeError:
        raise _unusable("holds half a character") from None
    if not path:
        raise _unusable("is empty")
    if len(raw) > PATH_BYTES_MAX:
        raise _unusable(f"has more than {PATH_BYTES_MAX} bytes")
    if any(unicodedata.category(character) in _INVISIBLE for character in path):
        raise _unusable("holds a character that cannot be seen")
    if path.startswith("/") or "\\" in path:
        raise outside(path, "is not a relative path with / between folders")
    root, colon, _ = path.partition("/")[0].partition(":")
    if colon:
        raise outside(path, f"names the root '{root}', and there is no such root")
    return tuple(_name(path, part) for part in path.split("/") if part not in {"", "."})


def is_reserved(name: str) -> bool:
    """Whether a name is ours, and out of reach for tools, in any spelling that some file system takes for it."""
    plain = unicodedata.normalize("NFKC", name).casefold().rstrip(". ")
    return plain.startswith(RESERVED_PREFIX) or plain in RESERVED_NAMES


def outside(path: str, why: str) -> Denied:
    """A path that leads, or could lead, where no tool may go."""
    return Denied(f"'{path}' {why}; paths stay inside the workspace", code="policy_denied")


def _name(path: str, part: str) -> bytes:
    plain = unicodedata.normalize("NFKC", part)
    if not plain.strip(". ") or "/" in plain or "\\" in plain:  # `..` in any width, and what is taken for it
        raise outside(path, f"leads through '{part}'")
    if is_reserved(part):
        raise outside(path, "is everstep's own")
    name = part.encode()
    if len(name) > NAME_BYTES_MAX:
        raise _unusable(f"holds a name of more than {NAME_BYTES_MAX} bytes")
    return name


def _unusable(why: str) -> Misconfigured:
    return Misconfigured(f"the path {why}", code="bad_path")
