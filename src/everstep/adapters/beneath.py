"""Opening beneath a folder, whoever moves things meanwhile: by the kernel's own call, or component by component.

No path is made absolute and compared: between the comparison and the use it could come to mean something else.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from everstep.adapters.paths import Names

Opener: TypeAlias = Callable[[int, Names, int], int]
"""Folder descriptor, components, flags -> descriptor; OSError ELOOP, EXDEV or ENOTDIR where a link is in the way."""

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW

_SYS_OPENAT2: Final = 437  # the same on every architecture but alpha
_BENEATH: Final = 0x08 | 0x04 | 0x02  # RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS
_TRIES_MAX: Final = 100
_RENAME_NOREPLACE: Final = 1
_NO_SUCH_CALL: Final = frozenset({errno.ENOSYS, errno.EINVAL})


def best_opener() -> Opener:
    """The kernel's own way where there is one."""
    return openat2() or walk


def walk(root: int, names: Names, flags: int) -> int:
    """Component by component; each must be a folder and no link."""
    at = os.open(b".", FOLDER if names else flags, dir_fd=root)
    for depth, name in enumerate(names, 1):
        above = at
        try:
            at = os.open(name, flags | os.O_NOFOLLOW if depth == len(names) else FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return at


class _How(ctypes.Structure):
    """`struct open_how`."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def openat2() -> Opener | None:
    """`openat2`; None where it is missing or forbidden, found by trying."""
    if os.uname().sysname != "Linux":
        return None
    system = ctypes.CDLL(None, use_errno=True).syscall

    def open_beneath(root: int, names: Names, flags: int) -> int:
        how = _How(flags, 0, _BENEATH)
        path = ctypes.c_char_p(b"/".join(names) or b".")
        size = ctypes.c_size_t(ctypes.sizeof(how))
        code = errno.EAGAIN
        for _ in range(_TRIES_MAX):
            file: int = system(ctypes.c_long(_SYS_OPENAT2), ctypes.c_int(root), path, ctypes.byref(how), size)
            if file >= 0:
                return file
            code = ctypes.get_errno()
            if code != errno.EAGAIN:  # else something was moved while the kernel looked
                break
        raise OSError(code, os.strerror(code))

    return open_beneath if _works(open_beneath) else None


def _works(opener: Opener) -> bool:
    root = os.open("/", FOLDER)
    try:
        os.close(opener(root, (), FOLDER))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def rename_new(folder: int, old: bytes, new: bytes) -> None:
    """Rename onto a free name; what came there meanwhile is left alone, where the system can promise that."""
    call = _renameat2()
    if call is not None:
        if call(folder, old, folder, new, _RENAME_NOREPLACE) == 0:
            return
        code = ctypes.get_errno()
        if code not in _NO_SUCH_CALL:
            raise OSError(code, os.strerror(code), os.fsdecode(new))
    os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)


@cache
def _renameat2() -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
