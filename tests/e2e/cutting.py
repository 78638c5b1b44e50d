"""A network that cuts every connection again and again; and a server that is killed behind it and comes back."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from everstep.client import Client
from tests.e2e.commands import Project
from tests.ports import free_port

Seqs: TypeAlias = Coroutine[Any, Any, list[int]]

SIM = 'tools = ["everstep.testing.sim"]\n'


class Proxy:
    """Passes bytes on to a port; when told, it hangs up on everybody, in the middle of whatever they say."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._heard = asyncio.Event()
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
        try:
            yield self
        finally:
            server.close()
            self.hang_up()
            for visit in self._visits:
                visit.cancel()

    async def cut(self) -> None:
        """As soon as the server has said something more."""
        self._heard.clear()
        await self._heard.wait()
        self.hang_up()

    def hang_up(self) -> None:
        """Now."""
        self.cuts += bool(self._pairs)
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
            await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer, self._heard))
        self._pairs -= {writer, back}


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: asyncio.Event | None = None
) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
            if heard is not None:
                heard.set()
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

    def kill(self) -> str:
        """And what it has said of its troubles."""
        self._process.send_signal(signal.SIGKILL)
        _, troubles = self._process.communicate()
        return str(troubles)

    @property
    def token(self) -> str:
        return (self.project.path / ".everstep/token").read_text().strip()


def naps(steps: int, seconds: float) -> dict[str, Any]:
    """A plan of many short calls that may be called again."""
    return {
        "name": "naps",
        "steps": [{"id": f"s{n}", "tool": "sim.sleep", "with": {"seconds": seconds}} for n in range(steps)],
    }


def naps_until(event: str, steps: int, seconds: float) -> dict[str, Any]:
    """The same, and then no end before it is told."""
    plan = naps(steps, seconds)
    plan["steps"].append({"id": "end", "tool": "wait", "with": {"event": event}})
    return plan


@dataclass
class UnderFire:
    """A task on a server that is killed, behind a network that cuts."""

    mortal: Mortal
    proxy: Proxy
    direct: Client
    task: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.proxy.port}"

    async def endure(self, of_task: Seqs, of_all: Seqs) -> None:
        """Both watchers get every event of the task once, in order, over cuts and two kills of the server."""
        one, every = asyncio.create_task(of_task), asyncio.create_task(of_all)
        async with asyncio.timeout(100):
            for _ in range(2):
                await self.proxy.cut()
                await self.proxy.cut()
                self.mortal.kill()
                await self.mortal.start()
            await self.proxy.cut()
            await self.direct.request("POST", "/v1/signals", {"event": "over"})
            seqs = await one
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) >= 84
            assert await every == seqs


@asynccontextmanager
async def under_fire() -> AsyncIterator[UnderFire]:
    """A task of forty naps that has just begun, and ends when the fire is over."""
    with TemporaryDirectory(prefix="es-") as folder:
        mortal = Mortal(Project(Path(folder)))
        await mortal.start()
        try:
            proxy = Proxy(mortal.port)
            async with proxy.standing(), Client(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as direct:
                task = await direct.create(plan=naps_until("over", 40, 0.08))
                yield UnderFire(mortal, proxy, direct, task["id"])
        finally:
            mortal.kill()
