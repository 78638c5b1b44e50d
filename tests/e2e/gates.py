"""Calls that a test holds in its hand: the tool rings at a socket of the test and goes on when it is let through."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from everstep import tool
from everstep.doors.local.lines import hang_up


class Gate:
    """Where calls ring; the test opens."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rung: asyncio.Queue[str] = asyncio.Queue()
        self.calls: list[str] = []
        self._waiting: dict[str, asyncio.StreamWriter] = {}
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def standing(self) -> AsyncIterator["Gate"]:
        server = await asyncio.start_unix_server(self._ring, str(self.path))
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                await hang_up(writer)

    async def _ring(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        label = (await reader.readline()).decode().strip()
        self.calls.append(label)
        self._waiting[label] = writer
        self._writers.append(writer)
        self.rung.put_nowait(label)

    async def next_call(self) -> str:
        return await asyncio.wait_for(self.rung.get(), 30)

    def open(self, label: str) -> None:
        self._waiting.pop(label).write(b"go\n")


def gated(path: Path) -> Any:
    """The tool `test.gate`, which rings at `path`."""

    @tool("test.gate", effect="pure")
    async def gate(label: str) -> dict[str, str]:
        """Wait to be let through."""
        reader, writer = await asyncio.open_unix_connection(str(path))
        try:
            writer.write(f"{label}\n".encode())
            await reader.readline()
        finally:
            writer.close()
        return {"label": label}

    return gate
