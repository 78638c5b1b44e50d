"""A network that cuts every connection again and again; and a server that is killed behind it and comes back."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from everstep.client import Client
from tests.e2e.commands import Project

Seqs: TypeAlias = Coroutine[Any, Any, list[int]]

SIM = 'tools = ["everstep.testing.sim"]\n'


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Proxy:
    """Passes bytes on to a port; every `every_s` it hangs up on everybody, in the middle of whatever they say."""

    def __init__(self, target: int, every_s: float) -> None:
        self._target = target
        self._every_s = every_s
        self._pairs: set[asyncio.StreamWriter] = set()
        self._visits: set[asyncio.Task[None]] = set()
        self.port = 0
        self.cuts = 0
        self.refuses_upgrades = False
        self.refuses_streams = False

    @asynccontextmanager
    async def standing(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._welcome, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        cutting = asyncio.create_task(self._cut())
        try:
            yield self
        finally:
            cutting.cancel()
            server.close()
            self._hang_up()
            for visit in self._visits:
                visit.cancel()

    async def _cut(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            self.cuts += bool(self._pairs)
            self._hang_up()

    def _hang_up(self) -> None:
        for writer in self._pairs:
            writer.transport.abort()
        self._pairs.clear()

    def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.create_task(self._visit(reader, writer))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            refused = self.refuses_upgrades and b"upgrade: websocket" in head.lower()
            refused = refused or (self.refuses_streams and b"text/event-stream" in head.lower())
            if refused:
                writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                await writer.drain()
                writer.close()
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()
            return
        self._pairs |= {writer, back}
        back.write(head)
        with suppress(OSError):
            await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))
        self._pairs -= {writer, back}


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


class Mortal:
    """A served project that can be killed, and started again on the same port."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.port = free_port()
        self._process: Any = None
        project.write("everstep.toml", SIM)

    async def start(self) -> None:
        self._process = self.project.start("serve", "--port", str(self.port), "--json", "--testing")
        line = await asyncio.to_thread(self._process.stdout.readline)
        assert json.loads(line)["type"] == "ready", line

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    @property
    def token(self) -> str:
        return (self.project.path / ".everstep/token").read_text().strip()


def naps(steps: int, seconds: float) -> dict[str, Any]:
    """A plan of many short calls that may be called again."""
    return {
        "name": "naps",
        "steps": [{"id": f"s{n}", "tool": "sim.sleep", "with": {"seconds": seconds}} for n in range(steps)],
    }


@dataclass
class UnderFire:
    """A task on a server that is killed, behind a network that cuts."""

    mortal: Mortal
    proxy: Proxy
    task: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}"

    async def endure(self, of_task: Seqs, of_all: Seqs) -> None:
        """Both watchers get every event of the task once, in order, though the server is killed twice."""
        one, every = asyncio.create_task(of_task), asyncio.create_task(of_all)
        for _ in range(2):
            await asyncio.sleep(1.5)
            self.mortal.kill()
            await self.mortal.start()
        seqs = await asyncio.wait_for(one, 100)
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) >= 82
        assert await asyncio.wait_for(every, 100) == seqs
        assert self.proxy.cuts >= 2


@asynccontextmanager
async def under_fire(every_s: float) -> AsyncIterator[UnderFire]:
    """A task of forty naps that has just begun."""
    with TemporaryDirectory(prefix="es-") as folder:
        mortal = Mortal(Project(Path(folder)))
        await mortal.start()
        try:
            proxy = Proxy(mortal.port, every_s=every_s)
            async with proxy.standing():
                async with Client(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as direct:
                    task = await direct.create(plan=naps(40, 0.08))
                yield UnderFire(mortal, proxy, task["id"])
        finally:
            mortal.kill()
