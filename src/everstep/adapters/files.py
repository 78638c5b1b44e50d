"""Files beneath one folder: read, listed, replaced as a whole.

The folder is opened once; every path is resolved from that descriptor, without links. Regular files only.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

from everstep.adapters.beneath import FOLDER, Opener, best_opener, rename_new
from everstep.adapters.paths import RESERVED_PREFIX, Names, names_of, outside
from everstep.domain.record import record
from everstep.ports.tool import Impossible, ResourceExceeded, Transient

CHUNK_BYTES: Final = 1 << 20
NEW_MODE: Final = 0o666

_FILE: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_THROUGH_LINK: Final = frozenset({errno.ELOOP, errno.EXDEV, errno.EMLINK})
_NO_FILE: Final = frozenset({errno.EISDIR, errno.ENXIO, errno.ENODEV})

StopSign: TypeAlias = Callable[[], bool]
"""Whether the call should end; asked between chunks."""


@record
class Content:
    """A file, as much of it as was asked for."""

    data: bytes
    size_bytes: int
    sha256: str


@record
class Expected:
    """What must be there before a write."""

    absent: bool = False
    sha256: str | None = None


@record
class Old:
    """A file about to be replaced."""

    mode: int
    sha256: str | None = None


@record
class Written:
    """What a write came to."""

    size_bytes: int
    sha256: str
    created: bool


@record
class FileState:
    """What is at a path, as far as a change must know."""

    kind: Literal["absent", "file", "folder"]
    sha256: str | None = None
    mode: int | None = None
    mtime_ns: int | None = None

    def same(self, other: "FileState") -> bool:
        """Whether the content is the same."""
        return (self.kind, self.sha256) == (other.kind, other.sha256)


ABSENT: Final = FileState(kind="absent")


@record
class Replacement:
    """New content on its way to a name."""

    name: bytes
    temporary: bytes
    data: bytes
    old_mode: int | None


class Workspace:
    """One folder, held open while it is used."""

    def __init__(self, root: Path, *, stop: StopSign = lambda: False, opener: Opener | None = None) -> None:
        self._stop = stop
        self._open_beneath = opener or best_opener()
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _cls: type[BaseException] | None, _exc: object, _at: TracebackType | None) -> None:
        os.close(self._root)

    def read(self, path: str, start: int = 0, length: int = CHUNK_BYTES) -> Content:
        """`length` bytes from `start`, and the hash of the whole."""
        with self._opened(path, names_of(path), os.O_RDONLY | _FILE) as file:
            status = _regular(path, file)
            data = os.pread(file, min(length, max(0, status.st_size - start)), start)
            return Content(data=data, size_bytes=status.st_size, sha256=self._hash(file))

    def find(self, path: str) -> os.stat_result | None:
        """What is there, a link being a link; None if nothing is."""
        names = names_of(path)
        with suppress(FileNotFoundError, NotADirectoryError), self._opened(path, names[:-1], FOLDER) as folder:
            return os.stat(names[-1], dir_fd=folder, follow_symlinks=False) if names else os.fstat(folder)
        return None

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """A folder, opened to be listed."""
        with self._opened(path, names_of(path), FOLDER) as folder:
            yield folder

    def write(self, path: str, data: bytes, *, key: str, expected: Expected) -> Written:
        """Replace a file as a whole: a reader, or a crash, finds the old content or the new, never a part.

        `key` names the call: a repeat removes what a killed write of the same call left behind.
        """
        names = names_of(path)
        if not names:
            raise outside(path, "is the workspace itself")
        digest = hashlib.sha256(data).hexdigest()
        with self._made_folder(path, names[:-1]) as folder:
            temporary = temporary_name(key)
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            old = self._look(path, folder, names[-1], None if expected.sha256 else len(data))
            if old is not None and old.sha256 == digest:  # a repeat after a crash: now it stays there
                os.fsync(folder)
                return Written(size_bytes=len(data), sha256=digest, created=False)
            _compare(path, expected, old)
            mode = None if old is None else old.mode
            _replace(folder, Replacement(name=names[-1], temporary=temporary, data=data, old_mode=mode))
        return Written(size_bytes=len(data), sha256=digest, created=old is None)

    def state(self, path: str) -> FileState:
        """What is there now; a link, or what is neither file nor folder, is refused."""
        status = self.find(path)
        if status is None:
            return ABSENT
        if stat.S_ISDIR(status.st_mode):
            return FileState(kind="folder", mode=stat.S_IMODE(status.st_mode))
        with self._opened(path, names_of(path), os.O_RDONLY | _FILE) as file:
            status = _regular(path, file)
            digest = self._hash(file)
        mode = stat.S_IMODE(status.st_mode)
        return FileState(kind="file", sha256=digest, mode=mode, mtime_ns=status.st_mtime_ns)

    def whole(self, path: str, most: int) -> bytes:
        """All of a file, if it has not more than so many bytes."""
        content = self.read(path, 0, most + 1)
        if content.size_bytes > most:
            raise ResourceExceeded(
                f"'{path}' is too large to be changed so", limit="bytes", used=content.size_bytes, max=most
            )
        return content.data

    def may_change(self, path: str) -> None:
        """Refuses a file that nobody may write, and one with other names."""
        status = self.find(path)
        if status is None or stat.S_ISDIR(status.st_mode):
            return
        if not status.st_mode & 0o222:
            raise PermissionError(errno.EACCES, "it is read-only", path)
        if status.st_nlink > 1:
            raise outside(path, "is a file with other names (hard links), perhaps outside")

    def remove(self, path: str) -> None:
        """A file, or an empty folder; nothing there is fine."""
        names = names_of(path)
        if not names:
            raise outside(path, "is the workspace itself")
        with suppress(FileNotFoundError), self._opened(path, names[:-1], FOLDER) as folder:
            status = os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                os.rmdir(names[-1], dir_fd=folder)
            else:
                os.unlink(names[-1], dir_fd=folder)
            os.fsync(folder)

    def names(self, path: str) -> list[str]:
        """What a folder holds, by name; a name that is no text cannot be changed by a plan."""
        with self.folder(path) as folder:
            return sorted(os.fsdecode(entry.name) for entry in os.scandir(folder))

    def make_folder(self, path: str) -> None:
        """With all above it; there already is fine."""
        with self._made_folder(path, names_of(path)):
            pass

    def rename(self, old: str, new: str) -> None:
        """A folder with all in it, to a free name."""
        before, after = names_of(old), names_of(new)
        if not before or not after:
            raise outside(old, "is the workspace itself")
        with self._opened(old, before[:-1], FOLDER) as here, self._made_folder(new, after[:-1]) as there:
            os.rename(before[-1], after[-1], src_dir_fd=here, dst_dir_fd=there)
            os.fsync(there)
            os.fsync(here)

    def put_back(self, path: str, data: bytes, was: FileState, *, key: str) -> None:
        """Content, mode and time as they were."""
        self.write(path, data, key=key, expected=Expected())
        names = names_of(path)
        with self._opened(path, names, os.O_RDONLY | _FILE) as file:
            if was.mode is not None:
                os.fchmod(file, was.mode)
            if was.mtime_ns is not None:
                os.utime(file, ns=(was.mtime_ns, was.mtime_ns))
            os.fsync(file)

    def space(self) -> tuple[int, int]:
        """Free bytes and size of the disk."""
        disk = os.fstatvfs(self._root)
        return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize

    def _look(self, path: str, folder: int, name: bytes, size_bytes: int | None) -> Old | None:
        """The file to be replaced; hashed, and flushed, if it has that size or no size is asked for.

        Opened for writing: what may not be written may not be replaced either.
        """
        try:
            file = os.open(name, os.O_RDWR | _FILE, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise _refusal(path, exc) from exc
        with _closing(file):
            status = _regular(path, file)
            if status.st_nlink > 1:
                raise outside(path, "is a file with other names (hard links), perhaps outside")
            mode = stat.S_IMODE(status.st_mode)
            if size_bytes not in {None, status.st_size}:
                return Old(mode=mode)
            os.fsync(file)
            return Old(mode=mode, sha256=self._hash(file))

    @contextmanager
    def _made_folder(self, path: str, names: Names) -> Iterator[int]:
        """The folder of a file to be written; missing folders are made on the way."""
        try:
            folder = self._open(path, names, FOLDER)
        except FileNotFoundError:
            for depth, name in enumerate(names):
                with self._opened(path, names[:depth], FOLDER) as above, suppress(FileExistsError):
                    os.mkdir(name, dir_fd=above)
                    os.fsync(above)
            folder = self._open(path, names, FOLDER)
        with _closing(folder):
            yield folder

    @contextmanager
    def _opened(self, path: str, names: Names, flags: int) -> Iterator[int]:
        file = self._open(path, names, flags)
        with _closing(file):
            yield file

    def _open(self, path: str, names: Names, flags: int) -> int:
        try:
            return self._open_beneath(self._root, names, flags)
        except OSError as exc:
            raise _refusal(path, exc) from exc

    def _hash(self, file: int) -> str:
        digest = hashlib.sha256()
        at = 0
        while chunk := os.pread(file, CHUNK_BYTES, at):
            if self._stop():
                raise Transient("the call was ended while it read")
            digest.update(chunk)
            at += len(chunk)
        return digest.hexdigest()


def temporary_name(key: str) -> bytes:
    """The same for every repeat of one call; no path of a tool can name it."""
    return f"{RESERVED_PREFIX}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.tmp".encode()


def _compare(path: str, expected: Expected, old: Old | None) -> None:
    if expected.absent and old is not None:
        raise Impossible(f"'{path}' exists already", code="file_conflict")
    if expected.sha256 and old is None:
        raise Impossible(f"'{path}' does not exist", code="file_conflict")
    if expected.sha256 and old is not None and old.sha256 != expected.sha256:
        raise Impossible(f"'{path}' was changed: its hash is {old.sha256}", code="file_conflict")


def _replace(folder: int, new: Replacement) -> None:
    """Temporary file in the same folder, flush, rename, flush the folder."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
    file = os.open(new.temporary, flags, NEW_MODE if new.old_mode is None else 0o600, dir_fd=folder)
    try:
        with _closing(file):
            left = memoryview(new.data)
            while left:
                left = left[os.write(file, left[:CHUNK_BYTES]) :]
            if new.old_mode is not None:
                os.fchmod(file, new.old_mode)
            os.fsync(file)
        if new.old_mode is None:
            rename_new(folder, new.temporary, new.name)
        else:
            os.rename(new.temporary, new.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(new.temporary, dir_fd=folder)
        raise
    os.fsync(folder)


@contextmanager
def _closing(file: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(file)


def _regular(path: str, file: int) -> os.stat_result:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise outside(path, "is not a regular file")
    return status


def _refusal(path: str, exc: OSError) -> Exception:
    if exc.errno in _THROUGH_LINK:
        return outside(path, "leads through a link")
    if exc.errno in _NO_FILE:
        return outside(path, "is not a regular file")
    return OSError(exc.errno, exc.strerror, path)  # by the name the plan knows
