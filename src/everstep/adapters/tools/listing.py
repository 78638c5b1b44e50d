"""What is below a folder: sorted, bounded, links shown but not followed, our own files left out."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import translate
from typing import Final

from everstep.adapters.beneath import FOLDER
from everstep.adapters.files import Workspace
from everstep.adapters.paths import is_reserved, names_of
from everstep.domain.ids import Instant
from everstep.domain.values import JsonValue
from everstep.wire.times import to_text

ENTRIES_MAX: Final = 10_000

_KINDS: Final = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))


def listing(files: Workspace, path: str = ".", glob: str = "*", depth: int = 1) -> JsonValue:
    """Entries whose name fits `glob`, or whose path does if it has a `/`."""
    fits = re.compile(translate(glob)).match
    entries: list[JsonValue] = []
    with files.folder(path) as folder:
        inside = b"/".join((*names_of(path), b"")).decode()
        for below, status in _below(folder, "", depth):
            if fits(below if "/" in glob else below.rpartition("/")[2]):
                if len(entries) == ENTRIES_MAX:
                    return {"path": path, "entries": entries, "truncated": True}
                entries.append(_entry(inside + below, status))
    return {"path": path, "entries": entries, "truncated": False}


def kind_of(mode: int) -> str:
    """`file`, `folder`, `link` or `other`."""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "other")


def _entry(path: str, status: os.stat_result) -> JsonValue:
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    return {"path": path, "type": kind_of(status.st_mode), "bytes": size}


def _below(folder: int, inside: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    for name in sorted(_names(folder)):
        with suppress(FileNotFoundError, NotADirectoryError):  # gone, or changed, meanwhile
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            yield inside + name, status
            if depth > 1 and stat.S_ISDIR(status.st_mode):
                yield from _inside(folder, name, f"{inside}{name}/", depth - 1)


def _inside(folder: int, name: str, inside: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    deeper = os.open(name, FOLDER, dir_fd=folder)
    try:
        yield from _below(deeper, inside, depth)
    finally:
        os.close(deeper)


def _names(folder: int) -> Iterator[str]:
    for name in os.listdir(folder):
        if not is_reserved(name) and _is_text(name):
            yield name


def _is_text(name: str) -> bool:
    """A name that is no text could not be named by a path."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def stat_of(files: Workspace, path: str) -> JsonValue:
    """Whether something is there, and what."""
    status = files.find(path)
    if status is None:
        return {"path": path, "exists": False, "type": None, "bytes": None, "sha256": None, "modified_at": None}
    is_file = stat.S_ISREG(status.st_mode)
    return {
        "path": path,
        "exists": True,
        "type": kind_of(status.st_mode),
        "bytes": status.st_size if is_file else None,
        "sha256": files.read(path, 0, 0).sha256 if is_file else None,
        "modified_at": to_text(Instant(status.st_mtime_ns // 1_000_000)),
    }
