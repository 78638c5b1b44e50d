"""Payloads by content, as files beside the database: temporary, flushed, renamed, folder flushed, then referred to."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

from everstep.adapters.stores.journal import check_payload
from everstep.adapters.stores.sqlite.connect import sync_folder, translated
from everstep.domain.errors import EngineClosed, NotFound, Unavailable, Validation
from everstep.domain.ids import Digest, Instant
from everstep.domain.values import JsonValue
from everstep.ports.fault import Fault
from everstep.wire.values import digest_of, loads_strict

T = TypeVar("T")

THREADS: Final = 2
BEGUN: Final = ".begun"
"""The folder of files that are not whole yet."""


class Artifacts:
    """`<folder>/ab/<digest>`; equal payloads are one file."""

    def __init__(self, folder: Path, fault: Fault) -> None:
        self._folder = folder
        self._fault = fault
        self._names = count()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="everstep-artifacts")
        self._closed = False
        self._lock = threading.Lock()
        for half in (folder / BEGUN).glob("*"):  # of one who was killed: whoever opens a store is alone with it
            half.unlink(missing_ok=True)

    async def put(self, payloads: Sequence[tuple[Digest, bytes]]) -> None:
        """Durable when this returns."""
        await self._in_thread(lambda: self.keep(payloads))

    async def get(self, digests: Sequence[Digest]) -> list[JsonValue]:
        """Raises NotFound."""
        return await self._in_thread(lambda: [loads_strict(self.read(digest)) for digest in digests])

    async def raw(self, digest: Digest) -> bytes:
        """As `read`, in a thread."""
        return await self._in_thread(lambda: self.read(digest))

    def read(self, digest: Digest) -> bytes:
        """The bytes of one payload, which are what their name says, or an error."""
        try:
            raw = self._path(digest).read_bytes()
        except FileNotFoundError:
            raise NotFound(f"no payload {digest}") from None
        if digest_of(raw) != digest:
            raise Unavailable(f"the payload {digest} is damaged")
        return raw

    async def stale(self, before: Instant) -> list[Digest]:
        """By the time of their files."""
        return await self._in_thread(lambda: [digest for digest, at in self._files() if at < before])

    async def drop(self, digests: Sequence[Digest], before: Instant) -> int:
        """One that was kept again meanwhile is young."""
        return await self._in_thread(lambda: sum(self._drop(digest, before) for digest in digests))

    def _drop(self, digest: Digest, before: Instant) -> bool:
        with self._lock:
            path = self._path(digest)
            if not path.exists() or _kept_at(path) >= before:
                return False
            path.unlink()
        sync_folder(path.parent)
        return True

    def _files(self) -> Iterator[tuple[Digest, int]]:
        """Every payload, and when it was kept last."""
        for path in self._folder.glob("??/*"):
            if not path.name.startswith("."):
                with suppress(FileNotFoundError):
                    yield Digest(f"sha256:{path.name}"), _kept_at(path)

    def poison(self) -> None:
        """In a forked child: there are no threads any more."""
        self._closed = True

    def close(self) -> None:
        """No more payloads."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise EngineClosed("the store is not open")

        def translating() -> T:
            with translated():
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._pool, translating)

    def _path(self, digest: Digest) -> Path:
        name = digest.removeprefix("sha256:")
        if len(name) != 64 or not set(name) <= set("0123456789abcdef"):
            raise Validation(f"not a digest: {digest!r}")
        return self._folder / name[:2] / name

    def keep(self, payloads: Sequence[tuple[Digest, bytes]]) -> None:
        """As `put`, in this thread."""
        for digest, raw in payloads:
            self._put(digest, raw)

    def _put(self, digest: Digest, raw: bytes) -> None:
        check_payload(digest, raw)
        path = self._path(digest)
        self._fault("artifact.write.before")
        make_folder(path.parent)
        with self._lock:
            known = path.exists()
            if known:
                os.utime(path)  # whoever looks for what is old passes it over
        if not known:
            self._write(path, raw)
        sync_folder(path.parent)
        self._fault("artifact.write.after")

    def _write(self, path: Path, raw: bytes) -> None:
        make_folder(self._folder / BEGUN)
        temporary = self._folder / BEGUN / f"{path.name}.{next(self._names)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
            self._fault("artifact.write.mid")
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _kept_at(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000


def make_folder(folder: Path) -> None:
    """A folder of ours, and its name, durable."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)
