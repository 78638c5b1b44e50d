"""One engine per file: an exclusive lock on a file beside the database, and who holds it.

Never on the database itself: closing any descriptor of that file would drop SQLite's own locks. The text in the lock
file is for people and for the command line; without a lock it means nothing.
"""

import ctypes
import fcntl
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from everstep.domain.errors import StoreLocked, StoreRefused
from everstep.domain.values import JsonObject

_FUSE: Final = 0x65735546
_REFUSED: Final[dict[int, str]] = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFE534D42: "SMB",
    0xFF534D42: "SMB",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x00C36400: "Ceph",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x01021997: "9p",
    _FUSE: "FUSE",
}
"""File systems whose locks or flushes cannot be relied on, by the magic number of `statfs`."""
_VOUCH: Final = ", or say engine.allow_fuse = true if what serves this one keeps flushes and locks"
_DYING_S: Final = 0.8
"""How long a holder whose process is gone may still keep the lock."""


def resolve(path: Path, *, allow_fuse: bool, magic: Callable[[Path], int] | None = None) -> Path:
    """The real path of the database; raises StoreRefused where one lock could not guard it."""
    real = path.resolve()
    if real.exists():
        if not real.is_file():
            raise StoreRefused(f"{real} is not a file")
        if real.stat().st_nlink > 1:
            raise StoreRefused(
                f"{real} has more than one name (hard links), so one lock cannot guard it",
                what_to_do="remove the other names, or copy the file",
            )
    folder = next(parent for parent in real.parents if parent.exists())
    number = (magic or _magic)(folder)
    kind = _REFUSED.get(number)
    if kind is not None and not (number == _FUSE and allow_fuse):
        raise StoreRefused(
            f"{folder} is on {kind}, which cannot keep the store's promises",
            what_to_do="keep the store on a local disk" + (_VOUCH if number == _FUSE else ""),
        )
    return real


def _magic(folder: Path) -> int:
    """The file system's number; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    buffer = (ctypes.c_long * 64)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.statfs(os.fsencode(folder), ctypes.byref(buffer)) != 0:
        raise OSError(ctypes.get_errno(), f"statfs {folder}")
    return int(buffer[0]) & 0xFFFFFFFF


class Lock:
    """The lock of one database. Held until closed, or until the process dies, however it dies."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_suffix(".lock")
        self._descriptor: int | None = None

    def acquire(self, holder: JsonObject) -> None:
        """Take it, or raise StoreLocked that names who has it; within a second."""
        deadline = time.monotonic() + _DYING_S
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                other = self.read()
                if _alive(other.get("pid")) or time.monotonic() > deadline:
                    raise _locked(self.path, other) from None
                time.sleep(0.02)
                continue
            if self._is(descriptor):
                break
            os.close(descriptor)
        self._descriptor = descriptor
        self.write(holder)

    def write(self, holder: JsonObject) -> None:
        """Say who holds it."""
        assert self._descriptor is not None
        text = json.dumps(holder).encode()
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))

    def read(self) -> JsonObject:
        """What the holder says of itself."""
        try:
            said = json.loads(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    @property
    def identity(self) -> str:
        """Which file is locked: the same database seen through another lock file is guarded by nothing."""
        assert self._descriptor is not None
        status = os.fstat(self._descriptor)
        return f"{status.st_dev}:{status.st_ino}"

    def release(self) -> None:
        """Let go; releasing twice is harmless."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _is(self, descriptor: int) -> bool:
        """Whether the locked file is still the one of that name."""
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False


def _alive(pid: object) -> bool:
    """Whether a process of this number is there; one that is only being buried counts as gone."""
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _locked(path: Path, other: JsonObject) -> StoreLocked:
    pid, command = other.get("pid"), other.get("command")
    who = f"process {pid} ('{command}')" if pid else "another process"
    return StoreLocked(
        f"{who} holds the store ({path})",
        what_to_do="use it through that process, or end it; everstep doctor tells more",
        details={"holder": other, "lock": str(path)},
    )
