"""The socket's file, who is at its other end, and the lock file that names it."""

import asyncio
import json
import os
import socket
import stat
import struct
from pathlib import Path
from typing import Final

from everstep.domain.errors import Unavailable
from everstep.domain.values import JsonObject

LINE_BYTES_MAX: Final = 2 * 1024 * 1024
"""Of a request: a body of 1 MiB, with room for its envelope."""


def bind(path: Path) -> socket.socket:
    """A socket only this user can reach, from its first moment on: it is given its name after its mode."""
    unnamed = path.with_name(f".{os.getpid():x}.sock")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        unnamed.unlink(missing_ok=True)
        sock.bind(str(unnamed))
        unnamed.chmod(0o600)
        unnamed.replace(path)
    except OSError as error:
        sock.close()
        raise Unavailable(f"cannot open the local door {path}: {error.strerror}") from error
    return sock


def make_private(folder: Path) -> None:
    """Make a folder that only we can enter; one that is there must be so already."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Unavailable(f"{folder} is not a folder of our own", what_to_do=f"remove it: rm -r {folder}")


def same_user(writer: asyncio.StreamWriter) -> bool:
    """Whether the process at the other end is ours. Where the system does not tell, the file's mode must do."""
    sock = writer.get_extra_info("socket")
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    layout = "3i"
    _pid, user, _group = struct.unpack(
        layout, sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(layout))
    )
    return bool(user == os.geteuid())


def read_lock(path: Path) -> JsonObject:
    """What the holder of a store says of itself; without a lock it means nothing."""
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def announce(lock: Path, **doors: str) -> None:
    """Say in the lock file where the doors are. The lock itself is not touched: it is on the file, not on its text."""
    said = read_lock(lock)
    if said:
        text = json.dumps({**said, **doors}).encode()
        with lock.open("r+b") as file:
            file.write(text)
            file.truncate()
